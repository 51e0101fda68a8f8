"""What is not the same on both sides, as its author would say it: compilers, flags, models."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.report import Report
from bot.core.snapshot import UNLISTED, Cell, CellKey, CompilerInfo, ModelEdit, titled
from bot.core.spec import RESOLVED, release_in
from bot.show.blocks import Phrase, code, name_cell, phrase, some
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, cells_phrase, is_over
from bot.show.filters import plural, signed

_FLAG_CHARS, _FEW, _FLAGS = 100, 3, 4
FlagChange = tuple[
    tuple[str, str], ...
]  # Each flag that went and what came for it; empty where there is no such one
_REORDERED: FlagChange = (("", ""),)
_QUOTED = re.compile(r"""['"\\]|[^\S \t\r\n]""")
"""What makes words otherwise than at white space, as a shell knows it; nearly no command has any, and shlex is slow."""


def changes(facts: Facts) -> tuple[Phrase, ...]:
    """What is not the same on both sides, a phrase each; empty where all is."""
    report = facts.report
    parts = list[Phrase]()
    if report.base.compiler.digest != report.head.compiler.digest:
        left, right = (
            compiler_name(report.base.compiler),
            compiler_name(report.head.compiler),
        )
        parts.append(
            phrase(
                "compiler ",
                left,
                *(" → ", right) if left != right else (", another build on head",),
            )
        )
    parts += [*_flags(facts), *_models(report), *_inputs(report)]
    return (*parts, *_came_and_went("target", report.base.targets, report.head.targets))


def _inputs(report: Report) -> Iterator[Phrase]:
    """Files that builds read beside their model: those that changed, and that not all are known."""
    unknown = 0
    models = set[str]()
    for delta in report.deltas:
        if delta.base is None or delta.head is None:
            continue
        inputs = delta.base.inputs, delta.head.inputs
        if UNLISTED in inputs:
            unknown += 1
        elif inputs[0] != inputs[1]:
            models.add(delta.key.model)
    if models:
        names = sorted(models)
        more = f" and {plural(len(names) - 1, 'other model')}" if len(names) > 1 else ""
        yield phrase(
            "files read beside the model ", code(clip(names[0], NAME_LIMIT)), more
        )
    if unknown:
        yield phrase(
            f"unknown for {plural(unknown, 'build')}: the bot does not know all files"
            " that they read"
        )


def compiler_name(compiler: CompilerInfo) -> Phrase:
    """A release as the user gave it, `IREE 3.13.0`; of any other SPEC the version, and the SPEC.

    `latest` and `nightly` come with the release that they were.
    """
    name, spec, release = (
        titled(compiler.version),
        compiler.spec,
        release_in(compiler.spec),
    )
    if " " in compiler.version:  # it says itself what it is
        spec = ""
    elif release:
        name, spec = titled(release), spec.rpartition(RESOLVED)[0]
    elif not compiler.version and not spec:
        name = "not known"
    return phrase(
        clip(clean(name), 48),
        *(phrase(" (", code(clip(spec, 48)), ")") if spec else ()),
    )


def _flags(facts: Facts) -> Iterator[Phrase]:
    """Each difference of flags, and of which cells; nothing of where it is all of them."""
    groups: dict[FlagChange, list[CellKey]] = {}
    for delta in facts.report.deltas:
        if (change := _flag_change(delta)) is not None:
            groups.setdefault(change, []).append(delta.key)
    different = [(change, keys) for change, keys in groups.items() if change]
    for change, keys in different[:_FLAGS]:
        where = (
            phrase(" for ", cells_phrase(facts, keys, _FEW)) if len(groups) > 1 else ()
        )
        yield phrase(_flag_words(change), where)
    if len(different) > _FLAGS:
        yield phrase(f"{plural(len(different) - _FLAGS, 'more difference')} of flags")


def _flag_change(delta: CellDelta) -> FlagChange | None:
    """None where a side's command is not known, or cannot be read.

    A value comes for another where the option is there once on each side: of several
    nobody knows which is for which.
    """
    base, head = _flags_of(delta.base), _flags_of(delta.head)
    if base is None or head is None or base == head:
        return None if None in (base, head) else ()
    went, came = Counter(base) - Counter(head), Counter(head) - Counter(base)
    left, right = (Counter(map(_option, flags)) for flags in (base, head))
    new = {
        name: flag for flag in came if left[name := _option(flag)] == right[name] == 1
    }
    alone = [("", flag) for flag in came.elements() if _option(flag) not in new]
    return (
        *((old, new.get(_option(old), "")) for old in went.elements()),
        *alone,
    ) or _REORDERED


def _option(flag: str) -> str:
    return flag.partition("=")[0]


def _flags_of(cell: Cell | None) -> tuple[str, ...] | None:
    """The flags of a cell's command.

    The limit that is lifted where the stack gate refused a cell is the bot's own.

    None where there is no command, or none that can be read.
    """
    flags = _flags_in(cell.command) if cell else None
    if flags is None or not is_over(cell):
        return flags
    return tuple(flag for flag in flags if flag != LIFTED_LIMIT_FLAG)


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
    if change == _REORDERED:
        return phrase("flags in another order")
    parts = list[Phrase]()
    for old, new in change:
        words = (
            (" → ", code(clip(new.partition("=")[2] or new, _FLAG_CHARS)))
            if old and new
            else ()
        )
        parts.append(
            phrase(
                code(clip(old or new, _FLAG_CHARS)),
                *(words or (" added" if new else " removed",)),
            )
        )
    return phrase(
        "flag " if len(parts) == 1 else "flags ", some(parts[:_FLAGS], len(parts))
    )


def _models(report: Report) -> Iterator[Phrase]:
    base, head, edits = (
        report.base.models,
        report.head.models,
        {edit.model: edit for edit in report.edits},
    )
    edited = sorted(
        name for name in base.keys() & head.keys() if base[name] != head[name]
    )
    for name in edited[:_FEW]:
        yield phrase(
            "model ", code(clip(name, NAME_LIMIT)), " edited", _edit(edits.get(name))
        )
    if len(edited) > _FEW:
        yield phrase(f"{plural(len(edited) - _FEW, 'more model')} edited")
    yield from _came_and_went("model", base, head)


def _edit(edit: ModelEdit | None) -> Phrase:
    """`` (operations: `classifier` +2, `pooler` −1 and 3 more)``, the largest first.

    Empty where a side is not known.

    Operations are counted by their component. Where no component is known, they are
    counted by their name.
    """
    if edit is None or edit.operations is None or edit.components is None:
        return ()
    named = {
        name: count for name, count in edit.components.items() if name != UNATTRIBUTED
    }
    ordered = sorted(
        (named or edit.operations).items(), key=lambda one: (-abs(one[1]), one[0])
    )
    parts = (
        phrase(code(clip(name, 48)), f" {signed(count, 'count')}")
        for name, count in ordered[:_FEW]
    )
    counts = some(parts, len(ordered)) or "none added or removed"
    return phrase(" (operations: ", counts, ")")


def _came_and_went(
    noun: str, base: Mapping[str, str], head: Mapping[str, str]
) -> Iterator[Phrase]:
    for names, what in (
        (sorted(head.keys() - base.keys()), "new"),
        (sorted(base.keys() - head.keys()), "removed"),
    ):
        shown = some(
            (name_cell(clip(name, NAME_LIMIT)) for name in names[:_FEW]), len(names)
        )
        if names:
            yield phrase(
                f"{noun if len(names) == 1 else noun + 's'} ", shown, f" {what}"
            )
