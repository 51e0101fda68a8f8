"""The commands of a comment and of a terminal run as they stand, in a new shell and an empty folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from places import ROOT
from real_compilers import bot, own_cache

MODEL = "jax_mlp_train_step_f32"
TARGET = "x86_64"

STRICT = """\
schema: code-size-config/1
thresholds:
  - {name: code size, metrics: [artifact_bytes], fail: 0}
  - {name: others, metrics: ["*"]}
"""


@pytest.mark.slow
@pytest.mark.compiler
def test_the_commands_of_a_comment_give_its_figures(tmp_path: Path) -> None:
    cache = own_cache(tmp_path / "cache", "3.13.0")
    flags = "--flags=--iree-opt-level=O3"
    selected = (
        "--model",
        MODEL,
        "--target",
        TARGET,
        "--cache",
        cache,
        "--out",
        tmp_path / "out",
    )
    (tmp_path / "code-size.yml").write_text(STRICT, encoding="utf-8")
    compared = bot(
        "compare",
        "--config",
        tmp_path / "code-size.yml",
        "--compiler",
        "3.13.0",
        flags,
        *selected,
    )
    comment = (tmp_path / "out/comment.md").read_text(encoding="utf-8")
    (cell,) = [
        cell
        for cell in json.loads((tmp_path / "out/report.json").read_bytes())["cells"]
        if cell["metrics"]
    ]
    sizes = cell["metrics"]["artifact_bytes"]
    assert sizes["base"] != sizes["head"], "a change that is reported has commands"
    block = re.search(r"<summary>Reproduce .*?```sh\n(.*?)```", comment, re.DOTALL)
    assert block, comment
    script = block[1].replace(f"-o {MODEL}.vmfb", "-o base.vmfb", 1)

    place = tmp_path / "here"
    place.mkdir()
    venv.create(tmp_path / "venv", with_pip=True)
    program = tmp_path / "venv/bin/code-size-bot"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom bot.cli.main import"
        " main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    argv = ["sh", "-e", "-c", script]
    done = subprocess.run(
        argv,
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    assert (place / "base.vmfb").stat().st_size == sizes["base"]
    assert (place / f"{MODEL}.vmfb").stat().st_size == sizes["head"]

    lines = compared.stdout.splitlines()
    printed = [
        line.removeprefix("reproduce: ")
        for line in lines
        if line.startswith("reproduce: ")
    ]
    assert len(printed) == 2
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    plain = {"PATH": os.environ["PATH"], "HOME": str(elsewhere)}
    subprocess.run(
        ["sh", "-e", "-c", "\n".join(printed)],
        cwd=elsewhere,
        env=plain,
        timeout=900,
        check=True,
    )
    assert (elsewhere / "base.vmfb").stat().st_size == sizes["base"]
    assert (elsewhere / "head.vmfb").stat().st_size == sizes["head"]
