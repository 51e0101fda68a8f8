"""What one model's target-independent IR says: the worker's answer to the request `program`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from .ir_families import families
from .ir_kinds import PLAIN, collect, is_linalg, name_of
from .ir_members import read
from .ir_stream import entry_point_of, generic, hexadecimal, stream, tops_of, without_names

Answer = dict[str, Any]
COMPONENT_CHARACTERS = 200  # a component has no more than these
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FILE_POSITION = re.compile(r":\d+(?::\d+)?(?: to \d*:\d+)?")
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>]=|[<({\[]|[>)}\]]')
MOST_PLACES = 1_000  # so many places are counted in one model; what further ones have counts as without a place
_STRUCTURE = frozenset({"builtin", "func", "util", "hal", "ml_program", "cf"})
"""Dialects of modules, functions, weights and the calling convention around the model; of branches and assertions."""
_NO_OPERATIONS = frozenset({"tensor.empty", "linalg.index", "iree_linalg_ext.index"})
"""The place of a result, the number of a loop."""
_SAYS_ITS_BODY = frozenset({"linalg.generic", "linalg.map", "linalg.reduce"})
"""All other operations of linalg have the body that their name stands for."""
_CONSTANTS = frozenset({"arith.constant", "complex.constant", "ub.poison"})


def program(ir: Any, load: Callable[[str], Any], files: Mapping[str, Any]) -> Answer:
    """The answer; one module at a time is in memory.

    `load`: the module of a file; `files`: `dispatch_creation` and `stream` → path; `input`, `global_optimization` and
    `flow` where at hand.
    """
    answer = {**_regions(ir, load(files["dispatch_creation"])), **stream(ir, load(files["stream"]))}
    phases: dict[str, str] = {}
    answer |= {"phases": phases, "linalg_ops_before": None, "operations": None, "places": {}}
    for phase in ("input", "global-optimization"):
        path = files.get(phase.replace("-", "_"))
        if path is not None:
            module = load(path)
            phases[phase] = _digest(module)
            if phase == "input":
                answer |= contents(ir, module)
            else:
                answer["linalg_ops_before"] = len(collect(ir, module, is_linalg))
    if files.get("flow") is None:
        return {**answer, "sources": [], "sites": [], "families": None}
    return {**answer, **_flow(ir, load(files["flow"]))}


def _regions(ir: Any, module: Any) -> Answer:
    regions = collect(ir, module, ("flow.dispatch.workgroups",))
    inside = sum(len(collect(ir, region, is_linalg)) for region in regions)
    return {"dispatch_regions": len(regions), "linalg_ops": inside}


def _flow(ir: Any, module: Any) -> Answer:
    """`sources` and `sites`, both in the program's order, and `families`."""
    sources = []
    for executable in collect(ir, module, ("flow.executable",)):
        functions = collect(ir, executable, ("func.func",))
        named = [*functions, *collect(ir, executable, ("flow.executable.export",)), executable]
        own_names = {name_of(op) for op in named}
        texts = {"generic": map(generic, functions), "shown": (each.get_asm(**PLAIN) for each in functions)}
        cleaned = {form: without_names("\n".join(each), own_names) for form, each in texts.items()}
        sources.append({"executable": name_of(executable), **cleaned})
    sites = [
        {
            "entry_point": entry_point_of(op)[-1],
            "component": component_of(str(op.location)),
            "initializer": top.name == "util.initializer",
        }
        for top in tops_of(ir, module)
        for op in ([] if top.name == "flow.executable" else collect(ir, top, ("flow.dispatch",)))
    ]
    try:
        alike: list[Answer] | None = families(ir, list(read(ir, module)[0].values()))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        alike = None  # another release writes it otherwise: all else does not need it
    return {"sources": sources, "sites": sites, "families": alike}


def _digest(module: Any) -> str:
    """Over all functions and data of a module, without the devices that it is for.

    The module is printed as a whole: printing an operation of it takes as long. The module's own lines, which have
    its attributes, are those that are not indented.
    """
    lines = [line for line in generic(module.operation).split("\n") if line.startswith(" ")]
    rest = [line for line in lines if not (line.startswith('  "util.global"') and "type = !hal.device" in line)]
    return hexadecimal("\n".join(rest))


# What a model's own program consists of, by the `input` phase, in which whatever the model was written in has become
# operations that all targets share.


def contents(ir: Any, module: Any) -> Answer:
    """`operations`: name → count; `places`: the model's own name of a place → count, "" for what has none.

    Places count whole operations: neither what stands in the body of another one, nor constants, which many share.
    """
    operations, places, components = Counter[str](), Counter[str](), dict[str, str]()

    def visit(op: Any) -> Any:
        name = op.name
        if not is_operation(name):
            return ir.WalkResult.ADVANCE
        if name not in _CONSTANTS:
            location = str(op.location)
            if location not in components:
                components[location] = component_of(location) or ""
            place = components[location]
            places[place if place in places or len(places) < MOST_PLACES else ""] += 1
        if name.startswith("scf."):  # a loop over operations, not one that has a body
            operations[name] += 1
            return ir.WalkResult.ADVANCE
        says_its_body = name in _SAYS_ITS_BODY or not name.startswith(("linalg.", "arith."))
        whole = collect(ir, op, is_operation) if says_its_body else [op]
        operations.update(each.name for each in whole)
        return ir.WalkResult.SKIP

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return {"operations": dict(operations), "places": dict(places)}


def is_operation(name: str) -> bool:
    """True for what computes, moves or holds values of the model; False for the structure around it."""
    dialect, _, last = name.partition(".")
    return not (dialect in _STRUCTURE or last in ("yield", "return") or name in _NO_OPERATIONS)


# The model's own name of a place, from the text of an MLIR location: that is the same in all compiler releases, while
# the bindings' classes for locations are not. Up to 3.11.0 there is only one, whose accessors crash the process on
# locations of another kind.


def component_of(location: str) -> str | None:
    """The name in a location's text: of its NameLoc, of its callee, or of the first fused part that has one.

    Names end at their first `;` (TFLite joins the names of merged operations so). None for places in files, and for
    names that name nothing, such as `<root>` and `%0`.
    """
    return _component(location, len("loc("))[0] if location.startswith("loc(") else None


def _component(text: str, at: int) -> tuple[str | None, int]:
    """The component of the location that starts there (MLIR's LangRef, "Location Attributes"), and the place behind."""
    if text.startswith("callsite(", at):
        start = at + len("callsite")
        return _component(text, start + 1)[0], _behind_brackets(text, start)
    if text.startswith("fused", at):
        at += len("fused")
        if text.startswith("<", at):
            at = _behind_brackets(text, at)
        component, end = None, _behind_brackets(text, at)
        while component is None and at < end - 1:
            at += 1  # the bracket, or the comma
            component, at = _component(text, at + text.startswith(" ", at))
        return component, end
    string = _STRING.match(text, at)
    if string is None:  # `unknown`, and whatever releases to come may print
        while at < len(text) and text[at] not in ",)]":
            at = _behind_brackets(text, at) if text[at] in "<([{" else at + 1
        return None, at
    at = string.end()
    if position := _FILE_POSITION.match(text, at):
        return None, position.end()
    return _name(string[1]), _behind_brackets(text, at) if text.startswith("(", at) else at


def _behind_brackets(text: str, start: int) -> int:
    """The place behind the bracket that closes the one at the start."""
    depth = 0
    for token in _BRACKETS.finditer(text, start):
        depth += (token[0] in "<({[") - (token[0] in ">)}]")
        if not depth:
            return token.end()
    return len(text)


def _name(escaped: str) -> str | None:
    r"""The printed name as it was: MLIR escapes as `\\`, or as two hexadecimal digits of a UTF-8 byte."""
    data = _ESCAPE.sub(
        lambda match: bytes.fromhex(match[1].decode()) if len(match[1]) == 2 else match[1],
        escaped.encode("utf-8", "replace"),
    )
    name = data.decode("utf-8", "replace").partition(";")[0]
    if name == "<root>" or not any(map(str.isalpha, name)):
        return None
    return "".join(each if each.isprintable() else "?" for each in name[:COMPONENT_CHARACTERS])
