"""`--help` of the program and of each command: it fits the terminal, and its examples work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from places import FIXTURES, ROOT

from bot.cli.main import COMMANDS, build_parser, main
from bot.config.configuration import configs_dir, load_config

PAGES = ("", *COMMANDS)
ON_GITHUB = {"review", "post", "baseline", "action"}
PROGRAM = f"""\
#!{sys.executable}
import sys
from bot.cli.main import main
sys.exit(main())
"""
OPTION = re.compile(r"  (-\S.*?)(?:  +(\S.*))?")
PACKAGED = "--config quick"
ON_PACKAGED_MODELS = {"models", "plan", "targets"}
"""Commands whose examples run on the packaged suite; those of others run on small models of the same names."""
SMALL_SUITE = """\
schema: code-size-config/1
models: [models/*.mlir]
targets: [llvm-cpu-x86_64, vmvx]
"""
SMALL_MODELS = FIXTURES / "e2e" / "models"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODE_SIZE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return tmp_path


def help_of(
    command: str,
    columns: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit, match="0"):
        main([*filter(None, [command]), "--help"])
    return capsys.readouterr().out


def options_of(text: str) -> Iterator[str]:
    """Yield the lines below `options:`."""
    lines = iter(text.splitlines())
    for line in lines:
        if line == "options:":
            break
    for line in lines:
        if not line:
            return
        yield line


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 132])
@pytest.mark.parametrize("command", PAGES)
@pytest.mark.usefixtures("home")
def test_no_line_is_wider_than_the_terminal(
    command: str,
    columns: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = help_of(command, columns, capsys, monkeypatch)
    assert [line for line in text.splitlines() if len(line) > columns] == []


@pytest.mark.parametrize("command", PAGES)
@pytest.mark.usefixtures("home")
def test_each_option_is_one_line_of_plain_words(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = list(options_of(help_of(command, 80, capsys, monkeypatch)))
    assert len(lines) >= 2
    for line in lines:
        match = OPTION.fullmatch(line)
        assert match, f"{line!r} is not one line"
        about = match[2] or ""
        assert about and ";" not in about and len(about.split()) <= 25, line
        assert "default" not in re.sub(r"\(.*default: .*\)$", "", about), line


@pytest.mark.parametrize("command", PAGES)
@pytest.mark.usefixtures("home")
def test_sentences_have_25_words_at_most(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        help_of(command, 1000, capsys, monkeypatch)
        .partition("\n\n")[2]
        .partition("\noptions:")[0]
    )
    for line in text.splitlines():
        for sentence in re.split(r"(?<=[.:])\s+", line):
            assert len(sentence.split()) <= 25, sentence


def examples_of(command: str) -> list[str]:
    """Return the commands that a help text shows, each on one line."""
    if command:
        return list(COMMANDS[command][0].EXAMPLES)
    epilog = build_parser().epilog or ""
    block = epilog.partition("examples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


@pytest.mark.usefixtures("home")
def test_an_example_can_be_pasted_from_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in PAGES:
        if command in ON_GITHUB:
            continue
        text = help_of(command, 40, capsys, monkeypatch)
        examples = text.partition("examples:\n")[2].partition("\n\n")[0]
        joined = [
            " ".join(line.split())
            for line in examples.replace("\\\n", " ").splitlines()
        ]
        assert joined == examples_of(command)


def small_suite(folder: Path) -> Path:
    """Write a suite with the models' names of the packaged one, and return its configuration.

    The real encoder exceeds the stack limit, and so does the small model in its place.
    """
    (folder / "models").mkdir(parents=True)
    for path in load_config(configs_dir() / "quick.yml").models:
        if path.stem == "bert_l4_f32_s128":
            model = SMALL_MODELS / "embedding_norm.mlir"
        else:
            model = SMALL_MODELS / "tiny.mlir"
        shutil.copy(model, folder / "models" / path.name)
    suite = folder / "suite.yml"
    suite.write_text(SMALL_SUITE, encoding="utf-8")
    return suite


def selectors_of(line: str) -> str:
    """Return the options of a command that select models and targets."""
    words = []
    for option, value in pairwise(shlex.split(line)):
        if option in ("--model", "--target"):
            words += [option, value]
    return shlex.join(words)


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.network
@pytest.mark.parametrize("command", [name for name in PAGES if name not in ON_GITHUB])
def test_every_example_runs_in_an_empty_directory(
    command: str, shared_cache: Path, home: Path
) -> None:
    program = home / "bin/code-size-bot"
    program.parent.mkdir()
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    work = home / "work"
    work.mkdir()
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": path,
        "CODE_SIZE_CACHE": str(shared_cache),
    }
    suite = PACKAGED
    if command not in ON_PACKAGED_MODELS:
        suite = f"--config {small_suite(home / 'small')}"
    script = ""
    for line in examples_of(command):
        judges = re.match(r"code-size-bot (compare|report) ", line)
        small_line = line.replace(PACKAGED, suite)
        script += small_line + (" || [ $? = 1 ]" if judges else "") + " || exit 9\n"
        if selectors := selectors_of(line):  # the packaged suite has these builds
            script += f"code-size-bot models {PACKAGED} {selectors} || exit 9\n"
    argv = ["sh", "-c", script]
    done = subprocess.run(
        argv, cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (
        f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )
