"""Every command in a fenced block of the documents runs as it is written, with one small model for a suite."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documents import PAGES, blocks, code, name_of
from fake_compiler import TEMPLATES, install
from fake_wheels import entries, wheel_name, write_wheel
from places import ROOT
from real_compilers import binary

from bot.cli.main import COMMANDS
from bot.compiler.compiler_digest import NATIVE_BINARY

RUN_ELSEWHERE = {
    # These two write to the home directory.
    "python3 -m venv ~/code-size-venv": "tests/house/test_wheel.py",
    ". ~/code-size-venv/bin/activate": "tests/house/test_wheel.py",
    # This one needs a checkout.
    "python -m pip install .": "tests/house/test_wheel.py",
    # This one fetches two wheels of 1 GB.
    "code-size-bot compare 3.6.0 3.9.0 --config triton": "tests/whole/test_recipes.py",
    # These run this file, and cannot run inside of it.
    "make test": ".ci/run",
    "make test-all": ".ci/run",
    # This one looks at the sources, not at what the program does.
    "make check": ".ci/run",
}
"""Commands that no test can run → the file that runs them."""
TUTORIAL = "docs/tutorial.md"
"""tests/whole/test_tutorial.py runs this page: its commands need the files of earlier steps."""

RELEASES = ("3.11.0", "3.13.0")
MODEL = (  # the name that examples select; the model itself is a small one
    "mobilenet_v1_f32_224"
)
CONFIG = """\
schema: code-size-config/1
compiler: {base: iree-base-compiler==3.11.0, head: iree-base-compiler==3.13.0}
models: [models/*.mlir]
targets: [llvm-cpu-x86_64]
thresholds: [{metrics: [artifact_bytes], limit: 1MiB}, {metrics: ["*"], warn: 1%}]
"""
# The program as it is installed, but that what `init` writes has a directory of its
# own, and that timed processes end soon.
PROGRAM = f"""\
#!{sys.executable}
import os
import subprocess
import sys
import bot.running.runner
from bot.cli.main import main
bot.running.runner._SHORTEST_SECONDS = 0.02
words = ["code-size.yml" if word == "quick" else word for word in sys.argv[1:]]
if words[0] == "init":
    os.makedirs("new")
    os.chdir("new")
    subprocess.run(["git", "init", "--quiet"], check=True)
sys.exit(main(words))
"""
COMMANDS_OF = {
    name_of(page): [
        line
        for block in blocks(page)
        if block.language == "sh"
        for line in block.commands
    ]
    for page in PAGES
}
FENCED = [line for lines in COMMANDS_OF.values() for line in lines]


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def small_make(home: Path, repository: Path) -> str:
    """`make` for this repository, with the small suite, and an environment in which nothing has to be installed."""
    script(home / "venv/bin/code-size-bot", PROGRAM)
    (home / "venv/.installed").touch()
    variables = (
        f"VENV={home}/venv CONFIG={repository}/code-size.yml OUT={repository}/out"
    )
    return f'#!/bin/sh\nexec {shutil.which("make")} -C {ROOT} {variables} "$@"\n'


@pytest.fixture(scope="module")
def cache(shared_cache: Path) -> Path:
    for release in RELEASES:
        binary(release)
    return shared_cache


@pytest.fixture
def repository(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that has what the documents speak of: a model, a build of the compiler, a wheel of another."""
    place = tmp_path / "repository"
    (place / "models").mkdir(parents=True)
    shutil.copy(
        ROOT / "tests/fixtures/e2e/models/tiny.mlir", place / f"models/{MODEL}.mlir"
    )
    (place / "code-size.yml").write_text(CONFIG)
    write_wheel(
        place / "dist" / wheel_name(),
        entries(install(tmp_path / "fake", templates=TEMPLATES)),
    )
    (tmp_path / "iree-build").symlink_to(
        binary(RELEASES[-1]).parents[len(Path(NATIVE_BINARY).parts) - 1]
    )
    script(tmp_path / "bin/make", small_make(tmp_path, place))
    script(tmp_path / "bin/code-size-bot", PROGRAM)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CODE_SIZE_CACHE", str(cache))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place / "dist"))
    return place


def run(line: str, repository: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    judges = re.match(r"code-size-bot (compare|report) ", line)
    assert done.returncode in ((0, 1) if judges else (0,)), (
        f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    )


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize(
    "page", [page for page, lines in COMMANDS_OF.items() if lines and page != TUTORIAL]
)
def test_every_command_of_a_page_runs_in_its_order(page: str, repository: Path) -> None:
    for line in COMMANDS_OF[page]:
        if line not in RUN_ELSEWHERE:
            run(line, repository)


def test_what_no_test_can_run_is_run_by_the_file_that_is_named() -> None:
    for line, file in RUN_ELSEWHERE.items():
        assert line in FENCED, f"{line} is in no document"
        text = (ROOT / file).read_text(encoding="utf-8")
        parts = set(re.split(r"[\s\"',()\[\]]+", text))
        assert set(line.split()) <= parts, f"{file} does not run {line}"


def test_commands_within_sentences_are_there() -> None:
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for page in PAGES:
        for command in code(page):
            match = re.search(r"(?:^| )(make|code-size-bot) ([a-z-]+)", command)
            names = targets if match and match[1] == "make" else COMMANDS
            assert match is None or match[2] in names or match[2] == "--help", (
                f"{name_of(page)}: {command}"
            )
