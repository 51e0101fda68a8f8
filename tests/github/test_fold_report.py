"""bot.github.extra_reports: the audit of a run by hand or on a schedule, of no pull request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import fold_factory as make
import pytest
from action_stage import MODEL, Ran, Stage
from json_rows import fold_of

from bot.config.configuration import Config
from bot.core.fold import FoldAudit, FoldOptions
from bot.errors import BotError, InputError, Interrupted
from bot.study.prepare import Request, Work

pytestmark = pytest.mark.slow

FILES = {"fold.json", "fold.md"}


@dataclass
class Audits:
    """What was asked of the work that is not done here; `broken` is raised in its place."""

    asked: list[tuple[Request, Config, FoldOptions]] = field(default_factory=list)
    broken: Exception | None = None

    def __call__(self, work: Work, options: FoldOptions) -> FoldAudit:
        request = work.request
        self.asked.append((request, work.config, options))
        assert request.config is not None and request.config.is_file(), "the commit's files are at hand"
        if self.broken:
            raise self.broken
        return make.small()


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> Audits:
    found = Audits()
    monkeypatch.setattr("bot.github.extra_reports.audited", found)
    return found


def by_hand(stage: Stage, inputs: dict[str, str] | None = None, **keys: Any) -> Ran:
    """A run by hand, of a second commit against the first."""
    stage.main(**keys)
    stage.origin.push_main("Second", {"models/a.mlir": MODEL.format("a") + "// longer\n"})
    return stage.dispatch(**(inputs or {}))


def on_schedule(stage: Stage, sha: str) -> Ran:
    return stage.run("schedule", {"schedule": "0 3 * * 0"}, sha, ref="refs/heads/main")


def test_a_run_by_hand_ends_with_the_audit_of_its_head(stage: Stage, audits: Audits) -> None:
    ran = by_hand(stage, fold={"max_slowdown": "1.5%"})
    assert ran.code == 0, ran.error
    ((request, config, options),) = audits.asked
    assert options == FoldOptions(0.015, run=True)
    assert request.specs == {"head": stage.spec("one")} and [path.name for path in config.models] == ["a.mlir"]
    assert fold_of((ran.out / "fold.json").read_bytes()) == make.small()
    section = (ran.out / "fold.md").read_text(encoding="utf-8")
    assert ran.summary.endswith(section) and (ran.out / "summary.md").read_text(encoding="utf-8").endswith(section)
    assert ran.summary.index("Code size: ") < ran.summary.index("Fold audit: ")
    assert "Fold audit" not in (ran.out / "comment.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "fold", "options"),
    [
        ({}, "true", FoldOptions()),
        ({"fold": {"max_slowdown": "1.5%"}}, "true", FoldOptions(0.015)),
        ({}, "", None),
        ({"fold": {}}, "false", None),
        ({"fold": {}}, "", FoldOptions()),
    ],
)
def test_the_input_goes_before_the_configuration(
    stage: Stage, audits: Audits, keys: dict[str, Any], fold: str, options: FoldOptions | None
) -> None:
    ran = by_hand(stage, {"fold": fold}, **keys)
    assert ran.code == 0, ran.error
    assert [one[2] for one in audits.asked] == ([] if options is None else [options])
    assert ("Fold audit: " in ran.summary) is (options is not None)
    assert bool(FILES & {path.name for path in ran.out.iterdir()}) is (options is not None)


def test_the_packaged_suite_can_be_folded_by_hand(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Request] = []

    def audited(work: Work, _options: FoldOptions) -> FoldAudit:
        requests.append(work.request)
        return make.small()

    monkeypatch.setattr("bot.github.extra_reports.audited", audited)
    stage.main()
    stage.origin.push_main("Second", {"notes.txt": "one\n"})
    sides = {side: stage.spec("one") for side in ("base", "head")}
    ran = stage.dispatch(config="default", models="mobilenet_v1_f32_224", targets="vmvx", fold="true", **sides)
    assert ran.code == 0 and [one.config for one in requests] == [None], ran.error


def test_a_pull_request_and_a_push_never_have_one(stage: Stage, audits: Audits) -> None:
    main = stage.main(fold={})
    assert stage.push(main).code == 0
    ran = stage.pull(*stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"}))
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}
    assert audits.asked == [] and "Fold audit" not in ran.summary


def test_a_schedule_has_one_even_where_the_baseline_is_stored_already(stage: Stage, audits: Audits) -> None:
    main = stage.main(fold={})
    for runs in (1, 2):
        ran = on_schedule(stage, main)
        assert ran.code == 0, ran.error
        assert len(audits.asked) == runs and audits.asked[-1][2] == FoldOptions()
        assert "**Fold audit: 3 of 6 builds folded**" in ran.summary
    assert "nothing to measure" in ran.said and {path.name for path in ran.out.iterdir()} >= FILES


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (InputError("is *odd* <b>", where="a.mlir"), r"a.mlir: is \*odd\* \<b\>"),
        (ValueError("of the program"), "a fault of the program, not of what it was given: ValueError"),
    ],
)
def test_an_audit_that_breaks_takes_nothing_from_the_report(
    stage: Stage, audits: Audits, broken: Exception, words: str
) -> None:
    audits.broken = broken
    ran = by_hand(stage, fold={})
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}
    assert words in ran.summary.partition("**Fold audit: not made**: ")[2] and "no fold audit: " in ran.said
    assert "Code size: " in ran.summary and not FILES & {path.name for path in ran.out.iterdir()}


def test_a_head_that_is_a_snapshot_has_none_and_an_interruption_ends_the_run(stage: Stage, audits: Audits) -> None:
    first = by_hand(stage, fold={})
    assert len(audits.asked) == 1
    sides = {"base": str(first.out / "base.json"), "head": str(first.out / "head.json")}
    ran = stage.dispatch(**sides)
    assert ran.code == 0 and "Fold audit" not in ran.summary, ran.error
    ran = stage.dispatch(**sides, fold="true")
    assert ran.code == 0 and len(audits.asked) == 1
    assert "Fold audit: not made" in ran.summary and "input head: folding needs a compiler" in ran.summary
    audits.broken = Interrupted("ended by SIGTERM")
    ran = stage.dispatch()
    assert ran.code == Interrupted.exit_code != BotError.exit_code and "ended by SIGTERM" in ran.error
