"""A stored baseline beside a fresh side: all is told as of two fresh ones."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from matched_cells import KEY, Row, cells, made, whole
from places import FIXTURES
from replacing import replace
from strategies import plain_snapshot

from bot.compiler.cell_cache import TextStore
from bot.core.explanation import Explanation
from bot.core.snapshot import Cell
from bot.explain.explanations import explain
from bot.explain.texts import Texts, no_texts
from bot.store.entries import pack, unpack
from bot.study.cell import read_program


def stored(cell: Cell) -> Cell:
    """The cell as it comes back from a baseline."""
    side = plain_snapshot(
        cells=(cell,), models={KEY.model: "m"}, targets={KEY.target: "llvm-cpu"}
    )
    (stored_cell,) = unpack(pack(side), "x").cells
    return stored_cell


def told(base: Cell, head: Cell, texts: Texts = no_texts) -> Explanation:
    return explain(
        base,
        head=replace(head, artifact_digest="b" * 64),
        same_model=True,
        same_command=True,
        texts=texts,
    )


@given(cells(), cells())
def test_a_baseline_tells_what_a_fresh_side_does(base: Cell, head: Cell) -> None:
    assert told(stored(base), head) == told(base, head)
    assert told(base, stored(head)) == told(base, head)


def test_two_of_head_that_were_one_on_the_baseline_are_shown_by_heads_own_texts() -> (
    None
):
    folded = Row("p1", "p", places=("e.0", "e.1"), code="p1")
    unfolded = tuple(
        Row(f"p{i}", "p", places=(f"e.{i}",), code=f"p{i}") for i in range(1, 3)
    )
    texts = {whole(f"p{i}"): f"op p{i}\n" for i in range(3)}
    explanation = told(stored(made(folded)), made(*unfolded), texts.get)
    assert (explanation.cause, explanation.why) == (
        "dedup-lost",
        "the same regions are folded into 1 → 2 executables",
    )
    (added,) = [
        dispatch for dispatch in explanation.dispatches if dispatch.matched == "added"
    ]
    assert added.diff[3:] == ("-op p1", "+op p2")


def test_the_texts_that_measuring_keeps_are_found_by_what_a_baseline_has(
    tmp_path: Path,
) -> None:
    """From the IR worker's real answer, through files of the cache."""
    answer = (FIXTURES / "ir" / "named.answers.json").read_text(encoding="utf-8")
    store = TextStore(tmp_path)
    measured = read_program(json.dumps(json.loads(answer)["program"]), store).program
    assert measured is not None and measured.sources
    program = stored(replace(made(Row("s")), program=measured)).program
    assert program == measured
    assert all(store.load(row.source) for row in program.sources)
