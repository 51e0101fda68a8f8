"""What is left out of an executable's text so that it equals another's, and the line that says what was left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from bot.explain.texts import Operation, Template, Text

CONSTANTS = frozenset({"arith.constant", "complex.constant", "flow.tensor.constant"})
VALUES_SHOWN = 8
LINES_SHOWN = 4
LINE_CHARACTERS = 160
VALUE_CHARACTERS = 40
_DYNAMIC = "-9223372036854775808"  # ShapedType::kDynamic
_SHAPE = re.compile(r"\b(tensor|vector|memref)<((?:(?:[0-9]+|\?)x)+)")
_ARRAY = re.compile(r"\b(static_(?:offsets|sizes|strides|output_shape)) = array<i64: ([-0-9, ]*)>")

Key = tuple[object, ...]
View = Callable[[Template], str]


def _array_kind(match: re.Match[str]) -> str:
    marks = ",".join("?" if value.strip() == _DYNAMIC else "_" for value in match.group(2).split(","))
    return f"{match.group(1)} = [{marks}]"


def _shape_kind(match: re.Match[str]) -> str:
    dimensions = match.group(2)[:-1].split("x")
    return f"{match.group(1)}<{'x'.join('?' if size == '?' else '_' for size in dimensions)}x"


def exactly(template: Template) -> str:
    """The line as it is."""
    return template.text


def without_offsets(template: Template) -> str:
    """Arrays of static offsets, sizes and strides as their length and which are dynamic."""
    return _ARRAY.sub(_array_kind, template.text) if "static_" in template.text else template.text


def without_shapes(template: Template) -> str:
    """The same, and shaped types as rank, element type and which dimensions are dynamic."""
    return _SHAPE.sub(_shape_kind, without_offsets(template))


def kind_of_constant(template: Template) -> str:
    """Any constant of its type."""
    return f"constant {template.result_types}"


def structural_constant(template: Template) -> str:
    """Any constant of its type, whatever the static shape."""
    return _SHAPE.sub(_shape_kind, kind_of_constant(template))


def constant_of_any_shape(template: Template) -> str:
    """The constant with its value; an index is any index, as it may follow from a shape."""
    return kind_of_constant(template) if template.result_types == ("index",) else without_shapes(template)


def cached(view: View) -> View:
    """`view`, computed once for each template."""
    known: dict[str, str] = {}

    def look(template: Template) -> str:
        found = known.get(template.text)
        if found is None:
            found = known[template.text] = view(template)
        return found

    return look


def key(text: Text, view: View, constant: View) -> Key:
    """The executable under `view`, its names numbered in order of appearance.

    Constants are written where they are used: sharing one among uses of equal value, and their order, say nothing.
    """
    numbers: dict[str, int] = {}
    constants: dict[str, str] = {}
    row: list[object] = []
    for template, names in text.lines:
        if template.name in CONSTANTS and names:
            constants[names[0]] = constant(template)
            continue
        row.append(view(template))
        defined = len(names) if template.block_types is not None else min(template.results, 1)
        for name in names[:defined] if template.results < 2 else names[: template.results]:
            numbers[name] = len(numbers)
            constants.pop(name, None)
        for name in names:
            row.append(constants.get(name) or numbers.setdefault(name, len(numbers)))
    return tuple(row)


def same(texts: Sequence[Text]) -> Callable[[View, View], bool]:
    """Whether the executables are equal under a view of lines and one of constants."""
    return lambda view, constant: len({key(text, view, constant) for text in texts}) == 1


def constant_uses(text: Text) -> list[tuple[Operation, int, Template]]:
    """Every use of a constant in the order of the text: the user, which operand, the constant."""
    uses: list[tuple[Operation, int, Template]] = []
    constants: dict[str, Template] = {}
    for operation in text.operations:
        for name in operation.results:
            constants.pop(name, None)
        if operation.name in CONSTANTS and operation.results:
            constants[operation.results[0]] = operation.template
        for position, name in enumerate(operation.operands):
            if name in constants:
                uses.append((operation, position, constants[name]))
    return uses


def whole_value_of(constant: Template) -> str:
    """A constant's value without its type."""
    value = dict(constant.attributes).get("value", "?")
    for type_ in constant.result_types:
        value = value.removesuffix(f" : {type_}")
    return value


def value_of(constant: Template) -> str:
    """The same, cut to what a line can show."""
    return short(whole_value_of(constant), VALUE_CHARACTERS)


def arrays_of(text: Text) -> list[tuple[str, str]]:
    """Every static array of the executable: what it is of, and its values."""
    return [
        (f"{name} of {operation.name}", f"[{values.replace(_DYNAMIC, '?')}]")
        for operation in text.operations
        for name, values in _ARRAY.findall(operation.template.text)
    ]


def shapes_of(types: Iterable[str]) -> list[str]:
    """The dimensions of shaped types: `1x56x56x128`; scalars left out."""
    return [dimensions[:-1] for type_ in types for _, dimensions in _SHAPE.findall(type_)]


def short(text: str, characters: int) -> str:
    """At most so many characters, none of them a control character."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[: characters + 1])
    return clean if len(clean) <= characters else clean[: characters - 1] + "…"


def line(label: str, values: Sequence[str], total: int = 0) -> str:
    """`label: a, b, … (N values)`: different values in order, as many as fit; `total` where cutting made some equal."""
    distinct = list(dict.fromkeys(values))
    total = max(total, len(distinct))
    for shown in range(min(len(distinct), VALUES_SHOWN), 0, -1):
        more = f", … ({total} values)" if shown < total else ""
        text = f"{label}: {', '.join(distinct[:shown])}{more}"
        if len(text) <= LINE_CHARACTERS:
            break
    return short(text, LINE_CHARACTERS)


def differing(labels: Sequence[str], columns: Sequence[Sequence[str]]) -> list[str]:
    """A line for each column whose values differ; equal lines once."""
    counted = ((label, column, len(set(column))) for label, column in zip(labels, columns, strict=True))
    lines = (
        line(label, [short(value, VALUE_CHARACTERS) for value in column], count)
        for label, column, count in counted
        if count > 1
    )
    return list(dict.fromkeys(lines))


def capped(lines: Sequence[str]) -> tuple[str, ...]:
    """The first few lines, and how many more there are."""
    more = len(lines) - LINES_SHOWN
    return (*lines[:LINES_SHOWN], *([f"… and {more} more"] if more > 0 else []))
