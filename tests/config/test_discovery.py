"""bot.config.starter: which files are models, which one pins the compiler, and why others are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from github_runner import git

from bot.config.starter import MOST_BYTES, MOST_MODELS, Offer, discover
from bot.system.git import Git
from bot.system.processes import Cancel

MODEL = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n"
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


# Models.


def test_what_is_tracked_or_would_be_is_found_and_what_is_ignored_is_not(top: Path) -> None:
    put(top, "models/tracked.mlir")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "-m", "first")
    put(top, "models/deep/new.mlirbc", b"ML\xefR and more")
    put(top, "models/ignored.mlir")
    put(top, ".gitignore", "ignored.mlir\n")
    put(top, "gone.mlir")
    git(top, "add", "gone.mlir")
    (top / "gone.mlir").unlink()
    assert found(top) == Offer(("models/deep/new.mlirbc", "models/tracked.mlir"), {}, "", "", ())


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("m.mlir", "", "empty"),
        ("m.mlir", " \n", "empty"),
        ("m.mlir", "module {}\n", "defines no function"),
        ("m.mlir", f"// RUN: iree-opt %s\n{MODEL}", "a test of a compiler: it has RUN lines"),
        ("m.mlir", f"// A note.\n  //RUN: iree-opt %s\n{MODEL}", "a test of a compiler: it has RUN lines"),
        ("m.mlir", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a pointer of Git LFS"),
        ("m.mlirbc", MODEL, "not MLIR bytecode"),
        ("m.onnx", b"\x08\x08", "ONNX, which the action's image does not import"),
        ("m\x01.mlir", MODEL, "its name has characters that do not print"),
        ("tests/m.mlir", MODEL, "in a folder of tests"),
        ("lib/Test/m.mlir", MODEL, "in a folder of tests"),
        ("test_data/m.mlir", MODEL, "in a folder of tests"),
        *(
            (f"{folder}/m.mlir", MODEL, "in a folder of builds, of others' code, or hidden")
            for folder in (".hidden", "build", "build-release", "out", "third_party", "a/external/b", "node_modules")
        ),
    ],
)
def test_what_is_no_model_is_left_out_with_the_reason(top: Path, name: str, content: str | bytes, why: str) -> None:
    put(top, name, content)
    told = found(top)
    assert told.models == ()
    assert list(told.left_out) == [name] and told.left_out[name].startswith(why)


def test_folders_that_only_sound_like_others_are_looked_through(top: Path) -> None:
    names = ("contest", "latest", "builder", "outputs", "literature", "vendors-own", "models.v2")
    models = sorted(f"{folder}/m{at}.mlir" for at, folder in enumerate(names))
    for model in models:
        put(top, model)
    assert found(top).models == tuple(models)


def test_a_large_file_is_left_out_before_it_is_read_and_a_link_that_leaves_the_repository(
    top: Path, tmp_path: Path
) -> None:
    put(tmp_path, "outside.mlir")
    put(top, "weights.mlir")
    os.truncate(top / "weights.mlir", MOST_BYTES + 1)
    put(top, "fits.mlir", MODEL + " " * (1 << 20))
    (top / "away.mlir").symlink_to(tmp_path / "outside.mlir")
    told = found(top)
    assert told.models == ("fits.mlir",)
    assert told.left_out["weights.mlir"].startswith("larger than 32 MiB: keep weights out of the file")
    assert told.left_out["away.mlir"] == "a link that leaves the repository"


def test_of_two_files_of_one_name_the_outer_one_is_taken(top: Path) -> None:
    for name in ("a/deep/net.mlir", "b/net.mlir", "b/net.mlirbc"):
        put(top, name, b"ML\xefR func")
    told = found(top)
    assert told.models == ("b/net.mlir",)
    assert told.left_out == dict.fromkeys(
        ("a/deep/net.mlir", "b/net.mlirbc"), "it has the same name as b/net.mlir, and reports name models by it"
    )


def test_of_many_models_the_smallest_are_taken(top: Path) -> None:
    for number in range(MOST_MODELS + 3):
        put(top, f"m{number:02}.mlir", MODEL + "\n" * (100 - number))
    told = found(top)
    assert told.models == tuple(f"m{number:02}.mlir" for number in range(3, MOST_MODELS + 3))
    assert list(told.left_out) == ["m02.mlir", "m01.mlir", "m00.mlir"]
    assert told.left_out["m00.mlir"] == "beyond the 20 smallest models: each adds to the time of a pull request's run"


def test_outside_of_git_all_files_are_looked_through(tmp_path: Path) -> None:
    for name in ("models/a.mlir", "build/b.mlir", ".cache/c.mlir", "tests/d.mlir"):
        put(tmp_path, name)
    put(tmp_path, "requirements.txt", f"{PIN}\n")
    told = discover(tmp_path, None)
    assert told.models == ("models/a.mlir",)
    assert told.left_out == {"tests/d.mlir": "in a folder of tests"}
    assert (told.pin, told.compiler) == ("requirements.txt", PIN)


# The pin.


@pytest.mark.parametrize(
    "name",
    [
        *("requirements.txt", "requirements-dev.txt", "dev_requirements.txt", "requirements/compiler.txt"),
        *("constraints-iree.txt", "requirements.in", "pyproject.toml"),
    ],
)
def test_a_pin_is_found_and_no_other_file_pins_anything(top: Path, name: str) -> None:
    for other in ("notes.txt", "requirements.md", ".venv/requirements.txt", "third_party/requirements.txt"):
        put(top, other, f"{PIN}\n")
    put(top, "my-pyproject.toml", f'"{PIN}"\n')
    assert (found(top).pin, found(top).compiler, found(top).unpinned) == ("", "", ())
    put(top, name, f'dependencies = ["{PIN}"]\n' if name.endswith("toml") else f"numpy\n{PIN}\n")
    assert (found(top).pin, found(top).compiler) == (name, PIN)


def test_the_outer_and_better_file_is_taken(top: Path) -> None:
    put(top, "pyproject.toml", f'dependencies = ["{PIN}"]\n')
    put(top, "python/requirements.txt", "iree-base-compiler==3.11.0\n")
    assert found(top).pin == "pyproject.toml"
    put(top, "constraints.txt", "iree-base-compiler==3.12.0\n")
    assert found(top).pin == "constraints.txt"
    put(top, "requirements.txt", "numpy\n")
    assert found(top).pin == "constraints.txt"
    put(top, "requirements.txt", "iree-base-compiler==3.10.0\n")
    assert (found(top).pin, found(top).compiler) == ("requirements.txt", "iree-base-compiler==3.10.0")


def test_a_file_that_names_the_compiler_without_one_release_is_told(top: Path) -> None:
    put(top, "requirements.txt", "numpy\niree-base-compiler>=3.11\n")
    put(top, "constraints.txt", b"\xff\xfe")
    told = found(top)
    assert (told.pin, told.compiler) == ("", "")
    line = "requirements.txt:2: iree-base-compiler is not pinned to one release: 'iree-base-compiler>=3.11'"
    assert told.unpinned == (f"{line} (write iree-base-compiler==X.Y.Z)",)
    put(top, "pyproject.toml", f'dependencies = ["{PIN}"]\n')
    assert (found(top).pin, len(found(top).unpinned)) == ("pyproject.toml", 1)
