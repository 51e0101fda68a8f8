"""How long finding families takes: 10,000 executables made from real ones. Part of `make bench`."""

from __future__ import annotations

import time

from family_texts import synthetic

from bot.core.reading import ProgramFacts
from bot.explain.describing import describe

EXECUTABLES = 10_000
LIMIT_SECONDS = 30.0


def seconds(count: int) -> tuple[float, int]:
    """Time to describe so many executables, and the families found."""
    texts = tuple(synthetic(count))
    facts = ProgramFacts(count, 0, count, (), sources=texts)
    started = time.perf_counter()
    _, families = describe(facts)
    return time.perf_counter() - started, len(families)


def main() -> None:
    """Print the seconds for a tenth and for all of them."""
    for count in (EXECUTABLES // 10, EXECUTABLES):
        elapsed, found = seconds(count)
        print(f"{count} executables: {elapsed:.1f} s, {found} families (limit {LIMIT_SECONDS:.0f} s for {EXECUTABLES})")


if __name__ == "__main__":
    main()
