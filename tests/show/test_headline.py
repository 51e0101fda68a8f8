"""The first sentence: is it allowed, what alarms, which way the code went, and how many cells are how."""

from __future__ import annotations

import re

import pytest
import report_factory as make
from hypothesis import given
from replacing import replace
from strategies import snapshots

from bot.core.policy import Accepted, Finding, Status, Verdict, judge
from bot.core.record import difference
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Failure, Snapshot
from bot.show.blocks import plain
from bot.show.facts import build_facts
from bot.show.filters import signed
from bot.show.report import everything, headline

MANY = make.many()


def said(report: Report) -> str:
    return plain(headline(build_facts(report)))


def judged(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("3.12.0", base), make.snapshot("3.13.0", head))


def same(_key: CellKey, found: Cell) -> Cell:
    return found


def stepped(bytes_: int, *others: int) -> Report:
    """Artifacts of vmvx change by this, those of cuda by the next."""
    steps = dict(zip(("vmvx", "cuda"), (bytes_, *others), strict=False))
    return judged(same, lambda key, c: make.grown(c, artifact_bytes=steps[key.target]) if key.target in steps else c)


def test_it_says_how_much_was_compared_and_why_not_all() -> None:
    late = make.partly(CellKey("bert_l4_f32_s128", "cuda"), timeout=CellKey("bert_l4_f32_dyn", "vmvx"))
    unknown = "⚪ Code size: unknown, as nothing could be compared"
    for report, words in (
        (make.none(), "✅ Code size: nothing changed · 104 of 104 builds bit-identical"),
        (make.usual(), "✅ Code size: nothing changed · 101 of 104 builds bit-identical"),  # what base had is no alarm
        (
            make.partly(),
            "⚠️ Code size: 1 of 8 builds compared: 7 not measured on head · no change seen · "
            "1 of 8 builds bit-identical",
        ),
        (
            late,
            "⚠️ Code size: 6 of 8 builds compared: 1 timed out on head (not finished after 1800 s), "
            "1 not measured on head · no change seen · 6 of 8 builds bit-identical",
        ),
        (
            make.no_baseline(),
            f"{unknown} · none of 18 builds compared: 16 not measured on base, 2 unsupported on head",
        ),
        (make.broken_on_both(), f"{unknown} · 104 of 104 builds broken on both sides"),
    ):
        assert said(report) == words


def test_lost_cells_that_fail_are_not_called_over_their_limit() -> None:
    made = make.partly()
    fail: dict[str, Status] = {"unmeasured": "fail"}
    told = said(replace(made, verdict=judge(made.deltas, [], fail)))
    assert told.startswith(
        "❌ Code size: 7 of 8 builds not compared · 1 of 8 builds compared: 7 not measured on head · "
    )
    assert "limit" not in told


def test_a_model_that_is_new_is_told() -> None:
    models = ("bert_l4_f32_s128", "gpt2_f32_dyn")
    report = make.report(make.snapshot("3.12.0", models=models[:1]), make.snapshot("3.13.0", models=models))
    assert said(report) == "✅ Code size: within the rules · 8 new, 8 of 16 builds bit-identical"


def test_who_accepted_is_named_beside_what_base_had() -> None:
    report = make.usual()
    grown = Finding(CellKey("gpt2_f32_dyn", "vmvx"), "fail", "executables", "r", "change", "0", "+1", 1, 2)
    verdict = Verdict("warn", (replace(grown, accepted=Accepted("alice", "why")), *report.verdict.findings))
    assert said(replace(report, verdict=verdict)).startswith(
        "⚠️ Code size: 1 of 104 builds over the limit, accepted · accepted by alice · "
    )


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (stepped(7), r"✅ Code size: larger within the rules, \+91 B \(\+0.0004 %\) in all · 13 larger"),
        (stepped(-7), r"✅ Code size: smaller, −91 B \(−0.0004 %\) in all · 13 smaller"),
        (stepped(7, -9), r"✅ Code size: changed within the rules, −26 B .* in all · 13 larger, 13 smaller"),
        (stepped(7, -7), r"✅ Code size: changed within the rules, ±0 in all · 13 larger, 13 smaller"),
        (stepped(0), r"✅ Code size: within the rules · 13 changed at the same size"),
    ],
)
def test_without_an_alarm_it_says_which_way_the_code_went(report: Report, words: str) -> None:
    assert report.verdict.status == "pass"
    assert re.fullmatch(words, said(report)), said(report)


def test_a_large_improvement_is_what_is_said_first() -> None:
    told = said(
        judged(same, lambda _key, c: make.with_metrics(c, artifact_bytes=(c.value("artifact_bytes") or 0) // 2))
    )
    assert told.startswith("✅ Code size: smaller, −11,19") and "(−50.0 %) in all · 104 smaller" in told


def test_an_artifact_that_is_not_known_any_more_is_not_as_large_as_before() -> None:
    lost = judged(same, lambda key, c: make.with_metrics(c, artifact_bytes=None) if key.target == "vmvx" else c)
    assert "as large" not in said(lost) and "nothing changed" not in said(lost)
    other = judged(same, lambda key, c: make.with_metrics(c, linalg_ops=None) if key.target == "vmvx" else c)
    assert said(other).endswith("13 changed at the same size")


def test_broken_cells_that_the_rules_allow_are_still_told() -> None:
    made = make.broken()
    allowed = replace(made, verdict=judge(made.deltas, [], {}))
    assert said(allowed) == "⚪ Code size: unknown, as nothing could be compared · 104 of 104 builds newly broken"


def test_equal_metrics_are_not_called_identical() -> None:
    report = judged(same, lambda key, c: replace(c, artifact_digest=None) if key.target == "vmvx" else c)
    assert said(report) == "✅ Code size: nothing changed · 91 of 104 builds bit-identical, 13 equal in every metric"


def test_the_cost_of_compiling_is_no_headline() -> None:
    report = judged(
        same, lambda _key, c: make.with_metrics(c, compile_cpu_ms=10**9, artifact_bytes=c.value("artifact_bytes"))
    )
    assert said(report) == "✅ Code size: within the rules · 104 changed at the same size"


def test_an_analysis_that_broke_is_no_pass() -> None:
    assert said(replace(make.none(), broke="a shard was lost")).startswith("⚪ ")


ICONS = {"pass": "✅", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}


@given(snapshots(), snapshots())
def test_no_sentence_denies_a_change(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    told = said(report)
    assert told.startswith(f"{ICONS[report.verdict.status]} Code size: ")
    moved = {delta.state for delta in report.deltas} & {"changed", "fixed", "new", "removed", "newly-broken"}
    assert not (moved and ("nothing changed" in told or "no change seen" in told))
    for broken in [delta for delta in report.deltas if delta.state == "newly-broken"][:1]:
        assert re.search(r"\d of \d+ builds? newly broken", told), broken.key


@given(snapshots(), snapshots())
def test_every_count_is_a_recount(base: Snapshot, head: Snapshot) -> None:
    report = make.report(base, head)
    told, states = said(report), [delta.state for delta in report.deltas]
    changes = [delta.metrics["artifact_bytes"].change for delta in report.deltas]
    counts = {
        "compiles? now": states.count("fixed"),
        "new": states.count("new"),
        "larger": sum(change > 0 for change in changes if change is not None),
        "smaller": sum(change < 0 for change in changes if change is not None),
    }
    for words, count in counts.items():
        found = re.search(rf"(?:^| )([\d,]+) {words}(?:,|$| ·)", told)
        assert (found[1] if found else "0") == f"{count:,}", words
    total = everything(build_facts(report))
    moved = difference(total.base or 0, total.head or 0)
    assert signed(moved) in told or not moved


VMVX = CellKey("bert_l4_f32_s128", "vmvx")


def refused(key: CellKey, found: Cell) -> Cell:
    return make.failed(found, "error") if key == VMVX else found


def crashed(key: CellKey, found: Cell) -> Cell:
    if key != VMVX:
        return found
    return replace(make.failed(found, "error"), failure=Failure("compile", "boom", signal="SIGSEGV"))


def test_a_failure_of_another_kind_is_not_called_unchanged() -> None:
    told = said(judged(refused, crashed))
    assert "nothing changed" not in told and "1 broken on both sides in another way" in told
    assert "in another way" not in said(judged(refused, refused))


def test_a_state_that_the_rules_forbid_is_no_limit() -> None:
    finding = Finding(VMVX, "fail", None, "states", "state", "broken", "failed → failed")
    told = said(replace(judged(refused, refused), verdict=Verdict("fail", (finding,))))
    assert told.startswith("❌ Code size: 1 of 104 builds in a state that the rules forbid")
