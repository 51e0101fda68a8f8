"""What was compared: what is not the same on both sides, as its author would say it; compilers, commits, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.report import ONCE, Between, Report
from bot.core.snapshot import Cell, CellKey, CompilerInfo, ModelEdit, Snapshot, titled
from bot.core.spec import RESOLVED, release_in
from bot.show.blocks import (
    ABSENT,
    Block,
    Code,
    Fold,
    Limits,
    List,
    Listing,
    Phrase,
    Sentence,
    Span,
    Table,
    code,
    fair_in_order,
    first,
    joined,
    listed,
    listing,
    name_cell,
    phrase,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, cells_phrase, is_over
from bot.show.filters import amount, plural, relative, sides, signed

_FLAG_CHARS, _NAMES, _FLAGS = 100, 3, 4
_VALUE_LIMIT, _COMMAND_LIMIT = 300, 2_000
_DIGEST_CHARS, _SHORT_DIGEST, _REVISION_CHARS = 16, 8, 10
FlagChange = tuple[tuple[str, ...], tuple[str, ...]]  # Flags that went, and flags that came


def changes(facts: Facts) -> tuple[Phrase, ...]:
    """What is not the same on both sides, a phrase each; empty where all is."""
    report = facts.report
    parts = list[Phrase]()
    if report.base.compiler.digest != report.head.compiler.digest:
        left, right = compiler_name(report.base.compiler), compiler_name(report.head.compiler)
        parts.append(phrase("compiler ", left, *(" → ", right) if left != right else (", another build on head",)))
    parts += [*_flags(facts), *_models(report)]
    return (*parts, *_came_and_went("target", report.base.targets, report.head.targets))


def compiler_name(compiler: CompilerInfo) -> Phrase:
    """A release as the user gave it, `IREE 3.13.0`; of any other SPEC the version, and the SPEC.

    `latest` and `nightly` come with the release that they were.
    """
    if not compiler.version and not compiler.spec:
        return phrase("not known")
    if " " in compiler.version:
        return phrase(clip(clean(compiler.version), 48))
    if release := release_in(compiler.spec):
        moving = compiler.spec.rpartition(RESOLVED)[0]
        return phrase(f"IREE {clip(release, 48)}", *(phrase(" (", code(clip(moving, 48)), ")") if moving else ()))
    spec = phrase(" (", code(clip(compiler.spec, 48)), ")") if compiler.spec else ()
    return phrase(f"IREE {clip(clean(compiler.version), 48)}", spec)


def _flags(facts: Facts) -> Iterator[Phrase]:
    """Each difference of flags, and on which targets or cells; nothing of where it is all of them."""
    groups: dict[FlagChange, list[CellKey]] = {}
    for delta in facts.report.deltas:
        if (change := _flag_change(delta)) is not None:
            groups.setdefault(change, []).append(delta.key)
    compared = [key for keys in groups.values() for key in keys]
    different = [(change, keys) for change, keys in groups.items() if any(change)]
    for change, keys in different[:_FLAGS]:
        targets, where = sorted({key.target for key in keys}), phrase(" for ", cells_phrase(facts, keys, _NAMES))
        if len(keys) == len(compared):
            where = ()
        elif len(keys) == sum(key.target in targets for key in compared):
            where = phrase(" on ", joined([(code(facts.short[target]),) for target in targets], ", "))
        yield phrase(_flag_words(change), where)
    if len(different) > _FLAGS:
        yield phrase(f"{plural(len(different) - _FLAGS, 'more difference')} of flags")


def _flag_change(delta: CellDelta) -> FlagChange | None:
    """None where a side's command is not known, or cannot be read.

    Options of AMD's back end were called `--iree-hip-…` up to 3.10.0: another name is no change.
    """
    base, head = _flags_of(delta.base), _flags_of(delta.head)
    if base is None or head is None:
        return None
    left, right = ({flag.replace("--iree-hip-", "--iree-rocm-", 1): flag for flag in flags} for flags in (base, head))
    went = tuple(flag for name, flag in left.items() if name not in right)
    return went, tuple(flag for name, flag in right.items() if name not in left)


def _flags_of(cell: Cell | None) -> tuple[str, ...] | None:
    """Those of a command; the limit that is lifted where the stack gate refused a cell is the bot's own.

    None where there is no command, or none that can be read.
    """
    flags = _flags_in(cell.command) if cell else None
    if flags is None or not is_over(cell):
        return flags
    return tuple(flag for flag in flags if flag != LIFTED_LIMIT_FLAG)


_QUOTED = re.compile(r"""['"\\]|[^\S \t\r\n]""")
"""What makes words otherwise than at white space, as a shell knows it; nearly no command has any, and shlex is slow."""


@lru_cache(maxsize=1)
def _flags_in(command: str) -> tuple[str, ...] | None:
    """Remembered, as both sides of a cell have most often the same command."""
    try:
        words = shlex.split(command) if _QUOTED.search(command) else command.split()
    except ValueError:
        return None
    return tuple(word for word in words if word.startswith("--")) if words else None


def _flag_words(change: FlagChange) -> Phrase:
    """``flag `--cpu=v3` → `v4` ``; what came or went alone is named as such."""
    went, came = ({flag.partition("=")[0]: flag for flag in flags} for flags in change)
    parts = []
    for name in {**went, **came}:
        old, new = went.get(name, ""), came.get(name, "")
        words = (" → ", code(clip(new.partition("=")[2] or new, _FLAG_CHARS))) if old and new else ()
        parts.append(phrase(code(clip(old or new, _FLAG_CHARS)), *(words or (" added" if new else " removed",))))
    more = f" and {plural(len(parts) - _FLAGS, 'more flag')}" if len(parts) > _FLAGS else ""
    return phrase("flag " if len(parts) == 1 else "flags ", joined(parts[:_FLAGS], ", "), more)


def _models(report: Report) -> Iterator[Phrase]:
    base, head = report.base.models, report.head.models
    edits = {edit.model: edit for edit in report.edits if edit.base and edit.head}
    edited = sorted(name for name in base.keys() & head.keys() if base[name] != head[name])
    if len(edited) <= _NAMES:
        for name in edited:
            more = _edit(edits[name]) if name in edits else ()
            yield phrase("model ", code(clip(name, NAME_LIMIT)), " edited", phrase(" (", more, ")") if more else ())
    else:
        yield _named(edited, "model", "edited")
    yield from _came_and_went("model", base, head)


def _edit(edit: ModelEdit) -> Phrase:
    """``+1 operation in `classifier` ``; names of operations where none of the whole ones came or went; or empty."""
    if edit.operations is None or edit.components is None:
        return ()
    if not edit.operations and not edit.components:
        return phrase("no operation came or went")
    if not edit.components:
        return _counted(edit.operations)
    total, (component, *_) = sum(edit.components.values()), edit.components
    if len(edit.components) == 1:
        where = () if component == UNATTRIBUTED else phrase(" in ", code(clip(component, NAME_LIMIT)))
        return phrase(f"{signed(total, 'count')} operation{'' if abs(total) == 1 else 's'}", where)
    return phrase(f"{signed(total, 'count')} operations: ", _counted(edit.components))


def _counted(changes: Mapping[str, int]) -> Phrase:
    """`` `classifier` +2, `pooler` −1 and 3 more``, the largest first."""
    ordered = sorted(changes.items(), key=lambda one: (-abs(one[1]), one[0]))
    parts = [phrase(code(clip(name, 48)), f" {signed(count, 'count')}") for name, count in ordered[:_NAMES]]
    return phrase(joined(parts, ", "), f" and {len(ordered) - _NAMES} more" if len(ordered) > _NAMES else "")


def _came_and_went(noun: str, base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[Phrase]:
    for names, what in ((head.keys() - base.keys(), "new"), (base.keys() - head.keys(), "removed")):
        if names:
            yield _named(sorted(names), noun, what)


def _named(names: Sequence[str], noun: str, what: str) -> Phrase:
    shown = joined([(code(clip(name, NAME_LIMIT)),) for name in names[:_NAMES]], ", ")
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return phrase(f"{noun if len(names) == 1 else noun + 's'} ", shown, more, f" {what}")


# Both sides, and how to do it again.


def commits(report: Report) -> Phrase:
    """Both commits and how the base was found; empty where both sides are of one commit."""
    base, head = report.baseline.sha or report.base.source.sha, report.head.source.sha
    if not base or not head or base == head:
        return ()
    rule = f" ({clip(report.baseline.rule, 120)})"
    then = ". Head commit " if report.baseline.between else ", head commit "
    return phrase("Base commit ", _short(base), rule, age(report), then, _short(head), ".")


def _short(sha: str) -> Span:
    return code(sha[:_REVISION_CHARS])


def age(report: Report) -> Phrase:
    """That the baseline is not of the base commit itself, where it is not, which a reader has to know at once."""
    distance, between, measured = report.baseline.distance, report.baseline.between, report.base.source.sha
    if not distance and between is None:
        return ()
    at = phrase(" at ", _short(measured)) if measured else ()
    commits = plural(distance, "commit") if distance else "some commits"
    return phrase(f", measured {commits} before it", at, phrase("; ", gap_words(between)) if between else ())


def gap_words(gap: Between) -> Phrase:
    """``between them: `compiler/` (12 files), `docs/` (1 file), none of them compiler source``."""
    if not gap.files:
        return phrase("between them no file was touched")
    folders, parts = gap.folders[:4], list[Phrase]()
    for one in folders:
        name = code(f"{clip(clean(one.folder), 32)}/") if one.folder else "the top folder"
        parts.append(phrase(name, f" ({plural(one.files, 'file')})"))
    if rest := gap.files - sum(one.files for one in folders):
        parts.append(phrase(plural(rest, "other file")))
    source = "" if gap.sources == gap.files else f", {gap.sources or 'none'} of them compiler source"
    return phrase("between them: ", joined(parts, ", "), source)


def compared(facts: Facts, limits: Limits) -> Fold:
    """Commands of alarming cells, both sides, and what there is to say of the rest."""
    report, keys = facts.report, list(dict.fromkeys(_alarming(facts)))
    exact = list[Block]()
    for key in fair_in_order(keys, lambda key: key.model, limits.commands):
        model, target = (code(clip(name, NAME_LIMIT)) for name in (key.model, key.target))
        exact += [Sentence(phrase(model, " on ", target)), Code(_both_commands(facts, key))]
    title = f"How to reproduce: the exact commands of {plural(len(keys), 'alarming build')}"
    exact.append(List(Listing((), max(0, len(keys) - limits.commands), "command")))
    what = ("compiler version", "compiler revision", "compiler SHA-256", "SPEC", "source commit", "source ref", "flags")
    rows = [(phrase(name), *both) for name, *both in zip(what, *map(_side, (report.base, report.head)), strict=True)]
    baseline = report.baseline
    at = phrase(", base commit ", _fact(baseline.sha)) if baseline.sha else ()
    rule = phrase(code(clip(baseline.rule, _VALUE_LIMIT)), at, age(report))
    equal = []
    for words, identical in (("Bit-identical", True), ("Equal in every metric, bytes not compared", False)):
        if cells := [delta.key for delta in facts.states["same"] if bool(delta.identical) == identical]:
            equal.append(phrase(f"{words} ({len(cells):,}): ", cells_phrase(facts, cells, limits.names)))
    remarks: Listing[str] = Listing() if limits.every else notes(report, limits)  # a page has them above
    return Fold(
        "How to reproduce, and what was compared" if keys and not limits.every else "What was compared",
        (
            Fold(title if limits.every else "", tuple(exact), not limits.every, name="commands"),
            Table(("", "base", "head"), listed(rows, "row"), numbers_from=3),
            Sentence(phrase("Suite: ", suite(report), ". Baseline: ", rule, ".")),
            List(listing(map(phrase, remarks), remarks.total, "note")),
            List(listed(equal)),
            _costs(facts),
        ),
        name="compared",
    )


def _fact(value: str | None) -> Phrase:
    return phrase(code(clip(value, _VALUE_LIMIT))) if value else phrase(ABSENT)


def _side(side: Snapshot) -> Iterator[Phrase]:
    compiler, source = side.compiler, side.source
    yield from map(_fact, (compiler.version, compiler.revision, compiler.digest[:_DIGEST_CHARS], compiler.spec))
    yield phrase(_fact(source.sha), " with uncommitted changes" if source.dirty else "")
    yield from map(_fact, (source.ref, " ".join(side.flags)))


def suite(report: Report) -> Phrase:
    """The models, and which of them differ between the sides."""
    base, head = report.base.models, report.head.models
    targets = {*report.base.targets, *report.head.targets}
    parts = [phrase(f"{plural(len({*base, *head}), 'model')} on {plural(len(targets), 'target')}")]
    edited = [name for name in sorted(base.keys() & head.keys()) if base[name] != head[name]]
    for words, names in (
        ("with another text on head, by SHA-256", edited),
        ("only on base", sorted(base.keys() - head.keys())),
        ("only on head", sorted(head.keys() - base.keys())),
    ):
        shown = []
        for name in names[:5]:
            digests = f" {base[name][:_SHORT_DIGEST]} → {head[name][:_SHORT_DIGEST]}" if names is edited else ""
            shown.append(phrase(code(clip(name, 48)), digests))
        more = " …" if len(names) > 5 else ""
        parts += [phrase(f"{len(names):,} {words}: ", joined(shown, ", "), more)] if names else []
    return joined(parts, "; ")


def _costs(facts: Facts) -> Table:
    """What it cost to compile the cells of each target that were measured on both sides."""
    targets: dict[str, list[tuple[int, ...]]] = {}
    for delta in facts.report.deltas:
        pairs = [delta.metrics.get(id_) for id_ in ("compile_cpu_ms", "compile_peak_rss_kib")]
        values = tuple(value for pair in pairs if pair for value in (pair.base, pair.head) if value is not None)
        if len(values) == 4:
            targets.setdefault(delta.key.target, []).append(values)
    rows = []
    for target, cells in sorted(targets.items()):
        cpu_base, cpu_head, memory_base, memory_head = zip(*cells, strict=True)
        cpu = sum(cpu_base), sum(cpu_head)
        memory = sides(max(memory_base), max(memory_head), "KiB")
        words = amount(len(cells), "count"), sides(*cpu, "ms"), relative(*cpu), memory
        rows.append((name_cell(facts.short[target]), *map(phrase, words)))
    headers = ("target", "builds", "CPU time, base → head", "change", "peak memory, base → head")
    about = "Cost of compiling (informational: two runs of the same compile differ)"
    return Table(headers, listed(rows, "target"), about=about)


def _alarming(facts: Facts) -> Iterator[CellKey]:
    """Newly broken, or with a finding of this change."""
    yield from (delta.key for delta in facts.states["newly-broken"])
    lost = {delta.key for delta in facts.states["unmeasured"] if None in (delta.base, delta.head)}
    yield from (finding.key for finding in facts.report.verdict.news if finding.key not in lost)


def _both_commands(facts: Facts, key: CellKey) -> str:
    delta, report = facts.deltas[key], facts.report
    versions = {"base": report.base.compiler.version, "head": report.head.compiler.version}
    lines = {"base": delta.base, "head": delta.head}
    return _lines(reproduction(versions, {side: cell.command if cell else "" for side, cell in lines.items()}))


def head_command(facts: Facts, key: CellKey) -> str:
    """The command of a cell on head, and with which compiler; both sides' where they have the same."""
    delta, report = facts.deltas[key], facts.report
    sides = {"base": (report.base, delta.base), "head": (report.head, delta.head)}
    command = delta.head.command if delta.head else ""
    alike = [name for name, (_, cell) in sides.items() if cell is not None and cell.command == command]
    versions = {name: sides[name][0].compiler.version for name in alike or ["head"]}
    return _lines(reproduction(versions, dict.fromkeys(versions, command)))


def _lines(commands: Sequence[tuple[str, str]]) -> str:
    too_long = f"# longer than {_COMMAND_LIMIT:,} characters: see report.json"
    return "\n".join(f"{about}\n{line if len(line) <= _COMMAND_LIMIT else too_long}" for about, line in commands)


def reproduction(versions: Mapping[str, str], commands: Mapping[str, str]) -> list[tuple[str, str]]:
    """A comment that names sides and compilers, and the command of these sides; once where both have the same."""
    names: dict[str, list[str]] = {}
    for side, command in commands.items():
        names.setdefault(command, []).append(f"{side}: {titled(clip(versions.get(side, ''), 48))}")
    return [(f"# {'; '.join(name)}", command or "# not measured on this side") for command, name in names.items()]


def notes(report: Report, limits: Limits) -> Listing[str]:
    """What broke or was left out while the report was made, and what each side says of itself."""
    every = [*report.notes]
    for name, side in (("base", report.base), ("head", report.head)):
        every += [f"{name}: {note}" for note in side.notes]
    every.sort(key=lambda note: note.startswith(ONCE))
    return first([clip(note, _VALUE_LIMIT) for note in every], limits.failures, "note")
