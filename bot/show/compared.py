"""What was compared, and how to do it again: both sides, and the commands of a build."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from bot.config.configuration import packaged_model
from bot.core.report import Report
from bot.core.snapshot import CellKey, Snapshot, titled
from bot.core.spec import PROJECT, release_in
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
from bot.show.defaults import tried_lines
from bot.show.escape import clean, clip
from bot.show.facts import VALUE_LIMIT, Facts, notes, worst_first
from bot.show.filters import plural

_COMMAND_LIMIT, _DIGEST_CHARS, _REVISION_CHARS = 2_000, 16, 10


def baseline_words(report: Report) -> Phrase:
    """How the base was found.

    And where it is not of the base commit itself, how long before it was measured.
    """
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
    """Return both sides, the baseline and the notes."""
    report = facts.report
    what = (
        "compiler version",
        "compiler revision",
        "compiler SHA-256",
        "SPEC",
        "source commit",
        "source ref",
        "flags",
    )
    rows = [
        (phrase(name), *both)
        for name, *both in zip(
            what, *map(_side, (report.base, report.head)), strict=True
        )
    ]
    remarks: Listing[str] = (
        Listing() if limits.every else notes(report, limits)
    )  # a page has them above
    defaults = [
        clip(clean(line), VALUE_LIMIT) for line in tried_lines(report.changed_defaults)
    ]
    return Fold(
        "What was compared",
        (
            Table(("", "base", "head"), listed(rows, "row"), numbers_from=3),
            Sentence(baseline_words(report)),
            List(listing(map(phrase, remarks), remarks.total, "note")),
            List(listing(map(phrase, defaults), len(defaults), "changed default")),
        ),
        name="compared",
    )


def reproduce(facts: Facts, limits: Limits) -> Fold:
    """Return the commands of the builds that have findings, the worst first; models take turns."""
    report = facts.report
    lost = {
        delta.key
        for delta in facts.states["unmeasured"]
        if None in (delta.base, delta.head)
    }
    alarming = [delta.key for delta in facts.states["newly-broken"]]
    alarming += [finding.key for finding in worst_first(report.verdict.news)]
    keys = [key for key in dict.fromkeys(alarming) if key not in lost]
    shown = fair_in_order(keys, lambda key: key.model, limits.commands)
    blocks = list[Block]()
    for key in shown:
        if len(keys) > 1:
            blocks.append(Sentence(facts.named(key)))
        blocks.append(commands_of(facts, key))
    blocks.append(List(listing((), len(keys) - len(shown), "command")))
    what = facts.named(keys[0]) if len(keys) == 1 else plural(len(keys), "build")
    return Fold(
        phrase("Reproduce ", what), tuple(blocks) if shown else (), name="commands"
    )


def _fact(value: str | None) -> Phrase:
    return phrase(code(clip(value, VALUE_LIMIT))) if value else phrase(ABSENT)


def _side(side: Snapshot) -> Iterator[Phrase]:
    compiler, source = side.compiler, side.source
    yield from map(
        _fact,
        (
            compiler.version,
            compiler.revision,
            compiler.digest[:_DIGEST_CHARS],
            compiler.spec,
        ),
    )
    yield phrase(_fact(source.sha), " with uncommitted changes" if source.dirty else "")
    yield from map(_fact, (source.ref, " ".join(side.flags)))


def commands_of(facts: Facts, key: CellKey) -> Code:
    """Return the commands of a build on both sides, with what they need: the compiler, and where the model is."""
    report, delta = facts.report, facts.deltas[key]
    sides = {"base": report.base, "head": report.head}
    commands = {
        "base": delta.base.command if delta.base else "",
        "head": delta.head.command if delta.head else "",
    }
    too_long = f"# longer than {_COMMAND_LIMIT:,} characters: see report.json"
    lines = model_source(key.model, report)
    compilers = {name: compiler_words(side) for name, side in sides.items()}
    is_one_compiler = len(set(compilers.values())) == 1
    if is_one_compiler:
        lines.append(compiler_line(compilers["head"], "base and head"))
    for names, command in by_command(commands).items():
        if is_one_compiler:
            lines += [f"# {' and '.join(names)}"] if len(names) == 1 else []
        else:
            others = [f"{name}: {compilers[name]}" for name in names[:-1]]
            lines.append(
                compiler_line(compilers[names[-1]], "; ".join([names[-1], *others]))
            )
        lines.append(command if len(command) <= _COMMAND_LIMIT else too_long)
    return Code("\n".join(lines))


def by_command(commands: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Return the sides that have each command: both where it is the same."""
    names: dict[str, list[str]] = {}
    for side, command in commands.items():
        names.setdefault(command, []).append(side)
    return {
        tuple(sides): command or "# not measured on this side"
        for command, sides in names.items()
    }


def compiler_words(side: Snapshot) -> str:
    """Return the requirement of a side's compiler, as pip takes it.

    Its version where it is not a release.
    """
    release = release_in(side.compiler.spec)
    if release:
        return f"{PROJECT}=={release}"
    return titled(clip(clean(side.compiler.version), 48)) or clip(
        clean(side.compiler.spec), 48
    )


def compiler_line(words: str, remark: str) -> str:
    """Return the line that installs a compiler; a comment where pip cannot."""
    if words.startswith(f"{PROJECT}=="):
        return f"pip install {words}  # {remark}"
    return f"# {remark}: {words}"


def model_source(model: str, report: Report) -> list[str]:
    """Return the lines that bring the model: it is in the packaged suite, or in the repository at a commit."""
    digests = {side.models.get(model) for side in (report.base, report.head)}
    packaged = packaged_model(model)
    if (
        packaged is not None
        and hashlib.sha256(packaged.read_bytes()).hexdigest() in digests
    ):
        return ["code-size-bot models --export models  # writes models/*.mlir"]
    commits = {
        name: side.source.sha
        for name, side in (("base", report.base), ("head", report.head))
        if side.source.sha
    }
    if not commits:
        return []
    return [
        "# in the repository at"
        f" {', '.join(f'{name} {sha[:_REVISION_CHARS]}' for name, sha in commits.items())}"
    ]


def reproduction(
    versions: Mapping[str, str], commands: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return pairs: a comment that names sides and compilers, and their command.

    One pair where both have the same.
    """
    pairs = []
    for names, command in by_command(commands).items():
        about = "; ".join(
            f"{name}: {titled(clip(versions.get(name, ''), 48))}" for name in names
        )
        pairs.append((f"# {about}", command))
    return pairs
