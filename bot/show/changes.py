"""List the differences between the sides: compilers, flags, models and other inputs."""

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

_FLAG_CHARS = 100
_FEW = 3
_FLAGS = 4
FlagChange = tuple[tuple[str, str], ...]
"""Each removed flag and the added flag in its place; either is empty if missing."""
_REORDERED: FlagChange = (("", ""),)
_QUOTED = re.compile(r"""['"\\]|[^\S \t\r\n]""")
"""Characters that a shell reads differently from `str.split`.

Nearly no command has any of them, and shlex is slow.
"""


def changes(facts: Facts) -> tuple[Phrase, ...]:
    """Return a phrase for each difference between the sides; empty without any."""
    report = facts.report
    parts = list[Phrase]()
    if report.base.compiler.digest != report.head.compiler.digest:
        base_name = compiler_name(report.base.compiler)
        head_name = compiler_name(report.head.compiler)
        if base_name == head_name:
            parts.append(phrase("compiler ", base_name, ", another build on head"))
        else:
            parts.append(phrase("compiler ", base_name, " → ", head_name))
    parts += [*_flags(facts), *_models(report), *_inputs(report)]
    return (*parts, *_came_and_went("target", report.base.targets, report.head.targets))


def _inputs(report: Report) -> Iterator[Phrase]:
    """Yield the changed files that builds read beside their model.

    Then yield for how many builds not all of these files are known.
    """
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
        ending = ""
        if len(names) > 1:
            ending = f" and {plural(len(names) - 1, 'other model')}"
        yield phrase(
            "files read beside the model ", code(clip(names[0], NAME_LIMIT)), ending
        )
    if unknown:
        yield phrase(
            f"unknown for {plural(unknown, 'build')}: the bot does not know all files"
            " that they read"
        )


def compiler_name(compiler: CompilerInfo) -> Phrase:
    """Return a release as the user gave it, `IREE 3.13.0`.

    For any other SPEC, return the version and the SPEC. `latest` and `nightly` come
    with the release that they were.
    """
    name = titled(compiler.version)
    spec = compiler.spec
    release = release_in(compiler.spec)
    if " " in compiler.version:  # such a version is a name already
        spec = ""
    elif release:
        name = titled(release)
        spec = spec.rpartition(RESOLVED)[0]
    elif not compiler.version and not spec:
        name = "not known"
    text = phrase(clip(clean(name), 48))
    if spec:
        text = phrase(text, " (", code(clip(spec, 48)), ")")
    return text


def _flags(facts: Facts) -> Iterator[Phrase]:
    """Yield each difference of flags, with its builds.

    The builds are not named if all of them have the same difference.
    """
    groups: dict[FlagChange, list[CellKey]] = {}
    for delta in facts.report.deltas:
        change = _flag_change(delta)
        if change is not None:
            groups.setdefault(change, []).append(delta.key)
    different = [(change, keys) for change, keys in groups.items() if change]
    for change, keys in different[:_FLAGS]:
        where: Phrase = ()
        if len(groups) > 1:
            where = phrase(" for ", cells_phrase(facts, keys, _FEW))
        yield phrase(_flag_words(change), where)
    if len(different) > _FLAGS:
        yield phrase(f"{plural(len(different) - _FLAGS, 'more difference')} of flags")


def _flag_change(delta: CellDelta) -> FlagChange | None:
    """Return the removed and added flags; None if a side's command cannot be read.

    A value replaces another one if its option occurs once on each side. If an option
    occurs several times, it is not known which value replaces which.
    """
    base_flags = _flags_of(delta.base)
    head_flags = _flags_of(delta.head)
    if base_flags is None or head_flags is None:
        return None
    if base_flags == head_flags:
        return ()
    went = Counter(base_flags) - Counter(head_flags)
    came = Counter(head_flags) - Counter(base_flags)
    base_options = Counter(map(_option, base_flags))
    head_options = Counter(map(_option, head_flags))
    new_flags = {}
    for flag in came:
        option = _option(flag)
        if base_options[option] == head_options[option] == 1:
            new_flags[option] = flag
    pairs = [(flag, new_flags.get(_option(flag), "")) for flag in went.elements()]
    for flag in came.elements():
        if _option(flag) not in new_flags:
            pairs.append(("", flag))
    return tuple(pairs) or _REORDERED


def _option(flag: str) -> str:
    return flag.partition("=")[0]


def _flags_of(cell: Cell | None) -> tuple[str, ...] | None:
    """Return the flags of a build's command.

    Where the stack gate refused a build, the bot itself added the flag that lifts the
    limit, so this flag is left out. None without a command that can be read.
    """
    flags = _flags_in(cell.command) if cell else None
    if flags is None or not is_over(cell):
        return flags
    return tuple(flag for flag in flags if flag != LIFTED_LIMIT_FLAG)


@lru_cache(maxsize=1)
def _flags_in(command: str) -> tuple[str, ...] | None:
    """Return the flags in a command; remembered, as both sides often have the same."""
    try:
        if _QUOTED.search(command):
            arguments = shlex.split(command)
        else:
            arguments = command.split()
    except ValueError:
        return None
    if not arguments:
        return None
    return tuple(argument for argument in arguments if argument.startswith("--"))


def _flag_words(change: FlagChange) -> Phrase:
    """Return ``flag `--cpu=v3` → `v4` ``, or ``flag `--x` added``."""
    if change == _REORDERED:
        return phrase("flags in another order")
    parts = list[Phrase]()
    for old, new in change:
        flag = code(clip(old or new, _FLAG_CHARS))
        if old and new:
            value = clip(new.partition("=")[2] or new, _FLAG_CHARS)
            parts.append(phrase(flag, " → ", code(value)))
        else:
            parts.append(phrase(flag, " added" if new else " removed"))
    noun = "flag " if len(parts) == 1 else "flags "
    return phrase(noun, some(parts[:_FLAGS], len(parts)))


def _models(report: Report) -> Iterator[Phrase]:
    base = report.base.models
    head = report.head.models
    edits = {edit.model: edit for edit in report.edits}
    edited = []
    for name in sorted(base.keys() & head.keys()):
        if base[name] != head[name]:
            edited.append(name)
    for name in edited[:_FEW]:
        yield phrase(
            "model ", code(clip(name, NAME_LIMIT)), " edited", _edit(edits.get(name))
        )
    if len(edited) > _FEW:
        yield phrase(f"{plural(len(edited) - _FEW, 'more model')} edited")
    yield from _came_and_went("model", base, head)


def _edit(edit: ModelEdit | None) -> Phrase:
    """Return `` (operations: `classifier` +2, `pooler` −1 and 3 more)``.

    The largest change comes first. Empty if a side is not known. Operations are counted
    by their component. If no component is known, they are counted by their name.
    """
    if edit is None or edit.operations is None or edit.components is None:
        return ()
    counts = dict(edit.components)
    counts.pop(UNATTRIBUTED, None)
    if not counts:
        counts = dict(edit.operations)
    ordered = sorted(counts.items(), key=lambda item: (-abs(item[1]), item[0]))
    parts = []
    for name, count in ordered[:_FEW]:
        parts.append(phrase(code(clip(name, 48)), f" {signed(count, 'count')}"))
    operations = some(parts, len(ordered)) or "none added or removed"
    return phrase(" (operations: ", operations, ")")


def _came_and_went(
    noun: str, base: Mapping[str, str], head: Mapping[str, str]
) -> Iterator[Phrase]:
    for names, event in (
        (sorted(head.keys() - base.keys()), "new"),
        (sorted(base.keys() - head.keys()), "removed"),
    ):
        if names:
            cells = [name_cell(clip(name, NAME_LIMIT)) for name in names[:_FEW]]
            nouns = noun if len(names) == 1 else f"{noun}s"
            yield phrase(f"{nouns} ", some(cells, len(names)), f" {event}")
