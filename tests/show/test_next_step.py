"""What *Next* tells the reader to do: one step for each build that fails, with the figure that is enough."""

from __future__ import annotations

from itertools import permutations

import pytest
import report_factory as make
from replacing import replace

from bot.core.findings import Finding, Verdict
from bot.show.blocks import Sentence, plain
from bot.show.facts import build_facts
from bot.show.fit import drawable
from bot.show.next_step import next_block
from bot.show.views import COMMENT

OVER_FLASH = replace(make.GROWN, kind="limit", limit="80KiB", allowed=81_920)


def step(*findings: Finding) -> str:
    report = replace(make.usual(), verdict=Verdict("fail", findings))
    (sentence,) = drawable(next_block(build_facts(report), (), COMMENT).blocks)
    assert isinstance(sentence, Sentence)
    return plain(sentence.said).partition(", or ask")[0]


@pytest.mark.parametrize(
    "findings", list(permutations((make.GROWN, OVER_FLASH, make.OVER)))
)
def test_a_build_shrinks_until_it_fits_every_limit(
    findings: tuple[Finding, ...],
) -> None:
    assert step(*findings).startswith("Next: shrink bert on vmvx by 29,456 B")


def test_a_limit_may_ask_for_more_than_a_growth() -> None:
    small = replace(OVER_FLASH, limit="50KiB", allowed=51_200)
    for findings in ((make.GROWN, small), (small, make.GROWN)):
        assert step(*findings).startswith("Next: shrink bert on vmvx by 32,790 B")


def test_another_metric_has_its_own_words() -> None:
    assert step(make.OVER).startswith(
        "Next: reduce stack frame of bert on vmvx by 819 B"
    )
    unknown = replace(make.OVER, head=None)
    assert step(unknown).startswith("Next: see the finding for bert on vmvx")
