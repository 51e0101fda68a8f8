"""How an artifact ran beside another one: the price in CPU time, and equal outputs."""

from __future__ import annotations

from bot.core.record import Count, Record, Small


class Price(Record, frozen=True):
    """CPU time of both artifacts on this machine, in pairs of runs."""

    # before_us, after_us: medians of the CPU times of one run on one thread, in
    # microseconds
    before_us: Count
    after_us: Count
    pairs: Count
    ratio: float  # median of after / before over the pairs (1.02: 2 % slower)
    # low, high: an interval that holds the true median ratio with 95 % probability,
    # from the order of the pairs
    low: float
    high: float


class Run(Small, frozen=True):
    """The result of running an artifact beside the reference's.

    In a fold audit, it is a folded artifact beside the unfolded program's.
    """

    # whether it gave the outputs of the reference's; None if they were not compared
    equal: bool | None = None
    equal_note: str = ""  # on what inputs, or why they were not
    # CPU time of the reference's artifact (before) and of its own (after); None with
    # `price_note`
    price: Price | None = None
    price_note: str = ""


def unknown_run(reason: str) -> Run:
    """Return the run of an artifact that was not run, with the reason."""
    return Run(equal_note=reason, price_note=reason)
