"""Executables around the same costliest operation that were fused with other neighbours."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence

from bot.explain.families.family_graph import children, is_named, is_scalar
from bot.explain.families.family_groups import FamilyDraft, Member, grouped
from bot.explain.families.family_views import line, shapes_of
from bot.explain.texts import Operation, Text

NAMES_SHOWN = 6
_HEAVY = re.compile(r"matmul|matvec|vecmat|mmt4d|contract|conv|attention|\.dot")
_PRODUCTS = frozenset({"arith.mulf", "arith.muli", "complex.mul"})


def _rank(text: Text, at: int) -> int:
    """2: contraction, convolution, attention; 1: another reduction; 0: elementwise."""
    operation = text.operations[at]
    if not operation.name.startswith(("linalg.", "iree_linalg_ext.")):
        return 0
    if _HEAVY.search(operation.name):
        return 2
    if "reduction" not in operation.attribute("iterator_types"):
        return int(bool(re.search(r"pooling|softmax|reduce|winograd|scan|sort|topk", operation.name)))
    return 2 if any(text.operations[inner].name in _PRODUCTS for inner in children(text, at)) else 1


def _elements(operation: Operation) -> int:
    shapes = shapes_of(operation.tail.operand_types)
    return math.prod(int(size) for shape in shapes for size in shape.split("x") if size != "?")


def root(text: Text) -> int | None:
    """Index of the costliest operation; None where everything is elementwise."""
    top = [at for at, one in enumerate(text.operations) if one.parent == 0 and (one.operands or one.block_arguments)]
    ranked = [(_rank(text, at), _elements(text.operations[at]), -at) for at in top]
    best = max(ranked, default=(0, 0, 0))
    return -best[2] if best[0] else None


def _root_key(member: Member) -> Hashable | None:
    at = root(member.text)
    if at is None:
        return None
    operations = member.text.operations
    body = tuple(operations[inner].template.text for inner in children(member.text, at))
    return operations[at].template.text, operations[at].tail.text, body


def _neighbours(member: Member) -> Counter[str]:
    at = root(member.text) or 0
    own = {at, *children(member.text, at)} if at else set()
    operations = enumerate(member.text.operations)
    return Counter(one.name for at, one in operations if at not in own and (is_scalar(one) or is_named(one)))


def _said(operations: Counter[str]) -> str:
    names = sorted(operations.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{count} {name}" if count > 1 else name for name, count in names[:NAMES_SHOWN]]
    parts += [f"… ({operations.total()} operations)"] if len(names) > NAMES_SHOWN else []
    return "+ " + ", ".join(parts) if parts else "nothing else"


def _lines(group: Sequence[Member]) -> list[str]:
    """What each member does beyond that which all of them do; members with the same neighbours in one line."""
    neighbours = [_neighbours(member) for member in group]
    common = neighbours[0].copy()
    for one in neighbours[1:]:
        common &= one
    said: dict[str, list[str]] = {}
    for member, one in zip(group, neighbours, strict=True):
        said.setdefault(_said(one - common), []).append(member.name)
    names = {text: f"@{who[0]}" + (f" and {len(who) - 1} more" if len(who) > 1 else "") for text, who in said.items()}
    return [line(name, [text]) for text, name in names.items()] if len(said) > 1 else []


def different_fusions(members: Sequence[Member]) -> list[FamilyDraft]:
    """Families of one root; the same neighbours everywhere are no such family."""
    groups = grouped(members, _root_key)
    return [FamilyDraft(group, lines) for group in groups if (lines := _lines(group))]
