"""Draw what was compared and how to reproduce it: both sides, and the commands."""

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
    List,
    Listing,
    Phrase,
    Rank,
    Sentence,
    Span,
    Table,
    Words,
    bounded,
    code,
    fair_in_order,
    listed,
    listing,
    more_of,
    part,
    phrase,
)
from bot.show.defaults import tried_lines
from bot.show.escape import clean, clip
from bot.show.facts import VALUE_LIMIT, Facts, notes, worst_first
from bot.show.filters import plural
from bot.show.tried_flags import tried_flag_lines
from bot.show.views import View

_COMMAND_LIMIT = 2_000
_DIGEST_CHARS = 16
_REVISION_CHARS = 10


def baseline_words(report: Report) -> Phrase:
    """Return how the base was found.

    If the baseline is not of the base commit, return how many commits before it that
    was measured.
    """
    baseline = report.baseline
    base_commit: Phrase = ()
    if baseline.sha:
        base_commit = phrase(", base commit ", _short(baseline.sha))
    age: Phrase = ()
    if baseline.distance:
        distance = plural(baseline.distance, "commit")
        age = phrase(f", measured {distance} before it")
        measured_sha = report.base.source.sha
        if measured_sha:
            age = phrase(age, " at ", _short(measured_sha))
    rule = code(clip(baseline.rule, VALUE_LIMIT))
    return phrase("Baseline: ", rule, base_commit, age, ".")


def _short(sha: str) -> Span:
    return code(sha[:_REVISION_CHARS])


def compared(facts: Facts, view: View) -> Fold:
    """Return both sides, the baseline and the notes."""
    report = facts.report
    facts_of_side = (
        "compiler version",
        "compiler revision",
        "compiler SHA-256",
        "SPEC",
        "source commit",
        "source ref",
        "flags",
    )
    rows = []
    base_facts = _side(report.base)
    head_facts = _side(report.head)
    for name, base, head in zip(facts_of_side, base_facts, head_facts, strict=True):
        rows.append((phrase(name), base, head))
    remarks = List(listed(notes(report), "note"))
    if view.is_page:  # a page has the notes above
        remarks = List(Listing())
    flags = tried_flag_lines(report.changed_flags)
    defaults = []
    for line in tried_lines(report.changed_defaults):
        defaults.append(clip(clean(line), VALUE_LIMIT))
    return Fold(
        "What was compared",
        (
            Table(("", "base", "head"), listed(rows, "row"), numbers_from=3),
            Sentence(baseline_words(report)),
            bounded(remarks, Rank.LINE, view.failures),
            bounded(List(listed(flags, "changed flag")), Rank.LINE),
            bounded(List(listed(map(phrase, defaults), "changed default")), Rank.LINE),
        ),
        name="compared",
    )


def reproduce(facts: Facts, view: View) -> Fold:
    """Return the commands of the builds with findings, worst first, models in turns."""
    keys = _keys_to_reproduce(facts)

    def commands(count: int) -> Iterator[Block]:
        shown_keys = fair_in_order(keys, lambda key: key.model, count)
        for key in shown_keys:
            if len(keys) > 1:
                yield Sentence(facts.named(key))
            yield commands_of(facts, key)
        yield more_of(listing(shown_keys, len(keys), "command"))

    subject: Words = plural(len(keys), "build")
    if len(keys) == 1:
        subject = facts.named(keys[0])
    return Fold(
        phrase("Reproduce ", subject),
        (part(commands, view.commands, Rank.COMMAND),),
        name="commands",
    )


def _keys_to_reproduce(facts: Facts) -> list[CellKey]:
    """Return newly failing builds, then those with findings, without lost ones."""
    lost = set[CellKey]()
    for delta in facts.states["unmeasured"]:
        if delta.base is None or delta.head is None:
            lost.add(delta.key)
    alarming = [delta.key for delta in facts.states["newly-broken"]]
    alarming += [finding.key for finding in worst_first(facts.report.verdict.news)]
    return [key for key in dict.fromkeys(alarming) if key not in lost]


def _fact(value: str | None) -> Phrase:
    if value:
        return phrase(code(clip(value, VALUE_LIMIT)))
    return phrase(ABSENT)


def _side(side: Snapshot) -> Iterator[Phrase]:
    compiler = side.compiler
    source = side.source
    yield _fact(compiler.version)
    yield _fact(compiler.revision)
    yield _fact(compiler.digest[:_DIGEST_CHARS])
    yield _fact(compiler.spec)
    yield phrase(_fact(source.sha), " with uncommitted changes" if source.dirty else "")
    yield _fact(source.ref)
    yield _fact(" ".join(side.flags))


def commands_of(facts: Facts, key: CellKey) -> Code:
    """Return a build's commands on both sides.

    With them are the compilers and the place of the model.
    """
    report = facts.report
    delta = facts.deltas[key]
    compilers = {
        "base": compiler_words(report.base),
        "head": compiler_words(report.head),
    }
    commands = {
        "base": delta.base.command if delta.base else "",
        "head": delta.head.command if delta.head else "",
    }
    lines = model_source(key.model, report)
    is_one_compiler = compilers["base"] == compilers["head"]
    if is_one_compiler:
        lines.append(compiler_line(compilers["head"], "base and head"))
    for names, command in by_command(commands).items():
        if not is_one_compiler:
            *first_names, last_name = names
            remark = "; ".join(
                [last_name, *(f"{name}: {compilers[name]}" for name in first_names)]
            )
            lines.append(compiler_line(compilers[last_name], remark))
        elif len(names) == 1:
            lines.append(f"# {names[0]}")
        if len(command) > _COMMAND_LIMIT:
            command = f"# longer than {_COMMAND_LIMIT:,} characters: see report.json"
        lines.append(command)
    return Code("\n".join(lines))


def by_command(commands: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Return the sides that have each command: both if it is the same."""
    names: dict[str, list[str]] = {}
    for side, command in commands.items():
        names.setdefault(command, []).append(side)
    shown_commands = {}
    for command, sides in names.items():
        shown_commands[tuple(sides)] = command or "# not measured on this side"
    return shown_commands


def compiler_words(side: Snapshot) -> str:
    """Return the requirement of a side's compiler, as pip takes it.

    Return its version, or else its SPEC, if it is not a release.
    """
    release = release_in(side.compiler.spec)
    if release:
        return f"{PROJECT}=={release}"
    version = titled(clip(clean(side.compiler.version), 48))
    return version or clip(clean(side.compiler.spec), 48)


def compiler_line(compiler: str, remark: str) -> str:
    """Return the line that installs a compiler; a comment if pip cannot."""
    if compiler.startswith(f"{PROJECT}=="):
        return f"pip install {compiler}  # {remark}"
    return f"# {remark}: {compiler}"


def model_source(model: str, report: Report) -> list[str]:
    """Return the lines that bring the model.

    It is in the packaged suite, or in the repository at a commit.
    """
    digests = {side.models.get(model) for side in (report.base, report.head)}
    packaged = packaged_model(model)
    if packaged is not None:
        digest = hashlib.sha256(packaged.read_bytes()).hexdigest()
        if digest in digests:
            return ["code-size-bot models --export models  # writes models/*.mlir"]
    commits = []
    for name, side in (("base", report.base), ("head", report.head)):
        if side.source.sha:
            commits.append(f"{name} {side.source.sha[:_REVISION_CHARS]}")
    if not commits:
        return []
    return [f"# in the repository at {', '.join(commits)}"]


def reproduction(
    versions: Mapping[str, str], commands: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return pairs: a comment that names sides and compilers, and their command.

    One pair if both sides have the same command.
    """
    pairs = []
    for names, command in by_command(commands).items():
        compilers = []
        for name in names:
            version = clip(versions.get(name, ""), 48)
            compilers.append(f"{name}: {titled(version)}")
        pairs.append((f"# {'; '.join(compilers)}", command))
    return pairs
