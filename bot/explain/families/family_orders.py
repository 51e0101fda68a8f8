"""Executables that do the same with their arguments, inputs or operands in another order.

Every value gets a colour that knows what it is made of and what it is used for, but no order of operands; two
executables with the same colours are the same graph (colour refinement, there and back, as in Weisfeiler and Leman).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from bot.explain.families.family_graph import element_of, is_structured, maps_of, unordered
from bot.explain.families.family_groups import FamilyDraft, Member, grouped
from bot.explain.families.family_views import CONSTANTS, cached, line
from bot.explain.texts import Operation, Text

_MASK = (1 << 61) - 1


class _Colours:
    """Colours of one run; equal texts have equal numbers in all executables."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.unordered = cached(unordered)

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers) + 1)

    def form(self, operation: Operation) -> int:
        return self.number(self.unordered(operation.template) + self.unordered(operation.tail))

    def forwards(self, text: Text, used: dict[str, int]) -> tuple[list[int], dict[str, int]]:
        """Colours of operations and of values, from what they are made of and what `used` says of their uses."""
        values: dict[str, int] = {}
        colours: list[int] = []
        for operation in text.operations:
            maps = maps_of(operation)
            edges = [hash((values.get(name, 0), self.number(maps[at]))) for at, name in enumerate(operation.operands)]
            constant = operation.name in CONSTANTS
            start = self.number(operation.template.text) if constant else self.form(operation)
            colour = hash((start, *sorted(edges)))
            colours.append(colour)
            for at, name in enumerate(operation.results):
                values[name] = hash((colour, at, used.get(name, 0)))
            self._enter(operation, edges, values, used)
            if operation.name.endswith(".yield") and operation.parent >= 0:
                around = text.operations[operation.parent]
                values.update({name: hash((values[name], colour)) for name in around.results})
        return colours, values

    def _enter(self, operation: Operation, edges: list[int], values: dict[str, int], used: dict[str, int]) -> None:
        """Block arguments: of a structured operation they are its operands, of the function they have no order."""
        structured, top = is_structured(operation), operation.parent < 0
        for at, (name, type_) in enumerate(operation.block_arguments):
            place = edges[at] if structured else 0 if top else at + 1
            values[name] = hash((self.number(type_), place, used.get(name, 0)))

    def backwards(self, text: Text, colours: Sequence[int]) -> dict[str, int]:
        """What every value is used for, up to the stores."""
        used: defaultdict[str, int] = defaultdict(int)
        for at in range(len(text.operations) - 1, -1, -1):
            operation = text.operations[at]
            maps, structured = maps_of(operation), is_structured(operation)
            onwards = sum(used[name] for name in operation.results) & _MASK
            for position, name in enumerate(operation.operands):
                inner = used[operation.block_arguments[position][0]] if structured else 0
                use = hash((colours[at], self.number(maps[position]), inner, onwards))
                used[name] = (used[name] + use) & _MASK
        return dict(used)

    def settled(self, text: Text) -> tuple[tuple[int, ...], list[int]]:
        """Colours of all operations, sorted, and of the function's arguments in their order."""
        first, _ = self.forwards(text, {})
        colours, values = self.forwards(text, self.backwards(text, first))
        arguments = [values[name] for name, _ in text.operations[0].block_arguments]
        return (*sorted(colours), 0, *sorted(arguments)), arguments


def operand_orders(members: Sequence[Member]) -> list[FamilyDraft]:
    """Families of equal colours; colours are computed only where the operations alone already agree."""
    colours = _Colours()
    alike = grouped(members, lambda member: tuple(sorted(map(colours.form, member.text.operations))))
    families: list[FamilyDraft] = []
    for group in alike:
        settled = {member: colours.settled(member.text) for member in group}
        keys = {member: key for member, (key, _) in settled.items()}
        for same in grouped(group, keys.__getitem__):
            lines = [_difference(one, same[0], settled[one][1], settled[same[0]][1]) for one in same[1:]]
            families += [FamilyDraft(same, [text for text in lines if text])] if any(lines) else []
    return families


def _difference(one: Member, first: Member, arguments: list[int], expected: list[int]) -> str:
    moved = [at for at, (mine, other) in enumerate(zip(arguments, expected, strict=True)) if mine != other]
    if len(moved) == 2:
        return line(f"@{one.name}", [f"arguments {moved[0]} and {moved[1]} exchanged"])
    if moved:
        return line(f"@{one.name}", ["arguments in another order: " + " ".join(map(str, moved))])
    pairs = zip(_numbered(one.text), _numbered(first.text), one.text.operations, first.text.operations, strict=True)
    for mine, other, operation, counterpart in pairs:
        if mine == other:
            continue
        if operation.name != counterpart.name:
            return line(f"@{one.name}", ["operations in another order"])
        return line(f"@{one.name}", [f"operands of {operation.name} ({element_of(operation)}) in another order"])
    return ""


def _numbered(text: Text) -> list[tuple[str, tuple[object, ...]]]:
    numbers: dict[str, object] = {}
    rows: list[tuple[str, tuple[object, ...]]] = []
    for operation in text.operations:
        rows.append((operation.template.text, tuple(numbers.get(name, name) for name in operation.operands)))
        for name in (*operation.results, *(name for name, _ in operation.block_arguments)):
            numbers[name] = operation.template.text if operation.name in CONSTANTS else len(numbers)
    return rows
