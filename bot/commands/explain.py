"""The story of `explain`: from a report that somebody made to what it says of one cell.

The file may come from anywhere, so that every value's type is checked before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from bot.core.codec.checked import INT, STR, Fields, flat, shown, table_of
from bot.core.codec.nesting import parse_json
from bot.core.metrics import METRIC_BY_ID, METRIC_IDS
from bot.core.rules.delta import MetricDelta
from bot.core.values.explanation import ComponentDelta, DispatchDelta, Explanation, PartDelta
from bot.core.values.program import Family
from bot.core.values.snapshot import CellKey, Dispatch
from bot.core.values.whole_report import REPORT_SCHEMA
from bot.errors import InputError, UsageError
from bot.render.terminal.cell_text import Told, print_cell, print_dispatch

_SIDES = ("base", "head")
_NAMES_TOLD = 8
_DISPATCH, _FAMILY = table_of(Dispatch), table_of(Family)
T = TypeVar("T")


def explain(path: Path, model: str, target: str, dispatch: str | None, console: Console) -> None:
    """Tell what the report says of one cell, or of one of its dispatches.

    Args:
        model, target, dispatch: exact names, or globs that match one name.

    Raises:
        InputError: the file is no report.
        UsageError: a name is not in it, or a glob matches several.
    """
    report = _load(path)
    try:
        told = _told(report, model, target)
    except InputError as error:
        raise _no_report(path, error.line) from None
    if dispatch is None:
        print_cell(told, console)
        return
    deltas = told.explanation.dispatches if told.explanation else ()
    name = _chosen("dispatch", dispatch, [delta.name for delta in deltas])
    for delta in deltas:
        if delta.name == name:
            print_dispatch(told, delta, console)


def _no_report(path: Path, why: str) -> InputError:
    return InputError(f"is no report: {why}", where=str(path), hint="name the report.json of a compare")


def _load(path: Path) -> _Object:
    try:
        plain = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it cannot be read as JSON"
        raise _no_report(path, reason) from None
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema != REPORT_SCHEMA:
        raise _no_report(path, f"its schema is {shown(schema)}, not {REPORT_SCHEMA!r}")
    return _Object(plain, "report")


class _Object(Fields):
    """An object that may have more fields than are asked for: later versions add some."""

    def __init__(self, value: Any, path: str) -> None:
        super().__init__(value, path, frozenset(value) if isinstance(value, dict) else frozenset())

    def inner(self, name: str) -> _Object:
        """The object in a field; an empty one where it is absent."""
        return _Object(self.get(name, dict, {}), f"{self.path}.{name}")

    def each(self, name: str, make: Callable[[_Object], T]) -> tuple[T, ...]:
        """The objects of a list."""
        entries = enumerate(self.items(name))
        return tuple(make(_Object(entry, f"{self.path}.{name}[{index}]")) for index, entry in entries)

    def words(self, name: str) -> dict[str, str]:
        """A text for each side; empty where there is none."""
        inner = self.inner(name)
        return {side: inner.get(side, STR, None) or "" for side in _SIDES}


def _told(report: _Object, model: str, target: str) -> Told:
    cells = {CellKey(cell.get("model", str), cell.get("target", str)): cell for cell in report.each("cells", _itself)}
    model = _chosen("model", model, [key.model for key in cells])
    key = CellKey(model, _chosen("target", target, [key.target for key in cells if key.model == model]))
    cell, failure = cells[key], cells[key].inner("failure")
    return Told(
        key,
        cell.get("state", str),
        cell.get("reason", str, ""),
        cell.words("status"),
        {side: _message(failure, side) for side in _SIDES},
        cell.words("command"),
        {side: report.inner(side).inner("compiler").get("version", str, "") for side in _SIDES},
        tuple(_findings(report, key)),
        tuple(_metrics(cell.inner("metrics"))),
        _explanation(cell),
        cell.each("families", lambda one: flat(Family, _FAMILY, one.value, one.path)),
        tuple(_roots(report, key)),
    )


def _roots(report: _Object, key: CellKey) -> Iterable[tuple[str | None, str, int]]:
    for root in report.each("root_causes", _itself):
        cells = root.each("cells", lambda one: CellKey(one.get("model", str), one.get("target", str)))
        if key in cells:
            yield root.get("cause", STR, None), root.get("what", str), root.inner("bytes").get("net", int)


def _itself(found: _Object) -> _Object:
    return found


def _chosen(what: str, wanted: str, names: Sequence[str]) -> str:
    """The one name that is meant."""
    known = list(dict.fromkeys(names))
    if wanted in known:
        return wanted
    matching = [name for name in known if fnmatchcase(name, wanted)]
    if len(matching) > 1:
        raise UsageError(f"{wanted!r} matches several: {_some(matching)}", where=f"--{what}", hint="name one of them")
    if not matching:
        raise UsageError(f"no {what} of the report is {wanted!r}", where=f"--{what}", hint=_hint(wanted, known))
    return matching[0]


def _hint(wanted: str, known: Sequence[str]) -> str:
    near = get_close_matches(wanted, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there is {_some(known)}" if known else "there is none"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_TOLD]) + (", …" if len(names) > _NAMES_TOLD else "")


def _message(failure: _Object, side: str) -> str:
    if failure.get(side, (dict, type(None)), None) is None:
        return ""
    message: str = failure.inner(side).get("message", str, "")
    return message


def _findings(report: _Object, key: CellKey) -> Iterable[tuple[str, str]]:
    for one in report.inner("verdict").each("findings", _itself):
        if (one.get("model", str), one.get("target", str)) == (key.model, key.target):
            metric = METRIC_BY_ID.get(one.get("metric", STR, None) or "")
            about = metric.label if metric else "state"
            words = (one.get(name, str, "") for name in ("actual", "rule", "limit"))
            yield one.get("level", str), "{}: {} (rule {}: {})".format(about, *words)


def _metrics(metrics: _Object) -> Iterable[MetricDelta]:
    for id_ in METRIC_IDS:
        both = metrics.inner(id_)
        yield MetricDelta(id_, both.get("base", INT, None), both.get("head", INT, None))


def _explanation(cell: _Object) -> Explanation | None:
    """None where the report says nothing of why."""
    made = Explanation(
        cell.get("cause", STR, None),
        cell.get("first", STR, None) or cell.get("phase", STR, None),
        cell.get("why", str, ""),
        cell.each("dispatches", _dispatch_delta),
        unchanged=cell.get("unchanged", INT, None) or 0,
        rebased=cell.get("rebased", INT, None) or 0,
        short_digests=cell.get("short_digests", bool, False),
        components=cell.each("components", _component),
        waterfall=cell.mapping("waterfall", (int,)),
        parts=cell.each("parts", _part),
    )
    return made if made.cause or made.why or made.dispatches or made.components else None


def _dispatch_delta(found: _Object) -> DispatchDelta:
    base, head = (_dispatch(found, side) for side in _SIDES)
    matched, component, note = (found.get(name, str, "") for name in ("matched", "component", "note"))
    if base is None and head is None:
        raise InputError("neither side has the dispatch", where=found.path)
    return DispatchDelta(base, head, matched, found.get("cause", STR, None), component, note, found.strings("diff"))


_DISPATCH_FIELDS = {one.name for one in fields(Dispatch)}


def _dispatch(found: _Object, side: str) -> Dispatch | None:
    value = found.get(side, (dict, type(None)), None)
    if value is None:
        return None
    known = {name: entry for name, entry in value.items() if name in _DISPATCH_FIELDS}
    made: Dispatch = flat(Dispatch, _DISPATCH, known, f"{found.path}.{side}")
    return made


def _part(found: _Object) -> PartDelta:
    return PartDelta(found.get("cause", str), found.get("what", str), found.get("change_bytes", int))


def _component(found: _Object) -> ComponentDelta:
    return ComponentDelta(found.get("name", str), *(found.mapping(side, INT) for side in _SIDES))
