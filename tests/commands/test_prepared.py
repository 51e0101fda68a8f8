"""Tests that run the program in a fork get what a start of Python would give them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import prepared_program
import pytest
import real_compilers
from places import ROOT

from bot.system.guard import GUARD

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


def test_a_fork_that_cannot_start_is_no_failed_check(tmp_path: Path) -> None:
    """A test that accepts the exit code 1 of the program does not accept this."""
    with pytest.raises(AssertionError, match="No such file or directory"):
        prepared_program.bot("--version", cwd=tmp_path / "missing", codes=(0, 1, 2))


def test_the_program_ends_with_the_process_that_forks_it(tmp_path: Path) -> None:
    """A program that runs for too long does not outlive its test."""
    output = tmp_path / "output"
    errors = tmp_path / "errors"
    for pipe in (output, errors):
        os.mkfifo(pipe)
    request = {
        "arguments": ["--version"],
        "cwd": str(tmp_path),
        "environment": {**os.environ, "PYTHONPATH": str(ROOT)},
        "output": [str(output), str(errors)],
    }
    server = prepared_program.Server()
    with ThreadPoolExecutor(max_workers=1) as pool:
        answer = pool.submit(server.exit_code_of, request)
        # The fork has opened its output. It now waits for a reader of its errors.
        with output.open("rb") as reader:
            server.end()
            assert reader.read() == b"", "the end of the fork closes its output"
        assert isinstance(answer.exception(), AssertionError)


def test_the_guard_spares_the_process_that_forks_the_program(tmp_path: Path) -> None:
    """A test that itself runs a compiler with the bot's functions ends all strays."""
    prepared_program.bot("--version", cwd=tmp_path)
    GUARD.clear()
    prepared_program.bot("--version", cwd=tmp_path)
