"""Goldens beside the rules: a limit that is broken is the finding, one that is kept leaves the rules as they are."""

from __future__ import annotations

import pytest

from bot.core.delta import diff
from bot.core.policy import Amount, LevelSpec, Rule, Verdict, judge
from bot.core.snapshot import Cell, CellKey, CompilerInfo, Snapshot, SourceInfo

KEY = CellKey("m", "t")
GOLDEN = Rule(
    "m.json:7 golden_binary_size",
    ("artifact_bytes",),
    ("m",),
    ("t",),
    fail=LevelSpec(limit=Amount(100, "own", "100")),
    beside=True,
)
TIGHTER = Rule("n.json:3 golden_binary_size", *(("artifact_bytes",), ("m",), ("t",)), fail=None, beside=True)
GROWTH = Rule("growth", ("*",), warn=LevelSpec(absolute=Amount(5, "own", "5")))


def side(value: int | None) -> Snapshot:
    cell = Cell(KEY, "ok", {"artifact_bytes": value, "executables": 1}, artifact_digest=str(value))
    return Snapshot(CompilerInfo("3", "", ""), SourceInfo(), (cell,), targets={"t": "vmvx"}, models={"m": "ab"})


def judged(base: int | None, head: int | None, *rules: Rule) -> Verdict:
    return judge(diff(side(base), side(head)), rules)


@pytest.mark.parametrize(
    ("base", "head", "found", "status"),
    [
        (90, 100, [("growth", "change")], "warn"),  # equal passes, as in the suite's own runner
        (90, 101, [("m.json:7 golden_binary_size", "limit")], "fail"),
        (96, 100, [], "pass"),
        (120, 110, [("m.json:7 golden_binary_size", "limit")], "pass"),  # base had it, too
        (110, 120, [("m.json:7 golden_binary_size", "limit")], "fail"),
        (None, 101, [("m.json:7 golden_binary_size", "limit")], "fail"),
        (90, None, [("m.json:7 golden_binary_size", "unknown")], "warn"),
    ],
)
def test_a_golden_stands_beside_the_rules(
    base: int | None, head: int | None, found: list[tuple[str, str]], status: str
) -> None:
    verdict = judged(base, head, GOLDEN, GROWTH)
    assert [(one.rule, one.kind) for one in verdict.findings] == found and verdict.status == status


def test_a_golden_that_is_kept_may_be_a_budget_to_watch() -> None:
    verdict = judged(90, 95, GOLDEN, GROWTH)
    assert [(one.rule, one.head, one.limit) for one in verdict.budgets] == [(GOLDEN.name, 95, 100)]
    assert not judged(50, 55, GOLDEN, GROWTH).budgets


def test_of_several_goldens_the_first_that_is_broken_is_told() -> None:
    verdict = judged(90, 150, TIGHTER, GOLDEN, GROWTH)
    assert [one.rule for one in verdict.findings] == [GOLDEN.name]
