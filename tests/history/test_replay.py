"""`calibrate --replay`: of each step what `report` says of it, and levels that alarm as often as they claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import everyday
import history_factory
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from series import KEY, Value, side, write, write_series

from bot.cli.main import main
from bot.config.configuration import load_config
from bot.core.delta import diff
from bot.core.history import history_lines
from bot.core.planned import narrowed
from bot.core.policy import NO_NOISE, Amount, LevelSpec, Rule, judge
from bot.core.snapshot import Snapshot
from bot.core.study import Variant
from bot.core.thresholds import counts, least_levels, replayed, variants_of
from bot.errors import InputError

Replay = Callable[..., tuple[int, str, str]]
CONFIG = load_config()
SIZES = (50_438, 50_438, 74_296, 64_920, 83_990, 84_090)


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Replay:
    """Exit code, standard output and standard error, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")  # a long line is one here

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["calibrate", "--config", "default", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return run


def sides(*values: Value, metric: str = "artifact_bytes") -> list[tuple[str, Snapshot]]:
    return [(f"3.{number}.0", side(f"3.{number}.0", value, metric)) for number, value in enumerate(values, 2)]


def variants(of: Sequence[tuple[str, Snapshot]]) -> list[Variant]:
    return [Variant(name, name, one) for name, one in of]


def history(of: Sequence[tuple[str, Snapshot]]) -> bytes:
    """The same as `history.json` has it."""
    points = [
        {
            "compiler": name,
            "model": cell.key.model,
            "target": cell.key.target,
            "status": cell.status,
            "metrics": dict(cell.metrics),
        }
        for name, made in of
        for cell in made.cells
    ]
    return json.dumps({"points": points, "schema": "code-size-history/1", "more": []}).encode()


def test_each_step_is_judged_as_its_two_sides_are(replay: Replay, tmp_path: Path) -> None:
    of = sides(*SIZES, None)
    steps = list(replayed(variants(of), CONFIG.thresholds, CONFIG.states, CONFIG.noise))
    for step, ((old, base), (new, head)) in zip(steps, pairwise(of), strict=True):
        verdict = judge(diff(base, head), CONFIG.thresholds, CONFIG.states, CONFIG.noise)
        assert (step.base, step.head, step.status, step.alarms) == (old, new, verdict.status, verdict.news)
    assert [step.status for step in steps] == ["pass", "fail", "pass", "fail", "pass", "fail"]
    paths = write_series(tmp_path / "n", {f"3.{number}.0": value for number, value in enumerate((*SIZES, None), 2)})
    code, out, _ = replay("--replay", *map(str, paths))
    assert code == 0 and out.splitlines()[0] == "6 steps: 3 would have failed, 3 passed"
    assert f"  fail: states (newly-broken): {KEY}: ok → failed" in out
    assert "n/3.3.0.json → n/3.4.0.json: fail" in out.replace(f"{tmp_path}/", "")
    assert replay("--replay", "n")[1] == out.replace(f"{tmp_path}/", ""), "a directory in the order of its numbers"


def test_real_changes_say_what_their_comments_say(replay: Replay, tmp_path: Path) -> None:
    for case in ("patch_release", "one_flag", "newly_broken"):
        base, head = everyday.sides(case)
        names = [str(write(tmp_path / f"{case}-{n}.json", made)) for n, made in (("base", base), ("head", head))]
        code, out, _ = replay("--replay", *names)
        report = everyday.report(case)
        assert code == 0 and f": {report.verdict.status}\n" in out, case
        failing = [one for one in report.verdict.news if one.level == "fail"]
        assert out.count("\n  fail: ") == min(len(failing), 8)


def test_a_history_says_the_same_as_its_snapshots(replay: Replay, tmp_path: Path) -> None:
    of = sides(*SIZES, None, 84_090)
    (tmp_path / "history.json").write_bytes(history(of))
    code, told, err = replay("--replay", "history.json")
    assert code == 0 and "a history has statuses and metrics alone: other bytes of the same size" in err
    paths = [str(write(tmp_path / f"{name}.json", made)) for name, made in of]
    assert replay("--replay", *paths)[1].replace(f"{tmp_path}/", "").replace(".json", "") == told
    read = variants_of(history(of), "history.json")
    assert [one.name for one in read] == [name for name, _ in of], "3.10.0 after 3.9.0"
    for known, (_, whole) in zip((one.snapshot for one in read), of, strict=True):
        assert known and [(cell.key, cell.status, cell.metrics) for cell in known.cells] == [
            (cell.key, cell.status, cell.metrics) for cell in whole.cells
        ]


def test_a_release_that_could_not_be_had_is_stepped_over_and_the_growth_behind_it_is_judged(
    replay: Replay, tmp_path: Path
) -> None:
    (tmp_path / "history.json").write_bytes(b"".join(history_lines(history_factory.eventful())))
    _, out, _ = replay("--replay", "history.json")
    assert out.splitlines()[:2] == [
        "3 steps: 2 would have failed, 1 passed",
        "not measured: 3.12.0; what follows is held against what was measured before",
    ]
    step = out.partition("3.11.0 → 3.13.0, across 3.12.0: fail\n")[2].partition("3.13.0 → 3.13.0 (2): pass")[0]
    assert f"artifact_bytes of {history_factory.MOBILENET}: +33,552 B (+66.5 %)" in step
    assert "states" not in step, "no cell is broken: none was tried"


@pytest.mark.parametrize("told", [True, False])
def test_a_hole_of_one_cell_is_no_alarm_and_what_follows_is_held_against_what_came_before(
    replay: Replay, tmp_path: Path, told: bool
) -> None:
    """Over two releases: the step between them has the cell on neither side."""
    points = json.loads(history(sides(50_438, 50_438, 50_438, 83_990)))
    for hole in [one for one in points["points"] if one["compiler"] in ("3.3.0", "3.4.0")]:
        if (hole["model"], hole["target"]) == (KEY.model, KEY.target):
            hole.update(status="unmeasured", metrics={})
            if not told:
                points["points"].remove(hole)
    (tmp_path / "history.json").write_text(json.dumps(points))
    _, out, _ = replay("--replay", "history.json")
    assert out.splitlines() == [
        "3 steps: 1 would have failed, 2 passed",
        "3.2.0 → 3.3.0: pass",
        f"  not measured: {KEY}",
        "3.3.0 → 3.4.0: pass",
        "3.4.0 → 3.5.0: fail",
        f"  fail: code size (4KiB and 5%): artifact_bytes of {KEY}: +33,552 B (+66.5 %) (since 3.2.0)",
        "",
        "By rule",
        "  code size: fail in 1 step, 1 alarm",
    ]
    assert replay("--replay", "history.json", "--target", "vmvx")[1].startswith("3 steps: 3 passed\n")


def test_a_timeout_is_a_hole_and_a_failure_is_none(replay: Replay, tmp_path: Path) -> None:
    of = sides(50_438, 50_438, 83_990)
    for status, words in {
        "timeout": [f"  not measured: {KEY}", "(since 3.2.0.json)"],
        "failed": [f"  fail: states (newly-broken): {KEY}: ok → failed", "3.4.0.json: pass"],
    }.items():
        cells = (replace(one, status=status, metrics={}) if one.key == KEY else one for one in of[1][1].cells)
        made = [of[0], (of[1][0], replace(of[1][1], cells=tuple(cells))), of[2]]
        paths = [str(write(tmp_path / f"{name}.json", side)) for name, side in made]
        _, out, _ = replay("--replay", *paths)
        assert all(word in out.replace(f"{tmp_path}/", "") for word in words), out


def test_a_model_that_was_left_out_for_a_while_is_not_new_when_it_is_back(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "code-size.yml").write_text("schema: code-size-config/1\nstates: {new: warn, removed: warn}\n")
    of = sides(50_438, 50_438, 83_990)
    without = narrowed({"it": of[1][1]}, target_globs=("vmvx",))["it"]
    named = [(of[0][0], of[0][1]), (of[1][0], without), (of[2][0], of[2][1])]
    paths = [str(write(tmp_path / f"{name}.json", made)) for name, made in named]
    _, out, _ = replay("--config", "code-size.yml", "--replay", *paths)
    gone, back = out.replace(f"{tmp_path}/", "").partition("3.3.0.json → 3.4.0.json")[::2]
    assert f"states (removed): {KEY}" in gone and f"{KEY}: +33,552 B (+66.5 %) (since 3.2.0.json)" in back
    assert "states (new)" not in back


def test_what_is_first_measured_behind_a_gap_has_nothing_to_be_held_against(replay: Replay, tmp_path: Path) -> None:
    points = json.loads(history(sides(5, 5, 5)))
    for one in points["points"]:
        if one["compiler"] == "3.2.0" or (one["compiler"] == "3.3.0" and one["target"] == "vmvx"):
            one.update(status="unmeasured", metrics={})
    (tmp_path / "history.json").write_text(json.dumps(points))
    _, out, _ = replay("--replay", "history.json")
    assert out.splitlines() == [
        "1 step: 1 passed",
        "not measured: 3.2.0; what follows is held against what was measured before",
        "3.3.0 → 3.4.0: pass",
    ]
    assert replay("--replay", "history.json", "--target", "vmvx")[1].splitlines()[0] == "1 step: 1 had nothing to judge"


def test_what_two_commands_gave_either_way_is_no_alarm_but_in_a_history() -> None:
    of = sides((50_438, 83_990), (83_990, 50_438))
    (step,) = replayed(variants(of), CONFIG.thresholds, CONFIG.states, NO_NOISE)
    (blind,) = replayed(variants_of(history(of), "h"), CONFIG.thresholds, CONFIG.states, NO_NOISE)
    assert (step.status, blind.status) == ("pass", "fail")


def broken(**fields: Any) -> bytes:
    found = json.loads(history(sides(5, 6)))
    found["points"][0].update(fields)
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is not a history: it is empty"),
        (b'{"schema": "code-size-history/2", "points": []}', "its schema is 'code-size-history/2'"),
        (broken(metrics={"artifact": 1}), "points[0]: unknown metric 'artifact'"),
        (broken(metrics={"artifact_bytes": -1}), "points[0].metrics[...]: expected `int` >= 0"),
        (broken(status="fine"), "points[0].status"),
        (broken(target="vmvx"), "points[1]: bert_l4_f32_s128 on vmvx stands there twice for 3.2.0"),
    ],
)
def test_a_history_that_is_none_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(InputError) as refused:
        variants_of(text, "history.json")
    assert words in refused.value.line


def test_what_is_no_row_of_changes_is_refused(replay: Replay, tmp_path: Path) -> None:
    path = str(write_series(tmp_path, {"3.2.0": 5})[0])
    (tmp_path / "history.json").write_bytes(history(sides(5)))
    for words, arguments in {
        "holds 1 of the two that a step has": ["--replay", path],
        "history.json: holds 1 of the two": ["--replay", "history.json"],
        "a history is replayed alone": ["--replay", "history.json", path],
        "is no release, file or directory": ["--replay", "nothing", path],
        "--model x: matches no model": ["--replay", path, path, "--model", "x"],
        "--alarms: is for a replay": ["--compiler", "3.13.0", "--alarms", "1"],
    }.items():
        code, _, err = replay(*arguments)
        assert code == 2 and words in err.splitlines()[-1]
    for words, arguments in {
        "not allowed with argument": ["--replay", path, "--compiler", "3.13.0"],
        "one of the arguments --compiler --replay is required": [],
        "'-1' is no number of 0 or more": ["--replay", path, "--alarms=-1"],
    }.items():
        with pytest.raises(SystemExit):
            replay(*arguments)
        del words


def test_levels_are_told_as_a_configuration_writes_them(replay: Replay, tmp_path: Path) -> None:
    write_series(tmp_path / "n", {f"3.{number}.0": value for number, value in enumerate(SIZES, 2)})
    _, out, _ = replay("--replay", "n", "--alarms", "1")
    (least,) = [line for line in out.splitlines() if "absolute" in line]
    assert least.startswith("  ") and least.endswith("fail: {absolute: 19070B} in place of 2 steps")
    _, out, _ = replay("--replay", "n", "--alarms", "2")
    assert out.endswith("Smallest levels that alarm in 2 steps at most\n  no rule alarms more often\n")


def rule(kind: str, level: int) -> Rule:
    amount = Amount(level, "own", str(level))
    spec = LevelSpec(absolute=amount) if kind == "change" else LevelSpec(limit=amount)
    return Rule("one", ("executables",), fail=spec)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=5), st.integers(0, 4), st.sampled_from(["change", "limit"]))
def test_the_smallest_level_alarms_as_often_as_is_wanted_and_no_smaller_one_does(
    values: list[int], most: int, kind: str
) -> None:
    of = sides(*values, metric="executables")

    def steps(level: int) -> int:
        found = list(replayed(variants(of), [rule(kind, level)], {}, NO_NOISE))
        told = counts(found)
        assert sum(one.steps for one in told) == sum(bool(step.alarms) for step in found)
        return sum(one.steps for one in told)

    found = least_levels(list(replayed(variants(of), [rule(kind, 0)], {}, NO_NOISE)), most)
    if not found:
        assert steps(0) <= most
        return
    (least,) = found
    assert least.now == steps(0) > most >= steps(least.least)
    assert least.least == 0 or steps(least.least - 1) > most
