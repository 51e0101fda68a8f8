"""What a change consists of, as its author would say it: compiler, flags of each target, models and targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from bot.core.delta import CellDelta
from bot.core.explanation import UNATTRIBUTED
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.snapshot import Cell, CellKey, CompilerInfo, ModelEdit
from bot.core.spec import RESOLVED, release_in
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, cells_phrase, is_over
from bot.show.filters import plural, signed
from bot.show.phrase import Phrase, code, joined, phrase

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
