"""A repository of kernels whose compiler is a package and a command: pushes, pull requests, forks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import Stage
from fake_github import FakeGitHub
from fake_wheels import record_row, write_wheel
from places import FIXTURES

CODE = (FIXTURES / "binaries" / "dense.rocm.hsaco").read_bytes()
SPILLS = b".vgpr_spill_count"
MAIN = """
import pathlib, sys
model, target, out = sys.argv[1:]
code = pathlib.Path(__file__).with_name("code.hsaco").read_bytes()
pathlib.Path(out, pathlib.Path(model).stem + ".hsaco").write_bytes(code)
"""
KERNEL = "# a kernel\n"


def released(folder: Path, version: str, code: bytes) -> None:
    """A wheel of the compiler, which makes the same code of every kernel."""
    info = f"kernel_compiler-{version}.dist-info"
    files = {
        "kernel_compiler/__main__.py": MAIN.encode(),
        "kernel_compiler/code.hsaco": code,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: kernel-compiler\nVersion: {version}\n".encode()
        ),
        f"{info}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: fake\nRoot-Is-Purelib: true\nTag:"
            b" py3-none-any\n"
        ),
    }
    record = "".join(record_row(path, data) for path, data in files.items())
    files[f"{info}/RECORD"] = record.encode()
    write_wheel(folder / f"kernel_compiler-{version}-py3-none-any.whl", files)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    released(tmp_path / "wheels", "1.0", CODE)
    assert CODE.count(SPILLS + b"\0") == 2
    released(
        tmp_path / "wheels", "2.0", CODE.replace(SPILLS + b"\0", SPILLS + b"\7", 1)
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    with FakeGitHub("octo/repo") as hub:
        yield Stage.create(tmp_path, hub)


def pinned(
    stage: Stage, version: str, where: str = "code-size.yml"
) -> dict[str, str | None]:
    """The file that names the compiler's release, and the configuration."""
    run = ["python", "-m", "kernel_compiler", "{model}", "{target}", "{out}"]
    command = {
        "kind": "command",
        "package": "kernel-compiler",
        "run": run,
        "artifacts": ["*.hsaco"],
    }
    pin = {"head": version} if where == "code-size.yml" else {"requirements": where}
    configuration = stage.config(
        compiler={**command, **pin}, models=["kernels/*.py"], targets={"gfx942": {}}
    )
    files: dict[str, str | None] = {where: f"kernel-compiler=={version}\n"}
    return files | {"code-size.yml": configuration}


@pytest.mark.parametrize(
    ("where", "fork"),
    [
        pytest.param("code-size.yml", False, id="own-code-size.yml"),
        pytest.param("requirements.txt", True, id="fork-requirements.txt"),
        # each place of the pin and each kind of pull request is above, too
        pytest.param(
            "requirements.txt",
            False,
            id="own-requirements.txt",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "code-size.yml", True, id="fork-code-size.yml", marks=pytest.mark.slow
        ),
    ],
)
def test_a_pull_request_that_raises_the_pin_reports_the_spills_first(
    stage: Stage, fork: bool, where: str
) -> None:
    main = stage.origin.push_main(
        "Kernels", {**pinned(stage, "1.0", where), "kernels/attn.py": KERNEL}
    )
    pushed = stage.push(main)
    assert pushed.code == 0 and len(list(stage.store.entries())) == 1, pushed.error
    files = {where: pinned(stage, "2.0", where)[where]}
    if fork:
        measured, ran = stage.fork_pull(files, "", [main])
        assert (
            ran.report.untrusted and "stored snapshot" in measured.report.baseline.rule
        )
    else:
        ran = stage.pull(*stage.open_pull(files))
    assert ran.code == 0 and ran.report.verdict.status == "fail", ran.error
    assert "stored snapshot" in ran.report.baseline.rule
    (body,) = stage.comments()
    assert (
        "compiler kernel-compiler 1.0.0 → kernel-compiler 2.0.0" in body
        and "IREE" not in body
    )
    first = ran.report.verdict.news[0]
    assert (first.metric, first.level, first.base, first.head) == (
        "vgpr_spills",
        "fail",
        0,
        7,
    )
    assert "VGPR spills" in body and stage.conclusions == ["failure"]


def test_a_kernel_that_changed_is_the_cause(stage: Stage) -> None:
    files = {"kernels/attn.py": KERNEL, "kernels/other.py": KERNEL}
    stage.push(stage.origin.push_main("Kernels", pinned(stage, "1.0") | files))
    ran = stage.pull(*stage.open_pull({"kernels/attn.py": "# another kernel\n"}))
    assert ran.code == 0 and ran.states == {
        "attn on gfx942": "same",
        "other on gfx942": "same",
    }, ran.error
