"""Byte ranges of a binary and the proof that no byte is counted twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bot.errors import MalformedBinary


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A range of bytes inside a whole; both figures in bytes."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """Offset of the first byte after the span."""
        return self.start + self.size

    def of(self, data: bytes) -> bytes:
        """The bytes of the span; the span is known to lie inside `data`."""
        return data[self.start : self.end]


def span_inside(start: int, size: int, whole_bytes: int, where: str) -> Span:
    """A span that lies inside a whole of `whole_bytes`; raises `MalformedBinary` otherwise."""
    if start < 0 or size < 0 or start + size > whole_bytes:
        raise MalformedBinary(f"{size} bytes at offset {start} exceed the whole of {whole_bytes} bytes", where=where)
    return Span(start, size)


def require_disjoint(spans: Iterable[Span], where: str) -> None:
    """Raises `MalformedBinary` where two spans share a byte."""
    end = 0
    for span in sorted(span for span in spans if span.size):
        if span.start < end:
            raise MalformedBinary(f"two parts share the byte at offset {span.start}", where=where)
        end = span.end


def label_sizes(labelled: Mapping[Span, str], where: str) -> dict[str, int]:
    """Bytes per label, in the order in which labels first appear; raises `MalformedBinary` where spans overlap."""
    require_disjoint(labelled, where)
    sizes: dict[str, int] = {}
    for span, label in labelled.items():
        sizes[label] = sizes.get(label, 0) + span.size
    return {label: size for label, size in sizes.items() if size}
