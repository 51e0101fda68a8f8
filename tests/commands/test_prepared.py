"""Tests that run the program in a fork get what a start of Python would give them."""

from __future__ import annotations

from pathlib import Path

import prepared_program
import pytest
import real_compilers

CONFIG = "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx]\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("targets",), 0),
        (("measure", "--out", "x.json"), 2),
        (("merge", "none.json", "--out", "x.json"), 2),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_fork_answers_as_a_start_of_python_does(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    """The folder, the environment, the words, both outputs and the exit code are the same."""
    (tmp_path / "code-size.yml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "a.mlir").write_text("module {}\n", encoding="utf-8")
    for columns in ("50", "200"):
        expected, forked = (
            run(*arguments, cwd=tmp_path, codes=(code,), env={"COLUMNS": columns})
            for run in (real_compilers.bot, prepared_program.bot)
        )
        assert forked.stdout == expected.stdout
        assert forked.stderr == expected.stderr
