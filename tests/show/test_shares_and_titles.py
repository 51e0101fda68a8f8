"""Titles of root causes, shares of a whole, and what a trial of a default undid: no false word in a corner."""

from __future__ import annotations

import pytest

from bot.core.defaults import DefaultTrial, TriedDefault
from bot.explain.clusters import NOT_BY_VALUES
from bot.explain.knobs import UNNAMED
from bot.show.blocks import plain
from bot.show.defaults import tried_words
from bot.show.filters import share
from bot.show.root_causes import cause_title


@pytest.mark.parametrize("text", [UNNAMED, NOT_BY_VALUES])
def test_a_configuration_without_a_named_knob_is_no_setting(text: str) -> None:
    assert plain(cause_title(text, "strategy")) == f"A{text[1:]}"


def test_parts_that_add_up_to_all_are_100_percent() -> None:
    assert share(0.7 + 0.2 + 0.1) == "100 %"
    assert share(0.996) == "99.6 %"


@pytest.mark.parametrize(
    ("moved_bytes", "restored_bytes", "words"),
    [
        (300, 300, "undoes 100 % of the change"),
        (-300, -240, "undoes 80 % of the change"),
        (30_000, 20, "undoes less than 1 % of the change"),
        (300, 0, "undoes none of the change"),
        (300, -1, "adds 1 B to the change"),
        (-300, 1, "adds 1 B to the change"),
    ],
)
def test_what_a_default_undoes_has_its_direction(
    moved_bytes: int, restored_bytes: int, words: str
) -> None:
    trial = DefaultTrial(
        "partly",
        moved_bytes=moved_bytes,
        restored_bytes=restored_bytes,
        model="m",
        target="vmvx",
        dispatch="d",
    )
    tried = TriedDefault(option="--x", base="true", head="false", tried=trial)
    assert f"base's value {words} of d of m on vmvx" in tried_words(tried)
