"""Describe a function by the values that it stores and by their computation.

Functions of one graph are equal but for names, places and the order of operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from .ir_members import (
    Member,
    attributes_of,
)

_CONSTANT_OPERATIONS = frozenset(
    {"arith.constant", "complex.constant", "flow.tensor.constant"}
)
_ADDRESSING = frozenset({"arith.index_cast", "arith.index_castui"})
_UNNAMED = frozenset(
    {
        "linalg.generic",
        "linalg.fill",
        "linalg.yield",
        "linalg.index",
        "iree_linalg_ext.yield",
    }
)
_ORDERED = frozenset(
    {"indexing_maps", "operandSegmentSizes", "function_type", "sym_name"}
)
Words = Counter[tuple[str, str]]  # name and element type of operations that compute


class Graph:
    """A function without names and places.

    Its values are described by what they are made of, whatever the order of operands.

    Attributes:
        sources: form and operands of each value and each operation without results,
            operands before their users; an operation with a body has what the body
            gives as its operands.
        effects: the operations at the top that have no results.
        units: those that compute, as (source, its operation, its own operands, names
            and types of all that it does).
        words: what all operations compute.
    """

    def __init__(self, ir: Any, member: Member, forms: dict[Hashable, int]) -> None:
        self.ir = ir
        self.member = member
        self._forms = forms
        self.sources: list[tuple[int, tuple[int, ...]]] = []
        self.units: list[tuple[int, Any, tuple[int, ...], Words]] = []
        self._places: dict[Any, int] = {}
        for argument in member.arguments:
            self._places[argument] = self._add(("argument", str(argument.type)), ())
        self.effects, self.words = self._block(member.function.regions[0].blocks[0])

    def _add(self, form: Hashable, operands: tuple[int, ...]) -> int:
        self.sources.append((self._form(form), operands))
        return len(self.sources) - 1

    def _form(self, form: Hashable) -> int:
        return self._forms.setdefault(form, len(self._forms))

    def _block(self, block: Any) -> tuple[list[int], Words]:
        """Return the sources of operations without results, and what all compute."""
        effects = list[int]()
        computed_by_all = Words()
        for op in (view.operation for view in block.operations):
            if op.name in _CONSTANT_OPERATIONS:
                self._places[op.results[0]] = self._add(
                    ("constant", str(op.attributes["value"])), ()
                )
                continue
            operands = tuple(self._places[value] for value in op.operands)
            maps, below = self._enter(op, operands)
            inside = list[int]()
            op_computes = Words()
            for inner_block in below:
                stores, computed = self._block(inner_block)
                inside += stores
                op_computes += computed
            op_computes += Words(_word(op))
            names = sorted(set(attributes_of(op)) - _ORDERED)
            attributes = tuple((name, str(op.attributes[name])) for name in names)
            form = (
                op.name,
                attributes,
                maps,
                *(str(result.type) for result in op.results),
            )
            made_of = (*(() if maps else operands), *inside)
            for index, result in enumerate(op.results):
                self._places[result] = self._add((*form, index), made_of)
            if not op.results:
                effects.append(self._add(form, made_of))
            elif op_computes and len(op.results) == 1:
                self.units.append((len(self.sources) - 1, op, operands, op_computes))
            computed_by_all += op_computes
        return effects, computed_by_all

    def _enter(
        self, op: Any, operands: tuple[int, ...]
    ) -> tuple[tuple[str, ...], list[Any]]:
        """Take in the blocks of an operation, whose arguments are sources from now on.

        Return the maps of the results of a structured operation, and all blocks. Where
        there is one argument to each operand, as in linalg, it is that operand, read in
        the order of its map.
        """
        blocks = list[Any]()
        for region in op.regions:
            blocks += region.blocks
        arguments = list[Any]()
        for block in blocks:
            arguments += block.arguments
        is_structured = "." in op.name and 0 < len(arguments) == len(operands)
        has_maps = is_structured and "indexing_maps" in op.attributes
        maps = [""] * len(operands)
        if has_maps:
            maps = [str(attribute) for attribute in op.attributes["indexing_maps"]]
        for index, argument in enumerate(arguments):
            form = ("in", maps[index] if is_structured else index, str(argument.type))
            used = (operands[index],) if is_structured else ()
            self._places[argument] = self._add(form, used)
        return tuple(maps[-len(op.results) :]) if is_structured else (), blocks

    def serial(
        self, alias: Mapping[int, int] | None = None
    ) -> tuple[tuple[Any, ...], list[int]]:
        """Return the graph from what is stored back to the arguments.

        Return as well its sources in the order in which it comes to them. Equal ones
        are the same graph but for the order of operands. `alias`: source → that which
        takes its place.
        """
        alias = alias or {}
        terms = list[int]()
        for form, operands in self.sources:
            sources = [alias.get(operand, operand) for operand in operands]
            operand_terms = sorted(terms[source] for source in sources)
            terms.append(self._form((form, *operand_terms)))
        order = dict[int, int]()
        row = list[Any]()
        stack = sorted(self.effects, key=terms.__getitem__)
        while stack:
            source = stack.pop()
            if source in order:
                row.append(order[source])
                continue
            order[source] = len(order)
            form, operands = self.sources[source]
            row.append((form, len(operands)))
            sources = [alias.get(operand, operand) for operand in operands]
            stack += sorted(sources, key=terms.__getitem__)
        return tuple(row), list(order)


def _word(op: Any) -> list[tuple[str, str]]:
    """Return name and element type of an operation that computes values.

    Return nothing for an operation that computes addresses, and for all others.
    """
    types = [str(value.type) for value in (*op.operands, *op.results)]
    is_named = (
        op.name.startswith(("linalg.", "iree_linalg_ext.")) and op.name not in _UNNAMED
    )
    is_scalar = (
        op.name.startswith(("arith.", "math.", "complex."))
        and op.name not in _ADDRESSING
    )
    if is_named or (is_scalar and types[:1] != ["index"]):
        return [(op.name, types[0] if types else "?")]
    return []
