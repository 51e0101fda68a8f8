"""What one model's target-independent IR says: the worker's answer to the request `program`.

Imports the standard library only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
    from bot.readers.ir_worker.ir_bindings import parts_of
    from bot.readers.ir_worker.ir_contents import contents
    from bot.readers.ir_worker.ir_families import families
    from bot.readers.ir_worker.ir_locations import component_of
    from bot.readers.ir_worker.ir_members import read
    from bot.readers.ir_worker.ir_memory import schedule
else:
    import ir_kinds  # the script's own folder is first on sys.path
    from ir_bindings import parts_of
    from ir_contents import contents
    from ir_families import families
    from ir_locations import component_of
    from ir_members import read
    from ir_memory import schedule

Answer = dict[str, Any]
ARGUMENT_VALUES = 16
"""So many different constants of an argument are listed."""
_INT_LIMIT = 1 << 53
"""That of `bot.core.record`, which a process beside the compiler cannot import."""

_PLAIN = {"use_local_scope": True, "enable_debug_info": False}
_DISPATCHES = ("stream.cmd.dispatch", "stream.async.dispatch")
_TRAILING_ZEROS = re.compile(r"(SegmentSizes = array<i32: \d+(?:, \d+)*?)(?:, 0)+>")


class ProgramReader:
    """Answers with the bindings (`iree.compiler.ir`) and a function that gives the module of a file."""

    def __init__(self, ir: Any, load: Callable[[str], Any]) -> None:
        self.ir, self.load = ir, load

    def answer(self, files: Mapping[str, Any]) -> Answer:
        """The answer; one module at a time is in memory.

        Args:
            files: `dispatch_creation` and `stream` → path; `input`, `global_optimization` and `flow` where at hand.
        """
        return {
            **self._regions(self.load(files["dispatch_creation"])),
            **self._stream(self.load(files["stream"])),
            **self._whole_programs(files),
            **self._flow(files.get("flow")),
        }

    def _collect(self, root: Any, names: Collection[str] | Callable[[str], bool]) -> list[Any]:
        return ir_kinds.collect(self.ir, root, names)

    def _regions(self, module: Any) -> Answer:
        regions = self._collect(module, ("flow.dispatch.workgroups",))
        inside = sum(len(self._collect(region, ir_kinds.is_linalg)) for region in regions)
        return {"dispatch_regions": len(regions), "linalg_ops": inside}

    def _whole_programs(self, files: Mapping[str, Any]) -> Answer:
        """`phases`, `linalg_ops_before`, `operations` and `places`, of the phases at hand."""
        phases, linalg_ops = {}, None
        consists: Answer = {"operations": None, "places": {}}
        for phase in ("input", "global-optimization"):
            path = files.get(phase.replace("-", "_"))
            if path is not None:
                module = self.load(path)
                phases[phase] = _digest(module)
                if phase == "input":
                    consists = contents(self.ir, module)
                else:
                    linalg_ops = len(self._collect(module, ir_kinds.is_linalg))
        return {"phases": phases, "linalg_ops_before": linalg_ops, **consists}

    def _children(self, module: Any) -> list[Any]:
        """The operations at the top; see `ir_kinds.collect` for why by a walk."""
        tops: list[Any] = []

        def visit(op: Any) -> Any:
            if op.name == "builtin.module":
                return self.ir.WalkResult.ADVANCE
            tops.append(op)
            return self.ir.WalkResult.SKIP

        module.operation.walk(visit, self.ir.WalkOrder.PRE_ORDER)
        return tops

    def _flow(self, path: str | None) -> Answer:
        """`sources` and `sites`, both in the program's order, and `families`; without the phase empty, and None."""
        if path is None:
            return {"sources": [], "sites": [], "families": None}
        module, sources = self.load(path), []
        for executable in self._collect(module, ("flow.executable",)):
            functions = self._collect(executable, ("func.func",))
            named = [*functions, *self._collect(executable, ("flow.executable.export",)), executable]
            own_names = {op.attributes["sym_name"].value for op in named}
            texts = {"generic": map(_generic, functions), "shown": (each.get_asm(**_PLAIN) for each in functions)}
            cleaned = {form: _without_names("\n".join(each), own_names) for form, each in texts.items()}
            sources.append({"executable": executable.attributes["sym_name"].value, **cleaned})
        sites = [
            {
                "entry_point": _entry_point(op)[-1],
                "component": component_of(str(op.location)),
                "initializer": top.name == "util.initializer",
            }
            for top in self._children(module)
            for op in ([] if top.name == "flow.executable" else self._collect(top, ("flow.dispatch",)))
        ]
        try:
            alike: list[Answer] | None = families(self.ir, list(read(module)[0].values()))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            alike = None  # another release writes it otherwise: all else does not need it
        return {"sources": sources, "sites": sites, "families": alike}

    def _stream(self, module: Any) -> Answer:
        """Executables and their launches; of the alternatives that a launch may have, the first listed counts."""
        executables = self._collect(module, ("stream.executable",))
        dispatches = self._collect(module, _DISPATCHES)
        sites = Counter(map(_entry_point, dispatches))
        entry_points = [
            {**entry, "sites": sites.pop((entry["executable"], entry["entry_point"]), 0)}
            for executable in executables
            for entry in self._entry_points(executable)
        ]
        if sites:
            raise ValueError(f"dispatch of {'::'.join(min(sites))}, which no stream.executable exports")
        tops = self._children(module)
        outside = [top for top in tops if top.name != "stream.executable"]
        makers = [op for top in outside for op in self._collect(top, ("arith.constant",))]
        constants = {op.results[0]: _integer(op.attributes["value"]) for op in makers}
        once = [top for top in tops if top.name == "util.initializer"]
        try:
            submitted: Answer | None = schedule(self.ir, tops, constants)
        except (ValueError, KeyError, IndexError):
            submitted = None  # another release writes it otherwise: all else does not need it
        return {
            "executables": len(executables),
            "entry_points": entry_points,
            "arguments": list(self._arguments(dispatches, constants)),
            "initializer_sites": sum(len(self._collect(top, _DISPATCHES)) for top in once),
            "schedule": submitted,
        }

    def _entry_points(self, executable: Any) -> Iterator[Answer]:
        functions = {op.attributes["sym_name"].value: op for op in self._collect(executable, ("func.func",))}
        for export in self._collect(executable, ("stream.executable.export",)):
            function = functions.get(export.attributes["function_ref"].value)
            kinds = ir_kinds.kinds_of(self.ir, function) if function is not None else set()
            text = "" if function is None else _without_names(_generic(function), {*functions})
            yield {
                "executable": executable.attributes["sym_name"].value,
                "entry_point": export.attributes["sym_name"].value,
                "kind": min(kinds, key=ir_kinds.KINDS.index, default="other"),
                "memory_bound": bool(kinds) and not kinds & ir_kinds.COMPUTE_BOUND,
                "bound": _hex(text),
                "bound_parts": [_hex(part) for part in parts_of(text)],
            }

    def _arguments(self, dispatches: list[Any], constants: Mapping[Any, int | None]) -> Iterator[Answer]:
        """Per entry point, in the order of their first launches, and argument."""
        passed: dict[tuple[str, int, str], list[int | None]] = {}
        for op in dispatches:
            # The second segment, behind the workload: resources are among it, which are no scalars.
            workload, count, *_ = op.attributes["operandSegmentSizes"]
            values = [op.operands[number] for number in range(workload, workload + count)]
            scalars = [(kind, value) for value in values if not (kind := str(value.type)).startswith("!")]
            for index, (kind, value) in enumerate(scalars):
                passed.setdefault((_entry_point(op)[-1], index, kind), []).append(constants.get(value))
        for key, each in passed.items():
            known, unknown = sorted({value for value in each if value is not None}), each.count(None)
            yield {
                **dict(zip(("entry_point", "index", "type"), key, strict=True)),
                "values": known[:ARGUMENT_VALUES],
                "distinct": len(known),
                "divisor": None if unknown else math.gcd(*known),
                "unknown_sites": unknown,
            }


def _generic(op: Any) -> str:
    """The operation in generic form: its name, operands, properties, regions and types, all in one notation.

    A release that adds an optional operand to an operation prints one more count of 0 for it: left out.
    """
    return _TRAILING_ZEROS.sub(r"\1>", op.get_asm(print_generic_op_form=True, **_PLAIN))


def _digest(module: Any) -> str:
    """Over all functions and data of a module, without the devices that it is for.

    The module is printed as a whole: printing an operation of it takes as long. The module's own lines, which have
    its attributes, are those that are not indented.
    """
    lines = [line for line in _generic(module.operation).split("\n") if line.startswith(" ")]
    rest = [line for line in lines if not (line.startswith('  "util.global"') and "type = !hal.device" in line)]
    return _hex("\n".join(rest))


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _entry_point(dispatch: Any) -> tuple[str, ...]:
    """(executable, entry point) that a dispatch launches."""
    symbol = dispatch.attributes["entry_points"][0].value
    return (symbol,) if isinstance(symbol, str) else tuple(symbol)


def _integer(attribute: Any) -> int | None:
    """The value of an integer constant without its sign, as the compiler's assumptions have it; None for others.

    None as well for one above `_INT_LIMIT`: a 64-bit -1 is no number that all JSON readers hold exactly.
    """
    text, _, kind = str(attribute).rpartition(" : ")
    if not text:
        return {"true": 1, "false": 0}.get(kind)
    bits = 64 if kind == "index" else int(kind[1:]) if re.fullmatch(r"i\d+", kind) else 0
    value = int(text) % 2**bits if bits and re.fullmatch(r"-?\d+", text) else None
    return None if value is None or value > _INT_LIMIT else value


def _without_names(text: str, names: set[str]) -> str:
    """The text with these symbols, as references and as strings, replaced by `@`; whole ones only."""
    either = "|".join(re.escape(name) for name in sorted(names))
    symbols = re.compile(rf'(?P<string>(?<!@)"(?:{either})")|@(?:"(?:{either})"|(?:{either})(?![\w$.-]))')
    return symbols.sub(lambda found: '"@"' if found["string"] else "@", text)
