"""List the differences between the sides: compilers, flags, models and other inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.core.explanation import UNATTRIBUTED
from bot.core.flag_changes import REORDERED, FlagChange, flag_change
from bot.core.report import Report
from bot.core.snapshot import UNLISTED, CellKey, CompilerInfo, ModelEdit, titled
from bot.core.spec import RESOLVED, release_in
from bot.show.blocks import Phrase, Span, code, name_cell, phrase, some
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts, cells_phrase
from bot.show.filters import plural, signed

_FLAG_CHARS = 100
_FEW = 3
_FLAGS = 4


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
        change = flag_change(delta)
        if change is not None:
            groups.setdefault(change, []).append(delta.key)
    different = [(change, keys) for change, keys in groups.items() if change]
    for change, keys in different[:_FLAGS]:
        where: Phrase = ()
        if len(groups) > 1:
            where = phrase(" for ", cells_phrase(facts, keys, _FEW))
        yield phrase(flag_words(change), where)
    if len(different) > _FLAGS:
        yield phrase(f"{plural(len(different) - _FLAGS, 'more difference')} of flags")


def flag_words(change: FlagChange) -> Phrase:
    """Return ``flag `--cpu=v3` → `v4` ``, or ``flag `--x` added``."""
    if change == REORDERED:
        return phrase("flags in another order")
    parts = list[Phrase]()
    for old, new in change:
        flag = flag_code(old or new)
        if old and new:
            value = clip(new.partition("=")[2] or new, _FLAG_CHARS)
            parts.append(phrase(flag, " → ", code(value)))
        else:
            parts.append(phrase(flag, " added" if new else " removed"))
    noun = "flag " if len(parts) == 1 else "flags "
    return phrase(noun, some(parts[:_FLAGS], len(parts)))


def flag_code(flag: str) -> Span:
    """Return a flag as code, clipped."""
    return code(clip(flag, _FLAG_CHARS))


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
