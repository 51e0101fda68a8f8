"""What a change consists of, as its author would say it: compiler, flags of each target, models and targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.report import ONCE, Between, Report
from bot.core.snapshot import Cell, CellKey, CompilerInfo, ModelEdit, Snapshot, titled
from bot.core.spec import RESOLVED, release_in
from bot.show.blocks import Limits, Listing, Phrase, Span, code, fair_in_order, first, joined, listing, phrase
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, cells_phrase, is_over
from bot.show.filters import plural, signed

_FLAG_CHARS, _NAMES, _FLAGS = 100, 3, 4
FlagChange = tuple[tuple[str, ...], tuple[str, ...]]
"""Flags that went, and flags that came."""


def changes(facts: Facts) -> tuple[Phrase, ...]:
    """What is not the same on both sides, a phrase each; empty where all is."""
    return (*_compilers(facts), *_flags(facts), *_models(facts), *_targets(facts))


def _compilers(facts: Facts) -> Iterator[Phrase]:
    base, head = facts.report.base.compiler, facts.report.head.compiler
    if base.digest == head.digest:
        return
    left, right = compiler_name(base), compiler_name(head)
    if left != right:
        yield phrase("compiler ", left, " → ", right)
    else:
        yield phrase("compiler ", left, ", another build on head")


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
    found = {delta.key: _flag_change(delta) for delta in facts.report.deltas}
    groups: dict[FlagChange, list[CellKey]] = {}
    for key, change in found.items():
        if change is not None:
            groups.setdefault(change, []).append(key)
    compared = [key for keys in groups.values() for key in keys]
    told = [(change, keys) for change, keys in groups.items() if any(change)]
    for change, keys in told[:_FLAGS]:
        yield phrase(_flag_words(change), *_where(facts, keys, compared))
    if len(told) > _FLAGS:
        yield phrase(f"{plural(len(told) - _FLAGS, 'more difference')} of flags")


def _flag_change(delta: CellDelta) -> FlagChange | None:
    """None where a side's command is not known, or cannot be read."""
    base, head = _flags_of(delta.base), _flags_of(delta.head)
    if base is None or head is None:
        return None
    known = {_renamed(flag) for flag in base}, {_renamed(flag) for flag in head}
    went = tuple(flag for flag in base if _renamed(flag) not in known[1])
    return went, tuple(flag for flag in head if _renamed(flag) not in known[0])


def _renamed(flag: str) -> str:
    """Options of AMD's back end were called `--iree-hip-…` up to 3.10.0: another name is no change."""
    return flag.replace("--iree-hip-", "--iree-rocm-", 1)


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
    told = []
    for name in {**went, **came}:
        old, new = went.get(name, ""), came.get(name, "")
        if old and new:
            told.append(
                phrase(code(clip(old, _FLAG_CHARS)), " → ", code(clip(new.partition("=")[2] or new, _FLAG_CHARS)))
            )
        else:
            told.append(phrase(code(clip(old or new, _FLAG_CHARS)), " added" if new else " removed"))
    more = f" and {plural(len(told) - _FLAGS, 'more flag')}" if len(told) > _FLAGS else ""
    return phrase("flag " if len(told) == 1 else "flags ", joined(told[:_FLAGS], ", "), more)


def _where(facts: Facts, keys: Sequence[CellKey], compared: Sequence[CellKey]) -> Phrase:
    """On which targets or cells; nothing where it is all of them."""
    if len(keys) == len(compared):
        return ()
    targets = sorted({key.target for key in keys})
    if len(keys) == sum(key.target in targets for key in compared):
        return phrase(" on ", joined([(code(facts.short[target]),) for target in targets], ", "))
    return phrase(" for ", cells_phrase(facts, keys, _NAMES))


def _models(facts: Facts) -> Iterator[Phrase]:
    base, head = facts.report.base.models, facts.report.head.models
    edits = {edit.model: edit for edit in facts.report.edits if edit.base and edit.head}
    edited = sorted(name for name in base.keys() & head.keys() if base[name] != head[name])
    if len(edited) <= _NAMES:
        for name in edited:
            more = _edit(edits[name]) if name in edits else ()
            yield phrase("model ", code(clip(name, NAME_LIMIT)), " edited", phrase(" (", more, ")") if more else ())
    else:
        yield from _named(edited, "model", "edited")
    yield from _sets("model", base, head)


def _edit(edit: ModelEdit) -> Phrase:
    """``+1 operation in `classifier` ``; names of operations where none of the whole ones came or went; or empty."""
    if edit.operations is None or edit.components is None:
        return ()
    if not edit.operations and not edit.components:
        return phrase("no operation came or went")
    if not edit.components:
        return _counted(edit.operations)
    total, (first, *_) = sum(edit.components.values()), edit.components
    if len(edit.components) == 1:
        return phrase(f"{signed(total, 'count')} operation{'' if abs(total) == 1 else 's'}", *_in(first))
    return phrase(f"{signed(total, 'count')} operations: ", _counted(edit.components))


def _in(component: str) -> Phrase:
    return () if component == UNATTRIBUTED else phrase(" in ", code(clip(component, NAME_LIMIT)))


def _counted(changes: Mapping[str, int]) -> Phrase:
    """`` `classifier` +2, `pooler` −1 and 3 more``, the largest first."""
    ordered = sorted(changes.items(), key=lambda one: (-abs(one[1]), one[0]))
    told = joined(
        [phrase(code(clip(name, 48)), f" {signed(count, 'count')}") for name, count in ordered[:_NAMES]], ", "
    )
    return phrase(told, f" and {len(ordered) - _NAMES} more" if len(ordered) > _NAMES else "")


def _sets(noun: str, base: Mapping[str, str], head: Mapping[str, str]) -> Iterator[Phrase]:
    yield from _named(sorted(head.keys() - base.keys()), noun, "new")
    yield from _named(sorted(base.keys() - head.keys()), noun, "removed")


def _named(names: Sequence[str], noun: str, what: str) -> Iterator[Phrase]:
    if names:
        shown = joined([(code(clip(name, NAME_LIMIT)),) for name in names[:_NAMES]], ", ")
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        yield phrase(f"{noun if len(names) == 1 else noun + 's'} ", shown, more, f" {what}")


def _targets(facts: Facts) -> Iterator[Phrase]:
    yield from _sets("target", facts.report.base.targets, facts.report.head.targets)


_VALUE_LIMIT = 300
_COMMAND_LIMIT = 2_000
_TOO_LONG = f"# longer than {_COMMAND_LIMIT:,} characters: see report.json"
_DIGEST_CHARS, _SHORT_DIGEST = 16, 8
_REVISION_CHARS = 10
_RULE_LIMIT = 120
_FOLDERS, _FOLDER_CHARS = 4, 32


@dataclass(frozen=True, slots=True)
class SideRow:
    """One fact about both sides."""

    what: str
    base: Phrase
    head: Phrase


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared.

    Attributes:
        commits: both commits and how the base was found; empty where both sides are of one commit.
        rows: facts that each side has.
        baseline: how the base was found.
        suite: the models, and which of them differ between the sides.
    """

    commits: Phrase
    rows: tuple[SideRow, ...]
    baseline: Phrase
    suite: Phrase


def compared(report: Report) -> Compared:
    """Describe both sides."""
    rows = tuple(map(SideRow, _WHAT, _facts(report.base), _facts(report.head)))
    return Compared(_commits(report), rows, _baseline(report), _suite(report))


def _commits(report: Report) -> Phrase:
    base, head = report.baseline.sha or report.base.source.sha, report.head.source.sha
    if not base or not head or base == head:
        return ()
    rule = f" ({clip(report.baseline.rule, _RULE_LIMIT)})"
    then = ". Head commit " if report.baseline.between else ", head commit "
    return phrase("Base commit ", _short(base), rule, _age(report), then, _short(head), ".")


def _short(sha: str) -> Span:
    return code(sha[:_REVISION_CHARS])


def aged(report: Report) -> bool:
    """True where the baseline is not of the base commit itself, which a reader has to know at once."""
    return bool(_age(report))


def _age(report: Report) -> Phrase:
    """That the baseline is not of the base commit itself, where it is not."""
    distance, between, measured = report.baseline.distance, report.baseline.between, report.base.source.sha
    if not distance and between is None:
        return ()
    at = phrase(" at ", _short(measured)) if measured else ()
    commits = plural(distance, "commit") if distance else "some commits"
    gap = phrase("; ", gap_words(between)) if between else ()
    return phrase(f", measured {commits} before it", at, gap)


def gap_words(gap: Between) -> Phrase:
    """``between them: `compiler/` (12 files), `docs/` (1 file), none of them compiler source``."""
    if not gap.files:
        return phrase("between them no file was touched")
    told = gap.folders[:_FOLDERS]
    named = [phrase(_folder(one.folder), f" ({plural(one.files, 'file')})") for one in told]
    if rest := gap.files - sum(one.files for one in told):
        named.append(phrase(plural(rest, "other file")))
    source = "" if gap.sources == gap.files else f", {gap.sources or 'none'} of them compiler source"
    return phrase("between them: ", joined(named, ", "), source)


def _folder(name: str) -> Phrase:
    return phrase(code(f"{clip(clean(name), _FOLDER_CHARS)}/")) if name else phrase("the top folder")


_WHAT = ("compiler version", "compiler revision", "compiler SHA-256", "SPEC", "source commit", "source ref", "flags")


def _side_fact(value: str | None) -> Phrase:
    return phrase(code(clip(value, _VALUE_LIMIT))) if value else phrase("–")


def _facts(side: Snapshot) -> Iterator[Phrase]:
    compiler, source = side.compiler, side.source
    yield _side_fact(compiler.version)
    yield _side_fact(compiler.revision)
    yield _side_fact(compiler.digest[:_DIGEST_CHARS])
    yield _side_fact(compiler.spec)
    yield phrase(_side_fact(source.sha), " with uncommitted changes" if source.dirty else "")
    yield _side_fact(source.ref)
    yield _side_fact(" ".join(side.flags))


def _baseline(report: Report) -> Phrase:
    baseline = report.baseline
    at = phrase(", base commit ", _side_fact(baseline.sha)) if baseline.sha else ()
    return phrase(code(clip(baseline.rule, _VALUE_LIMIT)), at, _age(report))


def _suite(report: Report) -> Phrase:
    base, head = report.base.models, report.head.models
    both = base.keys() & head.keys()
    targets = {*report.base.targets, *report.head.targets}
    said = f"{plural(len({*base, *head}), 'model')} on {plural(len(targets), 'target')}"
    edited = {
        name: f" {base[name][:_SHORT_DIGEST]} → {head[name][:_SHORT_DIGEST]}"
        for name in sorted(both)
        if base[name] != head[name]
    }
    parts = [
        _suite_models("with another text on head, by SHA-256", edited),
        _suite_models("only on base", dict.fromkeys(sorted(base.keys() - both), "")),
        _suite_models("only on head", dict.fromkeys(sorted(head.keys() - both), "")),
    ]
    return joined([phrase(said), *(part for part in parts if part)], "; ")


def _suite_models(words: str, names: Mapping[str, str]) -> Phrase:
    """Name → what is said of it."""
    if not names:
        return ()
    shown = joined([phrase(code(clip(name, 48)), more) for name, more in [*names.items()][:5]], ", ")
    return phrase(f"{len(names):,} {words}: ", shown, " …" if len(names) > 5 else "")


@dataclass(frozen=True, slots=True)
class Commands:
    """How to reproduce one cell.

    Attributes:
        text: shell lines, with a comment before the command of each side.
    """

    model: str
    target: str
    text: str


def commands(facts: Facts, limits: Limits) -> Listing[Commands]:
    """The exact commands of every alarming cell: newly broken, or with a finding of this change."""
    keys = list(dict.fromkeys(_alarming(facts)))
    shown = fair_in_order(keys, lambda key: key.model, limits.commands)
    return listing((_commands(facts, key) for key in shown), len(keys), "command")


def _alarming(facts: Facts) -> Iterator[CellKey]:
    yield from (delta.key for delta in facts.states["newly-broken"])
    lost = {delta.key for delta in facts.states["unmeasured"] if None in (delta.base, delta.head)}
    yield from (finding.key for finding in facts.report.verdict.news if finding.key not in lost)


def _commands(facts: Facts, key: CellKey) -> Commands:
    delta, report = facts.deltas[key], facts.report
    versions = {"base": report.base.compiler.version, "head": report.head.compiler.version}
    cells = {"base": delta.base, "head": delta.head}
    told = reproduction(versions, {side: cell.command if cell else "" for side, cell in cells.items()})
    lines = (f"{about}\n{command if len(command) <= _COMMAND_LIMIT else _TOO_LONG}" for about, command in told)
    return Commands(clip(key.model, NAME_LIMIT), clip(key.target, NAME_LIMIT), "\n".join(lines))


def head_command(facts: Facts, key: CellKey) -> str:
    """The command of a cell on head, and with which compiler; both sides' where they have the same."""
    delta, report = facts.deltas[key], facts.report
    sides = {"base": (report.base, delta.base), "head": (report.head, delta.head)}
    command = delta.head.command if delta.head else ""
    alike = [name for name, (_, cell) in sides.items() if cell is not None and cell.command == command]
    versions = {name: sides[name][0].compiler.version for name in alike or ["head"]}
    ((about, line),) = reproduction(versions, dict.fromkeys(versions, command))
    return f"{about}\n{line if len(line) <= _COMMAND_LIMIT else _TOO_LONG}"


def reproduction(versions: Mapping[str, str], commands: Mapping[str, str]) -> list[tuple[str, str]]:
    """A comment that names sides and compilers, and the command of these sides; once where both have the same."""
    told: dict[str, list[str]] = {}
    for side, command in commands.items():
        told.setdefault(command, []).append(f"{side}: {titled(clip(versions.get(side, ''), 48))}")
    return [(f"# {'; '.join(names)}", command or "# not measured on this side") for command, names in told.items()]


def trace_command(key: CellKey, dispatch: str, specs: Mapping[str, str]) -> str:
    """What shows all passes of a dispatch; `specs`: side → the SPEC of its compiler, empty where it is not known."""
    names = {"model": key.model, "target": key.target, "dispatch": dispatch}
    names |= {side: spec.rpartition(RESOLVED)[2] or "SPEC" for side, spec in specs.items()}
    return " ".join(("code-size-bot trace", *(f"--{name} {shlex.quote(text)}" for name, text in names.items())))


def notes(report: Report, limits: Limits) -> Listing[str]:
    """What broke or was left out while the report was made, and what each side says of itself."""
    told = [*report.notes]
    for name, side in (("base", report.base), ("head", report.head)):
        told += [f"{name}: {note}" for note in side.notes]
    told.sort(key=lambda note: note.startswith(ONCE))
    return first([clip(note, _VALUE_LIMIT) for note in told], limits.failures, "note")
