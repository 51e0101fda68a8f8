"""`measure`: what failed is told at the end, and a side of which nothing compiled ends with 5."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_compiler import TEMPLATES, install, install_native, write_model

from bot.cli.main import main
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.snapshot_json import from_json

CONFIG = "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx, rocm]\n"
Measured = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Measured:
    """Exit code and standard error of one run over two models, by a compiler that refuses what `rules` say."""
    monkeypatch.chdir(tmp_path)
    for name in ("alpha", "beta"):
        write_model(tmp_path, name)
    (tmp_path / "c.yml").write_text(CONFIG, encoding="utf-8")

    def run(rules: list[dict[str, str]], *arguments: str) -> tuple[int, list[str]]:
        fake = install(tmp_path / "fake", rules, templates=TEMPLATES)
        compiler = install_native(tmp_path / "bin" / "iree-compile", fake)
        argv = [
            "--compiler",
            str(compiler),
            "--config",
            "c.yml",
            "--cache",
            "cache",
            "--out",
            "main.json",
        ]
        code = main(["measure", *argv, *arguments])
        out, err = capsys.readouterr()
        assert out == ("wrote main.json\n" if "--quiet" in arguments else "")
        return code, err.splitlines()

    return run


def test_failed_cells_are_reported_at_the_end(measured: Measured) -> None:
    code, err = measured(
        [{"do": "fail", "model": "beta", "kind": "direct", "argv": "rocm"}]
    )
    assert code == 0
    lines = err[err.index("wrote main.json") :]
    assert len(lines) == 2 and lines[1].startswith("failed: beta on rocm: ")


REFUSED = [{"do": "fail", "kind": "direct"}]


def test_where_nothing_compiled_the_snapshot_is_written_and_the_code_is_5(
    measured: Measured, tmp_path: Path
) -> None:
    code, err = measured(REFUSED)
    assert code == 5
    end = err[err.index("wrote main.json") :]
    assert [line.partition(": ")[2].partition(": ")[0] for line in end[1:-1]] == [
        f"{model} on {target}"
        for model in ("alpha", "beta")
        for target in ("rocm", "vmvx")
    ]
    reason = end[1].split(": ", 2)[2]
    assert (
        end[-1]
        == "code-size-bot: main.json: nothing compiled: none of 4 builds was measured"
        f" ({reason})"
    )
    assert (
        len(from_json((tmp_path / "main.json").read_text(encoding="utf-8")).cells) == 4
    )
    code, err = measured(REFUSED, "--quiet", "--model", "alpha", "--target", "vmvx")
    assert code == 5 and len(err) == 1
    assert err[0].startswith(
        "code-size-bot: main.json: nothing compiled: alpha on vmvx was not measured ("
    )
    code, err = measured(REFUSED, "--shard", "1/2")  # a part like any other
    assert code == 0 and sum(line.startswith("failed: ") for line in err) == 2


@pytest.mark.parametrize(
    ("do", "message", "signal"),
    [
        ("crash", "ended by SIGSEGV", "SIGSEGV"),
        ("say 1 LLVM ERROR: out of memory", "LLVM ERROR: out of memory", None),
    ],
)
def test_what_crashes_with_the_stack_limit_lifted_is_reported_as_that_crash(
    measured: Measured, tmp_path: Path, do: str, message: str, signal: str | None
) -> None:
    """Not as over the limit, nor as a machine without memory: and the printed command gives it."""
    alpha = {"kind": "direct", "model": "model alpha", "argv": "vmvx"}
    code, err = measured(
        [{**alpha, "do": do, "argv": LIFTED_LIMIT_FLAG}, {**alpha, "do": "refuse"}]
    )
    assert (
        code == 0
        and f"failed: alpha on vmvx: with the stack limit lifted: {message}" in err
    )
    [cell] = (
        cell
        for cell in from_json((tmp_path / "main.json").read_text("utf-8")).cells
        if not cell.measured
    )
    assert (cell.status, cell.failure and cell.failure.stage) == ("failed", "compile")
    assert (
        cell.failure
        and cell.failure.signal == signal
        and LIFTED_LIMIT_FLAG in cell.command
    )
