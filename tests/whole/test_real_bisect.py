"""`bisect` over real releases: the step of a model that every release since has kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_wheels import wheel_name
from places import ROOT

from bot.compiler.toolchain import resolve
from bot.system.defaults import default_cache
from bot.system.processes import Cancel

RELEASES = ("3.11.0", "3.12.0", "3.13.0")


@pytest.mark.compiler
def test_a_known_step_between_two_releases_is_found_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    for release in RELEASES:
        resolve(release, default_cache(), Cancel(), print)
        (tmp_path / "links" / wheel_name(release)).touch()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "toolchains").symlink_to(default_cache() / "toolchains")
    offered = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "links")}
    argv = [sys.executable, "-m", "bot", "bisect", "--quiet", "--cache", "cache", "--config", "default"]
    argv += ["--format", "json", "--model", "mobilenet_v1_f32_224", "--target", "x86_64", RELEASES[0], RELEASES[-1]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **offered}
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["last_good"], found["first_bad"], found["could_be"]) == ("3.11.0", "3.12.0", [])
    assert [look["values"][0] for look in found["looks"]][::2] == [50_438, 83_990], "one look for each candidate"
    assert found["cause"] == "strategy" and sum(root["bytes"] for root in found["root_causes"]) > 20_000
    assert "--base iree-base-compiler==3.11.0 --head iree-base-compiler==3.12.0" in found["commands"][0]
