"""What a comparison proves of a flag without any compile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import report_factory as make
from msgspec.structs import replace

from bot.core.delta import diff
from bot.core.flag_changes import (
    NO_COMPILER,
    FlagTrial,
    TriedFlag,
    proved_alone,
    with_trials,
)
from bot.core.snapshot import UNLISTED, Cell, CellKey, Snapshot
from bot.show.blocks import plain
from bot.show.tried_flags import tried_flag_lines

TARGETS = {"llvm-cpu-x86_64": "llvm-cpu", "vmvx": "vmvx"}
Flags = Callable[[CellKey], str]


def side(flags: Flags | str = "", step: int = 0, inputs: str = "") -> Snapshot:
    """Return a side of one compiler, with these flags and larger artifacts."""

    def edited(key: CellKey, cell: Cell) -> Cell:
        words = flags if isinstance(flags, str) else flags(key)
        larger = make.grown(cell, artifact_bytes=step) if step else cell
        command = f"iree-compile - --common {words} -o m.vmfb < m.mlir"
        return replace(larger, command=command, inputs=inputs)

    snapshot = make.snapshot("3.13.0", edited, ("bert", "vit"), TARGETS)
    return replace(snapshot, compiler=replace(snapshot.compiler, digest="c" * 64))


def rows(base: Snapshot, head: Snapshot) -> list[tuple[str, str, FlagTrial]]:
    """Return removed flag, added flag and trial of each difference."""
    found = proved_alone(base, head, diff(base, head))
    return [(row.removed, row.added, row.tried) for row in found]


def test_a_flag_that_is_the_only_difference_is_proved() -> None:
    for base, head in (("", "--x"), ("--x", ""), ("--x=1 --y", "--x=2 --y")):
        ((_, _, trial),) = rows(side(base), side(head, 1_000))
        assert (trial.status, trial.only) == ("proved", True), (base, head)
        assert trial.moved_bytes == trial.restored_bytes == 1_000
        assert (trial.model, trial.target) == ("bert", "llvm-cpu-x86_64")


def test_a_flag_is_not_proved_if_anything_else_differs_or_is_not_known() -> None:
    base = side()
    head = side("--x", 1_000)
    other_models = {**head.models, "bert": "f" * 64}
    other_compiler = replace(head.compiler, digest="d" * 64)
    for other in (
        side("--x --y", 1_000),
        side("--x", 1_000, inputs="e" * 64),
        side("--x", 1_000, inputs=UNLISTED),
        side("--x -iree-opt-level=O3", 1_000),
        side("--x word", 1_000),
        replace(head, models=other_models),
        replace(head, compiler=other_compiler),
    ):
        trials = [trial for _, _, trial in rows(base, other)]
        for trial in trials:
            assert (trial.status, trial.only) == ("not-tried", False)
            assert (trial.why, trial.restored_bytes) == (NO_COMPILER, None)
    reordered = side("--b --x=2 --a", 1_000)
    (trial,) = (trial for _, _, trial in rows(side("--a --x=1 --b"), reordered))
    assert not trial.only, "the other flags are in another order"


def test_a_flag_without_an_effect_is_no_cause() -> None:
    ((_, _, trial),) = rows(side(), side("--x"))
    assert (trial.status, trial.only, trial.model) == ("not-tried", True, "")


def test_a_flag_of_one_backend_is_tried_on_a_build_of_that_backend() -> None:
    flags = "--iree-vmvx-x --other"
    trials = {added: trial for _, added, trial in rows(side(), side(flags, 1_000))}
    assert trials["--iree-vmvx-x"].target == "vmvx"
    assert trials["--other"].target == "llvm-cpu-x86_64"
    only_cuda = rows(side(), side("--iree-cuda-x --other", 1_000))
    reason = "no deterministic build that has the option changed its code size"
    assert [trial.why for _, _, trial in only_cuda] == [reason, NO_COMPILER]


def test_flags_in_another_order_are_no_flag_to_try() -> None:
    assert rows(side("--a --b"), side("--b --a", 1_000)) == []


def test_only_results_of_open_experiments_come_from_another_run() -> None:
    def handed(flag: str, **fields: Any) -> TriedFlag:
        known = {"moved_bytes": 10, "model": "bert", "target": "llvm-cpu-x86_64"}
        return TriedFlag("", flag, FlagTrial(**{**known, **fields}))

    base, head = side(), side("--x --y", 10)
    rows_here = proved_alone(base, head, diff(base, head))

    def merged(*rows: TriedFlag) -> list[tuple[str, str, int | None, bool]]:
        found = list[tuple[str, str, int | None, bool]]()
        for row in with_trials(rows_here, rows):
            tried = row.tried
            found.append((row.added, tried.status, tried.restored_bytes, tried.only))
        return found

    untried = [("--x", "not-tried", None, False), ("--y", "not-tried", None, False)]
    half = handed("--x", status="partly", restored_bytes=5)
    assert merged(half) == [("--x", "partly", 5, False), untried[1]]
    lies = (
        handed("--made-up", status="partly", restored_bytes=5),
        handed("--y", status="proved", restored_bytes=5, model="vit"),
        handed("--y", status="proved", restored_bytes=5, moved_bytes=5),
    )
    for lie in lies:
        assert merged(lie) == untried, lie
    false_status = handed("--x", status="proved", restored_bytes=0, only=True)
    assert merged(false_status) == [("--x", "refuted", 0, False), untried[1]]
    head = side("--x", 10)
    alone = proved_alone(base, head, diff(base, head))
    assert with_trials(alone, [half]) == alone


def test_trials_in_words() -> None:
    def line(removed: str, added: str, trial: FlagTrial) -> str:
        (words,) = tried_flag_lines([TriedFlag(removed, added, trial)])
        return plain(words)

    trial = partial(FlagTrial, model="bert", target="vmvx")
    grown = trial("partly", moved_bytes=1_000, restored_bytes=500)
    effect = "50 % of the growth disappears (+1,000 B of bert on vmvx)"
    assert line("", "--x", grown) == f"partly proved: without --x, {effect}"
    assert line("--x", "", grown) == f"partly proved: with --x, {effect}"
    assert line("--x=1", "--x=2", grown) == f"partly proved: with --x=1, {effect}"
    shrunk = trial("proved", moved_bytes=-100, restored_bytes=-95)
    assert line("", "--x", shrunk) == (
        "proved: without --x, 95 % of the shrinkage disappears (−100 B of bert on vmvx)"
    )
    worse = trial("refuted", moved_bytes=100, restored_bytes=-20)
    assert "without --x, the growth is 20 B larger" in line("", "--x", worse)
    untried = FlagTrial("not-tried", why=NO_COMPILER)
    assert line("", "--x", untried) == f"flag --x added · not tried: {NO_COMPILER}"
