"""An experiment as a comment: within GitHub's limit, harmless, and with the sentences first."""

from __future__ import annotations

from pathlib import Path

import lab_factory as make
import pytest
from harmless import assert_harmless
from report_factory import HOSTILE

from bot.core.lab import Lab
from bot.show.comment import COMMENT_LIMIT
from bot.show.lab_comment import lab_comment
from bot.show.renderers import length

MARK = "<!-- code-size-bot:default -->"


@pytest.mark.parametrize("lab", [make.timed(), make.many()], ids=["timed", "many"])
def test_any_experiment_fits_and_is_harmless(lab: Lab) -> None:
    body = lab_comment(lab, MARK, HOSTILE, "")
    assert length(body) <= COMMENT_LIMIT
    assert body.startswith(f"{MARK}\n**Lab: ")
    assert_harmless(body)


def test_who_asked_stands_below_the_question_and_the_run_at_the_end() -> None:
    url = "https://github.com/octo/repo/actions/runs/1"
    body = lab_comment(make.timed(), MARK, ["alice asked"], url)
    parts = body.split("\n\n")
    assert parts[1] == "alice asked" and f"[workflow run](<{url}>)" in parts[-1]
    assert "× 1.25" in body


def test_an_experiment_that_does_not_fit_keeps_its_sentences_or_its_files() -> None:
    targets = [f"target-{number}" for number in range(200)]
    cells = [make.cell("m", target, name) for target in targets for name in "ab"]
    body = lab_comment(make.lab(*cells), MARK, [], "")
    assert "- On `target-0`, 1 model, against `a`: no change with `b`." in body
    assert "lab.html and lab.json have everything" in body
    assert length(body) <= COMMENT_LIMIT


def test_a_template_that_draws_too_much_gives_way_to_the_packaged_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "lab.md.j2").write_text("x" * COMMENT_LIMIT)
    body = lab_comment(make.timed(), MARK, [], "", tmp_path)
    assert "**Lab: sizes**" in body
