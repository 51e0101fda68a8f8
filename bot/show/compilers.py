"""What was compared: both sides' compilers, sources, flags, suites, and how the base was found."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.core.report import ONCE, Between, Report
from bot.core.snapshot import CellKey, Snapshot, titled
from bot.core.spec import RESOLVED
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import plural
from bot.show.phrase import Phrase, Span, code, joined, phrase
from bot.show.selection import Limits, Listing, fair_in_order, first, listing

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


def _named(value: str | None) -> Phrase:
    return phrase(code(clip(value, _VALUE_LIMIT))) if value else phrase("–")


def _facts(side: Snapshot) -> Iterator[Phrase]:
    compiler, source = side.compiler, side.source
    yield _named(compiler.version)
    yield _named(compiler.revision)
    yield _named(compiler.digest[:_DIGEST_CHARS])
    yield _named(compiler.spec)
    yield phrase(_named(source.sha), " with uncommitted changes" if source.dirty else "")
    yield _named(source.ref)
    yield _named(" ".join(side.flags))


def _baseline(report: Report) -> Phrase:
    baseline = report.baseline
    at = phrase(", base commit ", _named(baseline.sha)) if baseline.sha else ()
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
        _models("with another text on head, by SHA-256", edited),
        _models("only on base", dict.fromkeys(sorted(base.keys() - both), "")),
        _models("only on head", dict.fromkeys(sorted(head.keys() - both), "")),
    ]
    return joined([phrase(said), *(part for part in parts if part)], "; ")


def _models(words: str, names: Mapping[str, str]) -> Phrase:
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
