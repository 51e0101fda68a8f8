"""The products of one finished compile once they are parsed, and what a metric is that cannot be known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from bot.core.values.reading import ArtifactReading, Products
from bot.errors import MalformedBinary
from bot.readers.code.object_code import FunctionCode
from bot.readers.formats.cubin import Module, read_assembled
from bot.readers.stack_usage import Frame, read_stack_usage
from bot.readers.statistics import Statistics, read_statistics

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known:
    """A metric's value, or why it is None."""

    value: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The products, each parsed or None; `reasons` then says why, by the product's name."""

    products: Products
    artifact: ArtifactReading | None
    statistics: Statistics | None
    frames: Mapping[str, Frame] | None
    functions: Mapping[str, FunctionCode] | None
    modules: tuple[Module, ...] | None = None
    reasons: dict[str, str] = field(default_factory=dict)

    def reason(self, product: str) -> str:
        """Why a product is None."""
        return self.reasons.get(product) or f"the compile left no {product.replace('_', ' ')}"


def parse(
    products: Products,
    artifact_reader: Callable[[bytes], ArtifactReading],
    object_reader: Callable[[bytes], Mapping[str, FunctionCode]],
) -> Parsed:
    """Parse each product for itself: one that cannot be read is None, and takes no other with it."""
    reasons = dict(products.reasons)

    def attempt(name: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except MalformedBinary as error:
            reasons[name] = error.line
            return None

    stack_usage, statistics, assembled = products.stack_usage, products.statistics, products.assembled
    artifact = attempt("artifact", lambda: artifact_reader(products.artifact))
    if artifact and artifact.unread:
        reasons["unread"] = "; ".join(artifact.unread)
    return Parsed(
        products=products,
        artifact=artifact,
        statistics=None if statistics is None else attempt("statistics", lambda: read_statistics(statistics)),
        frames=None if stack_usage is None else attempt("stack_usage", lambda: read_stack_usage(stack_usage)),
        functions=attempt(
            "objects", lambda: {name: code for each in products.objects for name, code in object_reader(each).items()}
        ),
        modules=attempt("assembled", lambda: None if assembled is None else tuple(map(read_assembled, assembled))),
        reasons=reasons,
    )


def listed_entries(artifact: ArtifactReading | None) -> int | None:
    """Entry points of the artifact; None unless all its executables list theirs (stripped CPU libraries do not)."""
    if artifact is None or artifact.unread or not artifact.executables:
        return None
    listed = [len(reading.entry_points) for reading in artifact.executables]
    return sum(listed) if all(listed) else None
