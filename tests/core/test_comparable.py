"""bot.core.snapshot: what two sides made in different ways is not held against each other."""

from __future__ import annotations

from replacing import replace
from strategies import plain_snapshot

from bot.core.delta import diff
from bot.core.metrics import METRIC_IDS
from bot.core.policy import LevelSpec, Ratio, Rule, judge
from bot.core.snapshot import ASSEMBLED, FIRST, TOO_OLD, Cell, Dispatch, Outcome, Snapshot, comparable, other_version

MADE = {"registers_max": 32, "spill_bytes": 0, "sass_bytes": 900}
OLD = {"artifact_bytes": 1000, "executables": 2}
(PLAIN,) = plain_snapshot(("bert", "cuda", "ok")).cells
NO_GROWTH = LevelSpec(relative=Ratio(0, "0%"))  # type: ignore[arg-type]
RULES = (Rule("all", ("*",), fail=NO_GROWTH),)


def made(by: str | None, **metrics: int | None) -> Cell:
    told = {**OLD, **(MADE if by else dict.fromkeys(MADE)), **metrics}
    dispatch = Dispatch("e", "e_0", registers=metrics.get("registers_max", 32) if by else None, sass_bytes=1)
    return replace(PLAIN, metrics=told, assembler=by, dispatches=(dispatch,), artifact_digest="d" * 64)


def side(cell: Cell) -> Snapshot:
    return replace(plain_snapshot(("bert", "cuda", "ok")), cells=(cell,))


def test_the_same_assembler_is_compared() -> None:
    pair = (made("ptxas 1 -O3"), made("ptxas 1 -O3", sass_bytes=901))
    assert comparable(*pair) == pair
    (delta,) = diff(*map(side, pair))
    assert delta.metrics["sass_bytes"].change == 1 and delta.state == "changed"
    assert [one.metric for one in judge([delta], RULES).findings] == ["sass_bytes"]


def test_two_assemblers_or_none_are_not() -> None:
    for base, head in (("ptxas 1 -O3", "ptxas 2 -O3"), (None, "ptxas 2 -O3"), ("ptxas 1 -O3", None)):
        (delta,) = diff(side(made(base)), side(made(head, sass_bytes=5_000, spill_bytes=99)))
        assert delta.state == "same" and judge([delta], RULES).findings == ()
        for cell in (delta.base, delta.head):
            assert cell is not None
            assert {cell.value(name) for name in ASSEMBLED} == {None}
            assert all("not compared: base has " in cell.reasons[name] for name in ASSEMBLED)
            assert cell.dispatches[0].registers is cell.dispatches[0].sass_bytes is None


def test_outcomes_of_other_compiles_lose_it_too() -> None:
    noisy = replace(made("ptxas 1 -O3"), others=(Outcome("ok", {**OLD, **MADE}, "e" * 64),))
    base, _ = comparable(noisy, made("ptxas 2 -O3"))
    assert base is not None and base.others[0].metrics["sass_bytes"] is None


def test_a_metric_of_a_later_version_did_not_come_or_go_and_the_report_says_so() -> None:
    old, new = replace(made(None), metrics=OLD), replace(made(None), metrics={**OLD, "vgprs_max": 42})
    for (base, head), lacking in (((old, new), "base"), ((new, old), "head")):
        (delta,) = diff(side(base), side(head))
        assert (delta.metrics["vgprs_max"].base, delta.metrics["vgprs_max"].head) == (None, None)
        assert delta.state == "same" and judge([delta], RULES).findings == ()
        assert delta.head is not None and delta.head.reasons["vgprs_max"] == TOO_OLD
        said = f"not compared: {lacking} was measured by another version of this program, without vgprs_max"
        assert other_version(side(base), side(head)) == said
    assert other_version(side(new), side(new)) == other_version(replace(side(new), cells=()), side(new)) == ""


def test_a_value_that_is_lost_or_won_still_counts() -> None:
    known, lost = ({**OLD, "vgprs_max": value} for value in (42, None))
    (delta,) = diff(side(replace(PLAIN, metrics=known)), side(replace(PLAIN, metrics=lost)))
    assert delta.state == "changed" and delta.metrics["vgprs_max"].base == 42


def test_cells_without_measurements_stay_as_they_are() -> None:
    failed = replace(PLAIN, status="failed", metrics={})
    assert comparable(failed, made("ptxas 1 -O3")) == (failed, made("ptxas 1 -O3"))
    assert comparable(None, PLAIN) == (None, PLAIN)


def test_the_first_metrics_are_metrics() -> None:
    assert set(METRIC_IDS) > FIRST
