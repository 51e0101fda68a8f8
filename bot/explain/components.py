"""Sum dispatch sites, code and stack of a cell by parts of the model.

The names of parts come from the model's own locations. Both sides share one naming,
made of all places of both, so that a part has the same name on either side.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec.structs import astuple, replace

from bot.core.explanation import UNATTRIBUTED, Amounts, ComponentDelta
from bot.core.program import Program
from bot.core.snapshot import Cell
from bot.explain.kept_results import per_object

# Name and glob of each; the first whose glob matches decides
Sections = Sequence["tuple[str, str]"]
Part = tuple[str, str]
"""A component: its section or the first levels of its full name, and the full name.

An example of a full name is `encoder.layer.*.attention.self`.
"""
Names = Mapping[str, Part]  # place, as a Site has it → the part that it belongs to

AMOUNTS = Amounts.__struct_fields__
# More than these are no overview: the tree is cut at the level above
MAX_COMPONENTS = 16
MAX_LEVELS = 3

_NOWHERE = UNATTRIBUTED, UNATTRIBUTED
_DEEPEST = 32  # the levels of a name beyond this one count as one level
_NUMBER = re.compile(r"[0-9]+")
_TRANSFORM = re.compile(r"[A-Za-z_]+\((.*)\)")
_Levels = tuple[str, ...]
_amounts = lru_cache(maxsize=1024)(Amounts)
"""Equal amounts are held once.

Repeated layers have the same, and so have both sides and levels of one cell where
nothing moved.
"""


def split(path: str) -> _Levels:
    """Return the levels of a model's own name; empty if the name has none.

    TensorFlow and JAX separate levels by `/`, PyTorch by `.`. TFLite joins several
    names by `;`: the first one counts, which is that of the fused operation's result.
    JAX's transformations are removed: `jit(step)/jvp(MLP)/fc0` and its backward pass
    `jit(step)/transpose(jvp(MLP))/fc0` are both `MLP`, `fc0`.
    """
    first = path.partition(";")[0]
    if "/" not in first:
        return tuple(filter(None, first.split(".", _DEEPEST)))
    levels = first.split("/", _DEEPEST)
    if len(levels) > 1 and re.fullmatch(r"jit\([^()]*\)", levels[0]):
        del levels[0]
    for place in range(len(levels)):
        while transform := _TRANSFORM.fullmatch(levels[place]):
            levels[place] = transform[1]
    return tuple(filter(None, levels))


def grouped(paths: Iterable[_Levels]) -> dict[_Levels, _Levels]:
    """Return levels → the same with repeated layers as one, without a common wrapper.

    A number is `*`, and so is each number in a level that differs in numbers only from
    another one at its place: `layer.0` is `layer.*`, `conv_dw_6_relu` beside
    `conv_dw_7_relu` is `conv_dw_*_relu`.
    """
    names: dict[_Levels, _Levels] = dict.fromkeys(paths, ())
    for depth in range(max(map(len, names), default=0)):
        _star_level(names, depth)
    wrapper = _wrapper_levels(names.values())
    return {levels: name[wrapper:] or name for levels, name in names.items()}


def _star_level(names: dict[_Levels, _Levels], depth: int) -> None:
    """Add one level to each name, with `*` for the numbers that differ among siblings.

    Args:
        names: levels → the name of the levels above this one.
    """
    # parent and level without its numbers → level → what has it there
    groups: dict[tuple[_Levels, str], dict[str, list[_Levels]]] = {}
    for levels, parent in names.items():
        if depth < len(levels):
            level = levels[depth]
            siblings = groups.setdefault((parent, _NUMBER.sub("0", level)), {})
            siblings.setdefault(level, []).append(levels)
    for (parent, _), siblings in groups.items():
        columns = zip(*map(_NUMBER.findall, siblings), strict=True)
        varying = [len(set(column)) > 1 for column in columns]
        for level, members in siblings.items():
            starred = "*"
            if not _NUMBER.fullmatch(level):
                starred = _starred(level, iter(varying))
            names.update(dict.fromkeys(members, (*parent, starred)))


def _wrapper_levels(names: Iterable[_Levels]) -> int:
    """Return how many levels all names begin with.

    A name with only one level does not count.
    """
    nested = [name[:-1] for name in names if len(name) > 1]
    if not nested:
        return 0
    low = min(nested)
    high = max(nested)
    for depth, (low_level, high_level) in enumerate(zip(low, high, strict=False)):
        if low_level != high_level:
            return depth
    return min(map(len, nested))


def _starred(level: str, varies: Iterator[bool]) -> str:
    return _NUMBER.sub(lambda number: "*" if next(varies) else number[0], level)


def naming(base: Cell, head: Cell, sections: Sections = ()) -> Names:
    """Return the names of the places on both sides of a cell; see `name_places`."""
    places = frozenset[str]()
    for cell in (base, head):
        if cell.program:
            places |= _named_places(cell.program)
    return name_places(places, tuple(sections))


@per_object
def _named_places(program: Program) -> frozenset[str]:
    return frozenset(site.component for site in program.sites if site.component)


@lru_cache(maxsize=256)
def name_places(
    places: frozenset[str], sections: tuple[tuple[str, str], ...] = ()
) -> Names:
    """Name every place that has levels.

    The first section that matches names a place. Without a section, its first levels
    do. Their number is at most MAX_LEVELS, and keeps the components at MAX_COMPONENTS
    or below. The `*` of `encoder.layer.*.attention` does not count. In a glob, `/` and
    `.` are the same, and `*.attention.*` also matches the attention itself.
    """
    # then a name without a slash is an operation's: `tfl.quantize`
    slashed = any("/" in place for place in places)
    firsts = {place: place.partition(";")[0] for place in sorted(places)}
    levels = dict[str, _Levels]()
    for place, first in firsts.items():
        if "/" in place or not slashed:
            path = split(place)
        else:
            path = (first,)
        if path:
            levels[place] = path
    names = grouped(dict.fromkeys(levels.values()))
    named = {place: names[path] for place, path in levels.items()}
    components = dict[str, str]()
    unsectioned = dict[str, _Levels]()
    for place, name in named.items():
        section = _section_of(firsts[place], sections)
        if section is None:
            unsectioned[place] = name
        else:
            components[place] = section
    components |= _cut_names(unsectioned)
    result = {}
    for place, name in named.items():
        result[place] = (components[place], ".".join(name))
    return result


def _section_of(first: str, sections: Iterable[tuple[str, str]]) -> str | None:
    """Return the name of the first section whose glob matches a place, or None."""
    dotted = first.replace("/", ".")
    for name, glob in sections:
        pattern = glob.replace("/", ".")
        if fnmatchcase(dotted, pattern) or fnmatchcase(f".{dotted}.", pattern):
            return name
    return None


def _cut_names(named: Mapping[str, _Levels]) -> dict[str, str]:
    """Return place → the first levels of its name, as many as keep the names few."""
    cut = dict[str, str]()
    for depth in range(MAX_LEVELS, 0, -1):
        for place, name in named.items():
            cut[place] = ".".join(_first_levels(name, depth))
        if len(set(cut.values())) <= MAX_COMPONENTS:
            break
    return cut


def _first_levels(name: _Levels, depth: int) -> _Levels:
    """Return the first levels of a name; those with `*` do not count."""
    counted = [place for place, level in enumerate(name) if "*" not in level]
    if depth < len(counted):
        return name[: counted[depth]]
    return name


@per_object
def _launched(
    program: Program | None, names: Names
) -> dict[str, tuple[Mapping[Part, int], int]]:
    """Return entry point → the parts where it is launched, and the number of all sites.

    Each part has its number of sites.
    """
    parts: dict[str, Counter[Part]] = {}
    for site in program.sites if program else ():
        parts.setdefault(site.entry_point, Counter())[
            names.get(site.component or "", _NOWHERE)
        ] += 1
    return {entry: (counts, counts.total()) for entry, counts in parts.items()}


@per_object
def where(program: Program | None, names: Names) -> dict[str, str]:
    """Return entry point → the component with most of its sites.

    If several have as many, the first in the order of the program counts.
    """
    result = {}
    for entry, (parts, _) in _launched(program, names).items():
        counts = Counter[str]()
        for (component, _), count in parts.items():
            counts[component] += count
        result[entry] = max(counts, key=counts.__getitem__)
    return result


def attribute(cell: Cell, names: Names) -> dict[Part, Amounts]:
    """Return part → `dispatch_sites`, `code_bytes` and `stack_bytes` of one cell.

    * Sites sum to the sites of all entry points.
    * Code sums to the cell's `executable_bytes`. If that is not known, it sums to the
      code of all entry points. The code of a shared entry point is split evenly over
      its sites.
    * Stack is the largest frame of an entry point with a site there. It is a maximum,
      not a sum.
    * `unattributed` has sites without a location, and code of no entry point. It also
      has an entry point whose sites are not as many as the program launches.
    * An amount is None if it is not known.
    """
    sites = defaultdict[Part, int](int)
    code = defaultdict[Part, int](int)
    stack = dict[Part, int]()
    all_parts = set[Part]()
    launched = _launched(cell.program, names)
    for row in cell.dispatches:
        counts, total = launched.get(row.name, ({}, None))
        if total is None or row.sites not in (None, total):
            counts = {_NOWHERE: row.sites or 0}
            total = 0
        if row.stack_bytes is None:
            frame = row.alloca_bytes
        else:
            frame = row.stack_bytes
        all_parts.update(counts)
        for part, count in counts.items():
            if row.sites is not None:
                sites[part] += count
            if frame is not None and frame >= stack.get(part, 0):
                stack[part] = frame
        if row.code_bytes is not None:
            for part, share in _shares(row.code_bytes, counts, total).items():
                code[part] += share
    outside = _code_outside(cell, code)
    if outside:
        code[_NOWHERE] += outside
        all_parts.add(_NOWHERE)
        if sites:
            sites.setdefault(_NOWHERE, 0)
    amounts = dict[Part, Amounts]()
    for part in all_parts:
        amounts[part] = _amounts(sites.get(part), code.get(part), stack.get(part))
    return amounts


def _shares(code_bytes: int, counts: Mapping[Part, int], total: int) -> dict[Part, int]:
    """Divide code over parts, as much of it for each site, in whole bytes.

    The first part has what is left over; all of it without sites.
    """
    shares = dict.fromkeys(counts, 0)
    if total:
        for part, count in counts.items():
            shares[part] = code_bytes * count // total
    first = next(iter(counts))
    shares[first] += code_bytes - sum(shares.values())
    return shares


def _code_outside(cell: Cell, code: dict[Part, int]) -> int:
    """Return the code of the executables that no part has.

    Parts that are more than the whole are no parts of it: they are set to 0.
    """
    whole = cell.value("executable_bytes")
    if whole is None:
        return 0
    outside = whole - sum(code.values())
    if outside >= 0:
        return outside
    code.update(dict.fromkeys(code, 0))
    return whole


def _by(level: int, parts: Mapping[Part, Amounts]) -> dict[str, Amounts]:
    """Return name → the amounts of its parts, added up.

    `level`: 0 for names of components, 1 for full names.
    """
    groups: dict[str, list[Amounts]] = {}
    for part, amounts in parts.items():
        groups.setdefault(part[level], []).append(amounts)
    return {name: _sum(amounts) for name, amounts in groups.items()}


def _sum(parts: Sequence[Amounts]) -> Amounts:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*map(astuple, parts), strict=True)
    sites, code, stack = map(_known_amounts, columns)
    return _amounts(
        sum(sites) if sites else None,
        sum(code) if code else None,
        max(stack, default=None),
    )


def _known_amounts(amounts: Iterable[int | None]) -> list[int]:
    return [amount for amount in amounts if amount is not None]


def components(
    base: Cell, head: Cell, names: Names
) -> tuple[tuple[ComponentDelta, ...], tuple[ComponentDelta, ...]]:
    """Return the components that moved, and all by full name.

    What moved: largest change of code first, then of sites, of stack, then by name.
    All: those of one section side by side, what is unattributed last.
    """
    sides = [attribute(cell, names) for cell in (base, head)]
    nothing = [_nothing_of(side) for side in sides]
    levels = list[list[ComponentDelta]]()
    for level in (0, 1):
        base_amounts, head_amounts = (_by(level, side) for side in sides)
        deltas = []
        for name in {**head_amounts, **base_amounts}:
            before = base_amounts.get(name, nothing[0])
            after = head_amounts.get(name, nothing[1])
            deltas.append(ComponentDelta(name, before, after))
        levels.append(deltas)
    moved = [part for part in levels[0] if any(map(part.change, AMOUNTS))]
    order = ("code_bytes", "dispatch_sites", "stack_bytes")
    section: dict[str, str] = {}
    for component, name in names.values():
        section.setdefault(name, component)

    def by_change(part: ComponentDelta) -> tuple[list[int], str]:
        return [-abs(part.change(amount)) for amount in order], part.name

    def by_section(part: ComponentDelta) -> tuple[bool, str, str]:
        return part.name == UNATTRIBUTED, section.get(part.name, ""), part.name

    return tuple(sorted(moved, key=by_change)), tuple(sorted(levels[1], key=by_section))


def _nothing_of(parts: Mapping[Part, Amounts]) -> Amounts:
    """Return the amounts of a component that a side does not have.

    An amount is 0 if the side knows that of any other component, else None.
    """
    nothing = Amounts()
    for amount in AMOUNTS:
        if any(part.get(amount) is not None for part in parts.values()):
            nothing = replace(nothing, **{amount: 0})
    return nothing
