"""The wheel: it holds what the program needs and nothing else, and works where there is no checkout."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from documents import blocks
from packaging.version import Version
from places import ROOT
from test_end_to_end import BASE, CONTRACT_FILES, HEAD, own_cache

from bot import __version__
from bot.cli.init import WORKFLOWS

SOURCES = (
    "bot",
    "configs",
    "templates",
    "tests",
    "tools",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
"""Of the checkout; tests and tools are there to be left out."""
MODEL = "jax_mlp_train_step_f32"
TARGET = "vmvx"
NAME = f"code_size_bot-{__version__}"

pytestmark = [pytest.mark.slow, pytest.mark.network]


def run(*argv: str | Path, cwd: Path, codes: tuple[int, ...] = (0,)) -> str:
    """What a program prints where the checkout is neither its directory nor on Python's path."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "VIRTUAL_ENV"}
    }
    done = subprocess.run(
        [*map(str, argv)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in codes, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def isolation() -> list[str]:
    """Where setuptools is here and new enough, building needs no network; else pip fetches it."""
    try:
        return (
            ["--no-build-isolation"]
            if Version(version("setuptools")) >= Version("77")
            else []
        )
    except PackageNotFoundError:
        return []


def copy_sources(folder: Path) -> None:
    """Copy what a build needs of the checkout."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ROOT / name, folder / name)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools writes into the directory that it builds from."""
    source = tmp_path_factory.mktemp("source")
    folder = tmp_path_factory.mktemp("wheel")
    copy_sources(source)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", *isolation())
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        *options,
        "--wheel-dir",
        folder,
        source,
        cwd=folder,
    )
    (path,) = folder.iterdir()
    return path


def needed() -> Iterator[str]:
    """What has to be in it: all modules and templates.

    Of configs all that is not for making models.
    """
    yield from (
        path.relative_to(ROOT).as_posix() for path in (ROOT / "bot").rglob("*.py")
    )
    for folder in ("configs", "templates"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "export" not in path.parts:
                yield f"bot/_data/{path.relative_to(ROOT).as_posix()}"


def test_it_holds_what_the_program_needs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    program_files = {
        name for name in names if not name.startswith(f"{NAME}.dist-info/")
    }
    assert sorted(program_files) == sorted(needed())
    assert f"{NAME}.dist-info/licenses/LICENSE" in names
    assert wheel.name == f"{NAME}-py3-none-any.whl"


@pytest.mark.compiler
def test_it_compares_with_packaged_models_and_templates_where_there_is_no_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=elsewhere)
    python, program = (
        tmp_path / "venv" / "bin" / name for name in ("python", "code-size-bot")
    )
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        wheel,
        cwd=elsewhere,
    )
    assert str(tmp_path / "venv") in run(
        python, "-c", "import bot; print(bot.__file__)", cwd=elsewhere
    )

    cells = (
        "--model",
        MODEL,
        "--target",
        TARGET,
        "--cache",
        own_cache(tmp_path / "cache"),
    )
    printed = run(
        program,
        "compare",
        "--base",
        BASE,
        "--head",
        HEAD,
        *cells,
        cwd=elsewhere,
        codes=(0, 1),
    )
    assert {path.name for path in (elsewhere / "out").iterdir()} == CONTRACT_FILES
    assert f"compiler IREE {BASE}" in printed
    assert set(
        json.loads((elsewhere / "out" / "head.json").read_text(encoding="utf-8"))[
            "models"
        ]
    ) == {MODEL}
    comment = (elsewhere / "out" / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("<!--") and HEAD in comment

    run("git", "init", "--quiet", cwd=elsewhere)
    run(program, "init", cwd=elsewhere)
    assert sorted(
        path.name for path in (elsewhere / ".github" / "workflows").iterdir()
    ) == sorted(WORKFLOWS)


def test_the_install_lines_of_the_readme_give_a_program_that_runs(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    copy_sources(source)
    install = """
        python3 -m venv ~/code-size-venv
        . ~/code-size-venv/bin/activate
        python -m pip install .
    """
    lines = [line.strip() for line in install.strip().splitlines()]
    readme = [line for block in blocks(ROOT / "README.md") for line in block.commands]
    assert readme[: len(lines)] == lines
    home = shlex.quote(str(tmp_path))
    commands = "\n".join(lines)
    printed = run(
        "sh",
        "-e",
        "-c",
        f"export HOME={home}\n{commands}\ncode-size-bot --version",
        cwd=source,
    )
    assert printed.split()[-1] == __version__
    assert (tmp_path / "code-size-venv" / "bin" / "code-size-bot").is_file()
