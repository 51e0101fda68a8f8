"""Quiet by default: a comment where there is news, and only there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import report_factory as make
from replacing import replace

from bot.core.policy import Verdict, judge
from bot.core.publication import Acceptance, CommentState, accept, is_standing, resolves, seen, wants_comment
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, Outcome, Snapshot

CALM, ALARMED = CommentState("a" * 40, 1), CommentState("a" * 40, 1, True)
ONE = CellKey("bert", "vmvx")
MODELS, TARGETS = ("bert", "vit"), {"vmvx": "vmvx", "llvm-cpu-x86_64": "llvm-cpu"}


def at(edit: Callable[[Cell], Cell | None]) -> make.Edit:
    return lambda key, found: edit(found) if key == ONE else found


def side(edit: Callable[[Cell], Cell | None] = lambda found: found) -> Snapshot:
    return make.snapshot("3.13.0", at(edit), MODELS, TARGETS)


def refused(found: Cell) -> Cell:
    return make.failed(found, "error: no")


def over(found: Cell) -> Cell:
    return make.over(found, 40_000)


def lost(_found: Cell) -> None:
    return None


def shaky(found: Cell) -> Cell:
    return replace(make.grown(found, artifact_bytes=8), others=(Outcome("ok", {}, "e" * 64),))


def quiet(report: Report) -> bool:
    return not wants_comment(report, None, always=False)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (side(), side()),
        (side(refused), side(refused)),
        (side(over), side(over)),
        (side(lost), side(lost)),
        (side(shaky), side(lambda found: replace(shaky(found), artifact_digest="f" * 64))),
        (make.unsupported(side()), make.unsupported(side())),
    ],
)
def test_nothing_new_is_quiet(base: Snapshot, head: Snapshot) -> None:
    assert quiet(make.report(base, head))


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (side(), side(lambda found: make.grown(found, artifact_bytes=1))),
        (side(), side(lambda found: make.grown(found, artifact_bytes=-1))),
        (side(), side(refused)),
        (side(refused), side()),
        (side(), side(over)),
        (side(refused), side(over)),
        (side(), side(lost)),
        (side(lost), side()),
        (side(), side(lambda found: replace(found, status="timeout"))),
        (side(), side(shaky)),
        (side(), make.snapshot("3.13.0", models=(*MODELS, "whisper"), targets=TARGETS)),
        (make.snapshot("3.13.0", models=(*MODELS, "whisper"), targets=TARGETS), side()),
        (side(), make.unsupported(side())),
    ],
)
def test_a_cell_with_news_is_told(base: Snapshot, head: Snapshot) -> None:
    head = replace(head, compiler=replace(head.compiler, digest="f" * 64))  # with one compiler it would be noise
    report = make.report(base, head)
    assert wants_comment(replace(report, verdict=Verdict("pass")), None, always=False)


def test_a_new_unsupported_column_is_told_once() -> None:
    inline = make.unsupported(side())
    assert (quiet(make.report(side(), inline)), quiet(make.report(inline, inline))) == (False, True)


def test_a_standing_limit_alone_is_no_news() -> None:
    report = make.usual()
    assert report.verdict.findings and all(map(is_standing, report.verdict.findings))
    assert quiet(report)


def test_a_finding_that_is_no_standing_limit_is_news() -> None:
    report = make.usual()
    first, *rest = report.verdict.findings
    ended = replace(first, kind="state", outcomes=("failed: compile", "failed: compile, SIGSEGV"))
    first = replace(first, known=False)
    for finding in (first, replace(first, kind="state"), replace(ended, known=False)):
        assert not quiet(replace(report, verdict=Verdict("warn", (finding, *rest))))


def test_a_cell_that_ended_alike_on_both_sides_is_no_news() -> None:
    late = side(lambda found: replace(found, status="timeout"))
    for one in (late, side(lost)):
        made = make.report(one, one)
        verdict = judge(made.deltas, [])
        assert verdict.status == "warn" and quiet(replace(made, verdict=verdict))


def test_a_report_without_a_verdict_is_told_and_alarms() -> None:
    calm = make.report(side(), side())
    unknown = replace(calm, verdict=Verdict("unknown"))
    assert not quiet(unknown) and not resolves(unknown, ALARMED)


def test_what_broke_is_told() -> None:
    calm = make.report(side(), side())
    assert not quiet(replace(calm, broke="a shard was lost"))
    assert not quiet(replace(calm, notes=("model vit could not be read",)))
    noted = replace(calm.head, notes=("a shard is lost",))
    assert not quiet(replace(calm, head=noted))
    assert quiet(replace(calm, head=noted, base=noted))


def test_a_comment_that_is_there_is_updated() -> None:
    assert wants_comment(make.report(side(), side()), CALM, always=False)


def test_always_is_always() -> None:
    assert wants_comment(make.report(side(), side()), None, always=True)


def test_an_alarm_is_resolved_by_a_pass_alone() -> None:
    calm, alarm = make.report(side(), side()), make.report(side(), side(refused))
    taken = Acceptance("octocat", "", "label", 1, seen(alarm.verdict.findings))
    assert resolves(calm, ALARMED)
    assert not resolves(calm, CALM) and not resolves(calm, None)
    assert not resolves(alarm, ALARMED)
    assert not resolves(replace(alarm, verdict=accept(alarm.verdict, [taken])), ALARMED)
    assert not resolves(replace(calm, broke="a shard was lost"), ALARMED)
