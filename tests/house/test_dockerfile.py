"""The action's image: pinned, without a compiler, and its installation done step by step in an empty environment."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from places import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PREFIX = "/opt/bot"


def instructions() -> list[tuple[str, str]]:
    """(keyword, rest) of every instruction, comments and line continuations undone."""
    lines = [
        line
        for line in DOCKERFILE.splitlines()
        if line.strip() and not line.startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        (keyword, arguments.strip())
        for keyword, _, arguments in (
            line.partition(" ") for line in joined.splitlines()
        )
    ]


def of(keyword: str) -> list[str]:
    return [
        arguments for instruction, arguments in instructions() if instruction == keyword
    ]


def copied() -> list[str]:
    """What the builder takes from the build context."""
    return [
        source
        for arguments in of("COPY")
        if "--from" not in arguments
        for source in arguments.split()[:-1]
    ]


def locked() -> dict[str, tuple[Version, int]]:
    """Name → (version, number of hashes)."""
    blocks = re.split(r"\n(?=[a-z0-9])", LOCK)[1:]
    heads = [re.match(r"([\w.-]+)==(\S+) \\\n", block) for block in blocks]
    assert all(heads), "the lock has only pinned packages"
    return {
        canonicalize_name(head[1]): (
            Version(head[2]),
            len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block)),
        )
        for head, block in zip(heads, blocks, strict=True)
        if head
    }


def test_it_is_one_slim_image_of_a_python_of_the_project_without_a_compiler() -> None:
    images = {arguments.removesuffix(" AS build") for arguments in of("FROM")}
    assert len(images) == 1
    image = re.fullmatch(
        r"python:(3\.\d+)\.\d+-slim-\w+@sha256:[0-9a-f]{64}", images.pop()
    )
    assert image and f"by pip-compile with Python {image[1]}\n" in LOCK
    (command,) = [arguments for arguments in of("RUN") if "apt-get" in arguments]
    install = next(part for part in command.split("&&") if "apt-get install" in part)
    packages = [word for word in install.split()[2:] if not word.startswith("-")]
    assert packages == ["ca-certificates", "git", "libstdc++6", "python3.11"]
    assert "--no-install-recommends" in install and command.endswith(
        "rm -rf /var/lib/apt/lists/*"
    )
    runtime = [name for name in locked() if name.startswith("iree")]
    assert runtime == ["iree-base-runtime"]
    assert not re.search(r"\biree-\w+", "".join(of("RUN") + of("COPY")))
    assert of("USER") == [] and of("ENTRYPOINT") == ['["code-size-bot"]']
    assert PROJECT["project"]["scripts"] == {"code-size-bot": "bot.start:run"}
    assert not [
        name
        for name in ("CODE_SIZE_", "GITHUB_", "INPUT_")
        if name in "".join(of("ENV"))
    ]


def test_the_build_context_is_what_is_copied_and_that_is_what_the_package_needs() -> (
    None
):
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert [
        rule.removeprefix("!") for rule in rules if rule.startswith("!")
    ] == copied()
    assert all((ROOT / source).exists() for source in copied())
    homes = {
        source.split("/")[0]
        for source in PROJECT["tool"]["setuptools"]["package-dir"].values()
    }
    files = {
        "pyproject.toml",
        PROJECT["project"]["readme"],
        *PROJECT["project"]["license-files"],
        "requirements.txt",
    }
    assert homes | files == set(copied())


def test_every_dependency_is_locked_with_hashes_at_an_admitted_version_and_the_lock_names_no_host() -> (
    None
):
    for requirement in map(
        Requirement,
        [
            *PROJECT["project"]["dependencies"],
            *PROJECT["project"]["optional-dependencies"]["run"],
            *PROJECT["build-system"]["requires"],
        ],
    ):
        if requirement.marker is not None and not requirement.marker.evaluate(
            {"python_version": "3.13"}
        ):
            continue
        assert (
            locked()[canonicalize_name(requirement.name)][0] in requirement.specifier
        ), f"{requirement}: run make lock"
    assert [name for name, (_, hashes) in locked().items() if hashes == 0] == []
    assert "://" not in LOCK and not re.search(r"^\s*--(?!hash=)", LOCK, re.MULTILINE)


def run(command: str, cwd: Path) -> str:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "VIRTUAL_ENV"}
    }
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def context(directory: Path) -> Path:
    """The build directory of the first stage, with what .dockerignore lets through."""
    excluded = [
        ROOT / line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("configs/")
    ]
    for source in copied():
        if (ROOT / source).is_dir():
            skip = {path.name for path in excluded if path.parent == ROOT / source}
            ignore = shutil.ignore_patterns("__pycache__", *skip)
            shutil.copytree(ROOT / source, directory / source, ignore=ignore)
        else:
            shutil.copy(ROOT / source, directory / source)
    return directory


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.skipif(
    sys.version_info < (3, 11),
    reason="the image's Python is newer, and so are its locked packages",
)
def test_the_steps_of_the_build_make_a_working_bot(tmp_path: Path) -> None:
    build = tmp_path / "build"
    home = tmp_path / "bot"
    empty = tmp_path / "empty"
    build.mkdir()
    empty.mkdir()
    context(build)
    for step in [arguments for arguments in of("RUN") if PREFIX in arguments]:
        command = step.replace(
            "python -m venv", f"{shlex.quote(sys.executable)} -m venv"
        )
        run(command.replace(PREFIX, shlex.quote(str(home))), build)
    shutil.rmtree(build)
    program = shlex.quote(str(home / "bin" / "code-size-bot"))
    assert run(f"{program} --version", empty).startswith("code-size-bot ")
    printed = run(
        f"{program} doctor --cache {shlex.quote(str(empty / 'cache'))}", empty
    )
    assert re.search(r"^ok +pip ", printed, re.MULTILINE), printed
    assert re.search(r"^ok +default suite +\d+ models", printed, re.MULTILINE), printed
    run(f"{shlex.quote(str(home / 'bin' / 'python'))} -m pip check", empty)
    names = run(f"{shlex.quote(str(home / 'bin' / 'python'))} -c '{_TEMPLATES}'", empty)
    assert "comment.md.j2" in names.split()


_TEMPLATES = (
    "from importlib.resources import files; print(*(entry.name for entry in"
    ' files("bot._data.templates").iterdir()), sep="\\n")'
)
