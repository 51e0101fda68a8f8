"""What was compared, and how to do it again: both sides, and the commands of a build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.core.report import Report
from bot.core.snapshot import CellKey, Snapshot, titled
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
    listed,
    listing,
    phrase,
)
from bot.show.escape import clip
from bot.show.facts import VALUE_LIMIT, Facts, notes
from bot.show.filters import plural

_COMMAND_LIMIT, _DIGEST_CHARS, _REVISION_CHARS = 2_000, 16, 10


def baseline_words(report: Report) -> Phrase:
    """How the base was found; and where it is not of the base commit itself, how long before it was measured."""
    baseline, measured = report.baseline, report.base.source.sha
    at = phrase(", base commit ", _short(baseline.sha)) if baseline.sha else ()
    age: Phrase = ()
    if baseline.distance:
        of = phrase(" at ", _short(measured)) if measured else ()
        age = phrase(f", measured {plural(baseline.distance, 'commit')} before it", of)
    return phrase("Baseline: ", code(clip(baseline.rule, VALUE_LIMIT)), at, age, ".")


def _short(sha: str) -> Span:
    return code(sha[:_REVISION_CHARS])


def compared(facts: Facts, limits: Limits) -> Fold:
    """Commands of alarming cells, both sides, and what there is to say of the rest."""
    report, exact = facts.report, list[Block]()
    lost = {delta.key for delta in facts.states["unmeasured"] if None in (delta.base, delta.head)}
    alarming = [delta.key for delta in facts.states["newly-broken"]]
    keys = [key for key in dict.fromkeys([*alarming, *(one.key for one in report.verdict.news)]) if key not in lost]
    for key in fair_in_order(keys, lambda key: key.model, limits.commands):
        exact += [Sentence(facts.named(key)), commands_of(facts, key)]
    title = f"How to reproduce: the exact commands of {plural(len(keys), 'alarming build')}"
    exact.append(List(Listing((), max(0, len(keys) - limits.commands), "command")))
    what = ("compiler version", "compiler revision", "compiler SHA-256", "SPEC", "source commit", "source ref", "flags")
    rows = [(phrase(name), *both) for name, *both in zip(what, *map(_side, (report.base, report.head)), strict=True)]
    remarks: Listing[str] = Listing() if limits.every else notes(report, limits)  # a page has them above
    return Fold(
        "How to reproduce, and what was compared" if keys and not limits.every else "What was compared",
        (
            Fold(title if limits.every else "", tuple(exact), not limits.every, name="commands"),
            Table(("", "base", "head"), listed(rows, "row"), numbers_from=3),
            Sentence(baseline_words(report)),
            List(listing(map(phrase, remarks), remarks.total, "note")),
        ),
        name="compared",
    )


def _fact(value: str | None) -> Phrase:
    return phrase(code(clip(value, VALUE_LIMIT))) if value else phrase(ABSENT)


def _side(side: Snapshot) -> Iterator[Phrase]:
    compiler, source = side.compiler, side.source
    yield from map(_fact, (compiler.version, compiler.revision, compiler.digest[:_DIGEST_CHARS], compiler.spec))
    yield phrase(_fact(source.sha), " with uncommitted changes" if source.dirty else "")
    yield from map(_fact, (source.ref, " ".join(side.flags)))


def commands_of(facts: Facts, key: CellKey) -> Code:
    """The commands of a build on both sides, each with its compiler's version."""
    report, delta = facts.report, facts.deltas[key]
    versions = {"base": report.base.compiler.version, "head": report.head.compiler.version}
    commands = {"base": delta.base.command if delta.base else "", "head": delta.head.command if delta.head else ""}
    too_long = f"# longer than {_COMMAND_LIMIT:,} characters: see report.json"
    lines = reproduction(versions, commands)
    return Code("\n".join(f"{about}\n{line if len(line) <= _COMMAND_LIMIT else too_long}" for about, line in lines))


def reproduction(versions: Mapping[str, str], commands: Mapping[str, str]) -> list[tuple[str, str]]:
    """A comment that names sides and compilers, and the command of these sides; once where both have the same."""
    names: dict[str, list[str]] = {}
    for side, command in commands.items():
        names.setdefault(command, []).append(f"{side}: {titled(clip(versions.get(side, ''), 48))}")
    return [(f"# {'; '.join(name)}", command or "# not measured on this side") for command, name in names.items()]
