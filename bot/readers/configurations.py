"""Read how the compiler configured an executable, and change its configuration.

It can put chosen values of one text into another.

The text is the IR that `--iree-hal-dump-executable-configurations-to` writes. Two
attributes hold the configuration: a `lowering_config` on each tiled operation, and a
`translation_info` on each function.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.errors import MalformedBinary

PIPELINE = "pipeline"
_WHERE = "configured IR"
_MOST_NAMED = 3
_MOST_NESTED = 200  # Brackets within brackets: real ones have under 20
# Of one configuration with its aliases written out: real ones have hundreds
_MOST_VALUE_CHARACTERS = 100_000

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|[-=]>|[<>=]=|[\[\](){}<>]'
    r"|(?<![\w.$#%@!^-])(?:lowering_config|translation_info) = (?=#)",
    re.DOTALL,
)
"""Strings, comments, arrows and comparisons.

Each is matched as a whole, so that its brackets do not count.
"""
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[-=]>|[<>=]=|[\[\](){}<>]|,', re.DOTALL)
_CLOSER = {"<": ">", "[": "]", "(": ")", "{": "}"}
_ALIAS = re.compile(r"^(#[A-Za-z_][\w$]*) = (.*)$", re.MULTILINE)
_ALIAS_USE = re.compile(r'"(?:[^"\\]|\\.)*"|#[A-Za-z_][\w$]*(?![\w$.<])', re.DOTALL)
_ATTRIBUTE = re.compile(r"#[A-Za-z_][\w$.]*")
_OPERATION = re.compile(r'^\s*(?:%[^="]*=\s*)?"?([A-Za-z_][\w$]*(?:\.[\w$]+)*)"?')
_OWNER = re.compile(r"([A-Za-z_][\w$.]*) = $")
_FIELD_OR_PIECE = re.compile(rf"([A-Za-z_]\w*) = |{_PIECE.pattern}", re.DOTALL)
_FAMILIES = {
    "CPU": "#iree_cpu.pipeline",
    "LLVMGPU": "#iree_gpu.pipeline",
    "SPIRV": "#iree_gpu.spirv_pipeline",
}
"""Beginning of a pipeline's name up to 3.11.0 → the attribute since 3.12.0.

Up to 3.11.0 a pipeline is a word that begins with its backend. From 3.12.0 on it is an
attribute.
"""
_FORMER = re.compile(r"(CPU|LLVMGPU|SPIRV)([A-Z]\w*)")
_FORMER_VMVX = "VMVXDefault"
_VMVX = "#iree_codegen.vmvx_pipeline"
_DIALECT = re.compile(r"#iree_\w+\.(?=\w)")
_OF_NO_LOOPS = frozenset({"promote_operands", "promotion_types", "native_vector_size"})
"""Lists that do not have one element for each loop of the operation."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One attribute: a `lowering_config`, or a function's `translation_info`."""

    operation: str  # that it is on: `linalg.generic`, `func.func`
    # dictionaries around it in that operation: `decomposition_config.qk_attrs`
    within: str
    # what it is: `#iree_cpu.lowering_config`; a `translation_info` is always of one
    # kind
    attribute: str
    # knob → its value as written, in order; empty for a word alone
    values: Mapping[str, str]
    # the knobs of a `translation_info` that are in its own dictionary
    options: frozenset[str] = frozenset()
    is_braced: bool = False  # `#iree_gpu.lowering_config<{…}>`
    # where the attribute is in the text, without its name
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def is_translation(self) -> bool:
        """Return True for a function's `translation_info`."""
        return self.attribute.endswith(".translation_info")

    @property
    def place(self) -> str:
        """Return the operation and the part of it.

        An example is `iree_linalg_ext.attention decomposition_config.qk_attrs`.
        """
        return f"{self.operation} {self.within}".rstrip()

    def written(self, values: Mapping[str, str]) -> str:
        """Return the attribute as the compiler reads it, with these values."""
        parts = list[str]()
        options = list[str]()
        for name, value in values.items():
            entry = f"{name} = {value}" if value else name
            if name in self.options:
                options.append(entry)
            else:
                parts.append(entry)
        if self.is_translation:
            body = " ".join(parts)
            if options:
                body += f", {{{', '.join(options)}}}"
        elif self.is_braced:
            body = f"{{{', '.join(parts)}}}"
        else:
            body = ", ".join(parts)
        return f"{self.attribute}<{body}>"


@dataclass(frozen=True, slots=True)
class NotTransplantable:
    """Base's values cannot be put into head.

    The text is a clause, such as "`linalg.fill` has other loops: …".
    """

    why: str


def configurations(text: str) -> tuple[Configuration, ...]:
    """Return every configuration of the text, in its order; raises MalformedBinary."""
    aliases = dict(_ALIAS.findall(text))
    parsed = list[Configuration]()
    open_at = list[int]()
    opener_of = dict[int, int]()
    position = 0
    while token := _TOKEN.search(text, position):
        word = token[0]
        position = token.end()
        if word in _CLOSER:
            open_at.append(token.start())
            if len(open_at) > _MOST_NESTED:
                raise MalformedBinary(
                    f"more than {_MOST_NESTED} brackets within each other", where=_WHERE
                )
        elif word == ">":
            if open_at and text[open_at[-1]] == "<":  # else it compares
                opener_of[token.start()] = open_at.pop()
        elif word in _CLOSER.values():
            opener_of[token.start()] = _opener(text, open_at, closer=word)
        elif word.endswith(" = "):
            place = _place(text, open_at, opener_of)
            position = _attribute_end(text, token.end())
            if place is not None:
                parsed.append(
                    _configuration(
                        place,
                        text=text,
                        start=token.end(),
                        end=position,
                        aliases=aliases,
                    )
                )
    unclosed = [text[start] for start in open_at if text[start] != "<"]
    if unclosed:
        raise MalformedBinary(f"a {unclosed[-1]} is never closed", where=_WHERE)
    return tuple(parsed)


def _opener(text: str, open_at: list[int], closer: str) -> int:
    """Remove the bracket that `closer` closes from the open ones, and return its place.

    Raises MalformedBinary.
    """
    while open_at and text[open_at[-1]] == "<":  # it compares, as nothing closed it
        open_at.pop()
    if not open_at or _CLOSER[text[open_at[-1]]] != closer:
        raise MalformedBinary(f"a {closer} closes nothing", where=_WHERE)
    return open_at.pop()


def _place(
    text: str, open_at: Sequence[int], opener_of: Mapping[int, int]
) -> tuple[str, str] | None:
    """Return the operation, and the dictionaries that are open in it.

    None inside of another attribute.
    """
    within = list[str]()
    for start in reversed(open_at):
        before = text[text.rfind("\n", 0, start) + 1 : start]
        if text[start] != "{" or before.endswith("<"):
            return None
        owner = _OWNER.search(before)
        # `linalg.generic … attrs = {…}`: the operation's own
        if owner and owner[1] != "attrs":
            within.insert(0, owner[1])
            continue
        line_at = start - len(before)
        # behind a region: the operation is before that
        while line := re.match(r"\s*[)}\]]", text[line_at:start]):
            opener = opener_of.get(line_at + line.end() - 1)
            if opener is None:
                return None
            line_at = text.rfind("\n", 0, opener) + 1
            start = opener
        operation = _OPERATION.match(text[line_at:start])
        return (operation[1] if operation else "", ".".join(within))
    return None


def _attribute_end(text: str, start: int) -> int:
    """Return the end of an attribute: of its name, and of the brackets behind that."""
    name = _ATTRIBUTE.match(text, start)
    if name is None:
        raise MalformedBinary("a configuration is no attribute", where=_WHERE)
    end = name.end()
    if text[end : end + 1] == "<":
        return _closed(text, end)
    return end


def _closed(text: str, start: int) -> int:
    """Return the end of the bracket that opens at `start`."""
    expected = list[str]()
    for piece in _PIECE.finditer(text, start):
        if piece[0] in _CLOSER:
            expected.append(_CLOSER[piece[0]])
            if len(expected) > _MOST_NESTED:
                break
        elif piece[0] in _CLOSER.values():
            if expected.pop() != piece[0]:
                break
            if not expected:
                return piece.end()
    raise MalformedBinary("the brackets of a configuration do not match", where=_WHERE)


def _parts(body: str) -> list[str]:
    """Return the pieces between commas that are outside of all brackets."""
    parts = list[str]()
    depth = 0
    start = 0
    for piece in _PIECE.finditer(body):
        if piece[0] in _CLOSER:
            depth += 1
        elif piece[0] in _CLOSER.values():
            depth -= 1
        elif piece[0] == "," and depth == 0:
            parts.append(body[start : piece.start()].strip())
            start = piece.end()
    if last := body[start:].strip():
        return [*parts, last]
    return parts


def _expanded(attribute: str, aliases: Mapping[str, str]) -> str:
    """Return the attribute with its aliases replaced by what they stand for.

    So it has the same meaning in another text.
    """

    def meaning(match: re.Match[str]) -> str:
        return aliases.get(match[0], match[0])

    for _ in range(_MOST_NESTED):
        if len(attribute) > _MOST_VALUE_CHARACTERS:
            raise MalformedBinary(
                "a configuration is too long to be read", where=_WHERE
            )
        used = []
        for name in _ALIAS_USE.findall(attribute):
            if name in aliases:
                used.append(aliases[name])
        if not used:
            return attribute
        if sum(map(len, used)) > _MOST_VALUE_CHARACTERS:
            raise MalformedBinary(
                "a configuration is too long to be read", where=_WHERE
            )
        attribute = _ALIAS_USE.sub(meaning, attribute)
    raise MalformedBinary(
        "the aliases of a configuration stand for each other", where=_WHERE
    )


def _configuration(
    place: tuple[str, str], text: str, start: int, end: int, aliases: Mapping[str, str]
) -> Configuration:
    attribute = _expanded(text[start:end], aliases)
    name = _ATTRIBUTE.match(attribute)
    if name is None:
        raise MalformedBinary(
            "an alias of a configuration is no attribute", where=_WHERE
        )
    body = attribute[name.end() :]
    if body and (not body.startswith("<") or _closed(body, 0) != len(body)):
        raise MalformedBinary(f"not a configuration: {attribute[:80]!r}", where=_WHERE)
    body = body[1:-1].strip()
    if name[0].endswith(".translation_info"):
        values, options = _translation(body)
        return Configuration(*place, name[0], values, options, start=start, end=end)
    is_braced = body.startswith("{") and _closed(body, 0) == len(body)
    values = _entries(_parts(body[1:-1] if is_braced else body))
    return Configuration(
        *place, name[0], values, is_braced=is_braced, start=start, end=end
    )


def _entries(parts: Sequence[str]) -> dict[str, str]:
    """Return key → value of `key = value`; a word alone has an empty value."""
    split = (part.partition(" = ") for part in parts)
    return _unique((key, value) for key, _, value in split)


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    entries = dict[str, str]()
    for key, value in pairs:
        if key in entries:
            raise MalformedBinary(f"{key[:80]!r} is set twice", where=_WHERE)
        entries[key] = value
    return entries


def _translation(body: str) -> tuple[dict[str, str], frozenset[str]]:
    """Return the values of a `translation_info`, and which of them are in braces."""
    values = dict[str, str]()
    options = dict[str, str]()
    for part in _parts(body):
        if part.startswith("{") and _closed(part, 0) == len(part):
            options.update(_entries(_parts(part[1:-1])))
        else:
            values.update(_fields(part))
    if repeated := sorted(values.keys() & options.keys()):
        raise MalformedBinary(f"{repeated[0]!r} is set twice", where=_WHERE)
    return {**values, **options}, frozenset(options)


def _fields(part: str) -> dict[str, str]:
    """Return the values of `pipeline = X workgroup_size = [64, 1, 1]`.

    No comma separates them.
    """
    starts = list[re.Match[str]]()
    depth = 0
    for piece in _FIELD_OR_PIECE.finditer(part):
        if piece[0] in _CLOSER:
            depth += 1
        elif piece[0] in _CLOSER.values():
            depth -= 1
        elif piece[1] and depth == 0:
            starts.append(piece)
    if not starts:
        return {part: ""}
    ends = [*(match.start() for match in starts[1:]), len(part)]
    fields = []
    for match, end in zip(starts, ends, strict=True):
        fields.append((match[1], part[match.end() : end].strip()))
    return _unique(fields)


def _pipeline(value: str) -> tuple[str, str]:
    """Return the family of a pipeline and its name, the same for both spellings."""
    if value == _FORMER_VMVX:
        return _VMVX, ""
    if former := _FORMER.fullmatch(value):
        return _FAMILIES[former[1]], former[2]
    family, _, name = value.removesuffix(">").partition("<")
    return family, name


def _spelled(value: str, like: str) -> str:
    """Return a pipeline in the spelling of the release that wrote `like`."""
    family, name = _pipeline(value)
    if like.startswith("#"):
        if name:
            return f"{family}<{name}>"
        return family
    if family == _VMVX:
        return _FORMER_VMVX
    former = {new: old for old, new in _FAMILIES.items()}
    if family in former:
        return f"{former[family]}{name}"
    return value


def _meaning(knob: str, value: str | None) -> object:
    """Return the part of a value that is compared.

    The spelling of a pipeline and the names of dialects do not count.
    """
    if value is None:
        return None
    if knob == PIPELINE:
        return _pipeline(value)
    return _DIALECT.sub("", value)


def _ranks(configuration: Configuration) -> dict[str, int]:
    """Return knob → how many loops its list is for."""
    ranks = dict[str, int]()
    if configuration.is_translation:
        return ranks
    for knob, value in configuration.values.items():
        if knob in _OF_NO_LOOPS or not (value.startswith("[") and value.endswith("]")):
            continue
        rank = _rank(knob, value)
        if rank:
            ranks[knob] = rank
    return ranks


def _rank(knob: str, value: str) -> int:
    """Return for how many loops the list of a knob is."""
    elements = _parts(value[1:-1])
    if knob != "tile_sizes" and not knob.endswith("_basis"):
        return len(elements)
    # a list for each level, or the counts and their order
    rank = 0
    for element in elements:
        if element.startswith("["):
            rank = max(rank, len(_parts(element[1:-1])))
    return rank


def _other_loops(base: Configuration, head: Configuration) -> str:
    """Return which tile vector is for other loops; empty if all fit."""
    base_ranks = _ranks(base)
    head_ranks = _ranks(head)
    for knob, rank in base_ranks.items():
        if knob in head_ranks:
            fits = rank == head_ranks[knob]
        else:
            fits = not head_ranks or rank in head_ranks.values()
        if not fits:
            loops = head_ranks.get(knob, max(head_ranks.values()))
            value = f"`{knob}` has {rank} values on base"
            return f"`{base.place}` has other loops: {value} and {loops} on head"
    return ""


def _pairs(
    base: Sequence[Configuration], head: Sequence[Configuration]
) -> list[tuple[Configuration, Configuration]] | NotTransplantable:
    if len(base) != len(head):
        return NotTransplantable(_other_operations(base, head))
    pairs = list(zip(base, head, strict=True))
    for base_part, head_part in pairs:
        if base_part.place != head_part.place:
            return NotTransplantable(
                f"base configures `{base_part.place}` where head configures `{head_part.place}`"
            )
        if base_part.attribute != head_part.attribute:
            kinds = (
                f"`{base_part.attribute}` on base and `{head_part.attribute}` on head"
            )
            return NotTransplantable(
                f"`{base_part.place}` has another kind of configuration: {kinds}"
            )
        if reason := _other_loops(base_part, head_part):
            return NotTransplantable(reason)
    return pairs


def _other_operations(
    base: Sequence[Configuration], head: Sequence[Configuration]
) -> str:
    """Return which operations are configured more often on one side."""
    base_groups = Counter(configuration.place for configuration in base)
    head_groups = Counter(configuration.place for configuration in head)
    changes = list[str]()
    for place in sorted(base_groups | head_groups):
        if base_groups[place] != head_groups[place]:
            changes.append(
                f"`{place}` {base_groups[place]:,} times on base and"
                f" {head_groups[place]:,} times on head"
            )
    return f"other operations are configured: {', '.join(changes[:_MOST_NAMED])}"


def differing_knobs(base: str, head: str) -> tuple[str, ...] | NotTransplantable:
    """Return the knobs whose values differ, in the texts' order.

    A knob that several operations have counts as one. It differs if it differs on
    any of them. Raises MalformedBinary.
    """
    pairs = _pairs(configurations(base), configurations(head))
    if isinstance(pairs, NotTransplantable):
        return pairs
    knobs = dict[str, None]()
    for base_part, head_part in pairs:
        for knob in _merged(base_part.values, head_part.values):
            if _meaning(knob, base_part.values.get(knob)) != _meaning(
                knob, head_part.values.get(knob)
            ):
                knobs[knob] = None
    return tuple(knobs)


def _merged(base: Mapping[str, str], head: Mapping[str, str]) -> list[str]:
    """Return all keys: head's in their order, and those that only base has.

    A key of base alone comes after the key that it follows there.
    """
    keys = list(head)
    place = 0
    for key in base:
        if key in keys:
            place = keys.index(key) + 1
        else:
            keys.insert(place, key)
            place += 1
    return keys


def transplanted(
    head: str, base: str, knobs: Collection[str]
) -> str | NotTransplantable:
    """Return head's text with base's values of these knobs; nothing else in it changes.

    A knob that base does not set is removed. Raises MalformedBinary.
    """
    pairs = _pairs(configurations(base), configurations(head))
    if isinstance(pairs, NotTransplantable):
        return pairs
    pieces = list[str]()
    written_to = 0
    for base_part, head_part in pairs:
        values = _with_values(base_part, head_part, knobs)
        if values == dict(head_part.values):
            continue
        target = Configuration(
            operation=head_part.operation,
            within=head_part.within,
            attribute=head_part.attribute,
            values=values,
            options=head_part.options | (base_part.options - head_part.values.keys()),
            is_braced=head_part.is_braced,
        )
        pieces += [head[written_to : head_part.start], target.written(values)]
        written_to = head_part.end
    return "".join([*pieces, head[written_to:]])


def _with_values(
    base: Configuration, head: Configuration, knobs: Collection[str]
) -> dict[str, str]:
    values = dict[str, str]()
    for knob in _merged(base.values, head.values):
        base_value = base.values.get(knob)
        head_value = head.values.get(knob)
        is_taken = knob in knobs and _meaning(knob, base_value) != _meaning(
            knob, head_value
        )
        value = base_value if is_taken else head_value
        if value is None:
            continue
        if is_taken and knob == PIPELINE and head_value is not None:
            value = _spelled(value, head_value)
        values[knob] = value
    return values
