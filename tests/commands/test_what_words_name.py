"""What a SPEC and a model's name stand for where the working directory holds something odd under that name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install, install_native
from fake_wheels import entries, wheel_name, write_wheel
from prepared_program import bot

CONFIG = "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx]\n"
POINTER = (
    "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n".format(
        "0" * 64
    )
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    fake = install(tmp_path / "fake", templates=TEMPLATES)
    write_wheel(tmp_path / "dist" / wheel_name(), entries(fake))
    install_native(tmp_path / "mine" / "iree-compile", fake)
    (tmp_path / "a.mlir").write_text("// model a\n")
    (tmp_path / "code-size.yml").write_text(CONFIG)
    return tmp_path


def run(home: Path, *argv: str, code: int = 0) -> str:
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home / "dist")}
    done = bot(*argv, "--cache", "cache", cwd=home, codes=(code,), env=env)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "3.13.0",
        pytest.param("iree-base-compiler==3.13.0", marks=pytest.mark.slow),
        pytest.param("latest", marks=pytest.mark.slow),
    ],
)
def test_a_folder_that_is_called_like_a_release_does_not_stand_for_it(
    home: Path, name: str
) -> None:
    shutil.copytree(home / "mine", home / name)
    run(home, "measure", "--compiler", name, "--out", "head.json")
    assert (
        "iree-base-compiler==3.13.0"
        in json.loads((home / "head.json").read_text())["compiler"]["spec"]
    )
    run(home, "measure", "--compiler", f"./{name}", "--out", "folder.json")
    assert json.loads((home / "folder.json").read_text())["compiler"]["spec"] == name
    shutil.copy(home / "head.json", home / name / "snapshot.json")
    run(home, "history", "--releases", name, "--out", "history")
    [point] = json.loads((home / "history" / "history.json").read_text())["points"]
    assert point["status"] == "ok" and "snapshot" not in str(point["compiler"])
    printed = run(home, "compare", "--base", name, "--head", name)
    assert f"{name}/snapshot.json" not in printed


def test_a_link_to_no_file_among_the_models_is_named(home: Path) -> None:
    (home / "b.mlir").symlink_to("gone.mlir")
    printed = run(home, "measure", "--compiler", "mine", "--out", "head.json", code=2)
    line = (
        "code-size.yml:2: models[0]: b.mlir is a link to gone.mlir, and that file does"
        " not exist"
    )
    assert printed.splitlines()[-1].endswith(
        f"{line} (restore the file, or remove the link)"
    ), printed


@pytest.mark.parametrize("kind", ["iree", "command"])
def test_a_git_lfs_pointer_is_one_failed_build_with_a_hint(
    home: Path, kind: str
) -> None:
    (home / "b.mlir").write_text(POINTER)
    compiler = "mine"
    if kind == "command":
        command = (
            "compiler: {kind: command, run: [cp, '{model}', '{out}/a.o'], artifacts:"
            " ['*.o'], base: x, head: x}\n"
        )
        config = CONFIG.replace("targets: [vmvx]", "targets: {here: {}}")
        (home / "code-size.yml").write_text(config + command)
        compiler = "x"
    run(home, "measure", "--compiler", compiler, "--out", "head.json")
    rows = {
        row["model"]: row
        for row in json.loads((home / "head.json").read_text())["cells"]
    }
    assert (rows["a"]["status"], rows["b"]["status"]) == ("ok", "failed")
    hint = "run `git lfs pull`, or give actions/checkout `lfs: true`"
    assert (
        rows["b"]["failure"]["message"]
        == f"the file is a Git LFS pointer, not the model: {hint}"
    )
