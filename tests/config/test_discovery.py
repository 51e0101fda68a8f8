"""bot.config.starter: which files are models, and which one pins the compiler."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from github_runner import git

from bot.config.starter import MOST_BYTES, MOST_MODELS, Offer, discover
from bot.system.cancel import Cancel
from bot.system.git import Git

MODEL = (
    "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x :"
    " tensor<4xf32> }\n"
)
PIN = "iree-base-compiler==3.13.0"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    path = tmp_path / "a project"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    return path


def put(top: Path, name: str, content: str | bytes = MODEL) -> None:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def found(top: Path) -> Offer:
    return discover(top, Git(top, Cancel()))


def test_what_is_tracked_or_would_be_is_found_and_what_is_ignored_is_not(
    top: Path,
) -> None:
    put(top, "models/tracked.mlir")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "-m", "first")
    put(top, "models/deep/new.mlirbc", b"ML\xefR and more")
    put(top, "models/ignored.mlir")
    put(top, ".gitignore", "ignored.mlir\n")
    put(top, "gone.mlir")
    git(top, "add", "gone.mlir")
    (top / "gone.mlir").unlink()
    assert found(top) == Offer(("models/deep/new.mlirbc", "models/tracked.mlir"), 0)


def test_what_could_not_be_measured_or_is_of_others_is_left_out_and_counted(
    top: Path, tmp_path: Path
) -> None:
    put(tmp_path, "outside.mlir")
    (top / "away.mlir").symlink_to(tmp_path / "outside.mlir")
    put(top, "weights.mlir")
    os.truncate(top / "weights.mlir", MOST_BYTES + 1)
    put(top, "empty.mlir", "")
    put(top, "m\x01.mlir")
    put(top, f"{'d' * 150}/{'x' * 150}.mlir")
    folders = (
        "tests",
        "lib/Test",
        "test_data",
        ".hidden",
        "build-release",
        "out",
        "third_party",
        "a/external/b",
    )
    for number, folder in enumerate(folders):
        put(top, f"{folder}/m{number}.mlir")
    put(top, "m.onnx")
    assert found(top) == Offer((), 5 + len(folders))


def test_folders_that_only_sound_like_others_are_looked_through(top: Path) -> None:
    names = (
        "contest",
        "latest",
        "builder",
        "outputs",
        "literature",
        "vendors-own",
        "models.v2",
    )
    models = sorted(f"{folder}/m{number}.mlir" for number, folder in enumerate(names))
    for model in models:
        put(top, model)
    assert found(top).models == tuple(models)


def test_of_two_files_of_one_name_the_outer_one_is_taken(top: Path) -> None:
    for name in ("a/deep/net.mlir", "b/net.mlir", "b/net.mlirbc"):
        put(top, name)
    assert found(top) == Offer(("b/net.mlir",), 2)


def test_of_many_models_the_smallest_are_taken(top: Path) -> None:
    for number in range(MOST_MODELS + 3):
        put(top, f"m{number:02}.mlir", MODEL + "\n" * (100 - number))
    assert found(top) == Offer(
        tuple(f"m{number:02}.mlir" for number in range(3, MOST_MODELS + 3)), 3
    )


@pytest.mark.parametrize(
    "name",
    [
        *(
            "requirements.txt",
            "requirements-dev.txt",
            "dev_requirements.txt",
            "requirements/compiler.txt",
        ),
        *("constraints-iree.txt", "ml/requirements.txt", "pyproject.toml"),
    ],
)
def test_a_pin_is_found_and_no_other_file_pins_anything(top: Path, name: str) -> None:
    for file_name in (
        "notes.txt",
        "requirements.md",
        ".venv/requirements.txt",
        "third_party/requirements.txt",
    ):
        put(top, file_name, f"{PIN}\n")
    put(top, "my-pyproject.toml", f'"{PIN}"\n')
    assert (found(top).pin, found(top).compiler) == ("", "")
    put(
        top,
        name,
        f'dependencies = ["{PIN}"]\n' if name.endswith("toml") else f"numpy\n{PIN}\n",
    )
    assert (found(top).pin, found(top).compiler) == (name, PIN)


def test_the_outermost_file_that_pins_one_release_is_taken(top: Path) -> None:
    put(top, "python/requirements.txt", "iree-base-compiler==3.11.0\n")
    put(top, "requirements.txt", "iree-base-compiler>=3.11\n")
    put(top, "constraints.txt", b"\xff\xfe")
    assert found(top).pin == "python/requirements.txt"
    put(top, "pyproject.toml", f'dependencies = ["{PIN}"]\n')
    assert (found(top).pin, found(top).compiler) == ("pyproject.toml", PIN)


def test_a_pin_outside_of_the_repository_is_not_read(top: Path, tmp_path: Path) -> None:
    put(tmp_path, "outside.txt", f"{PIN}\n")
    (top / "requirements.txt").symlink_to(tmp_path / "outside.txt")
    put(top, "constraints.txt", "-r ../outside.txt\n")
    assert found(top).pin == ""
