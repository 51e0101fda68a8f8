"""Three real releases: the step of a model that is known, told alike by `history` and `bisect`."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from history_factory import MOBILENET, stored
from places import ROOT
from real_compilers import binary, bot, offered

RELEASES = ("3.11.0", "3.12.0", "3.13.0")
CONFIG = (
    'schema: code-size-config/1\nmodels: ["*.mlir"]\ntargets: [llvm-cpu-x86_64,'
    " vmvx]\ncomponents: {}\n"
)
CELL = ("--model", MOBILENET.model, "--target", MOBILENET.target)

pytestmark = pytest.mark.compiler


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Path:
    """A model, the cache of the session, and a directory that offers the releases."""
    home = tmp_path_factory.mktemp("releases")
    model = ROOT / "configs/models" / f"{MOBILENET.model}.mlir"
    (home / model.name).write_bytes(model.read_bytes())
    (home / "code-size.yml").write_text(CONFIG)
    for release in RELEASES:
        binary(release)
    (home / "cache").symlink_to(shared_cache)
    offered(home / "links", *RELEASES)
    return home


def run(home: Path, file: str, *arguments: str) -> dict[str, Any]:
    """The file that a command writes."""
    links = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home / "links")}
    bot(*arguments, "--quiet", "--cache", "cache", cwd=home, env=links)
    answer: dict[str, Any] = json.loads((home / "out" / file).read_bytes())
    return answer


def test_a_history_has_the_known_step_with_its_cause_and_the_artifacts_of_its_commands(
    home: Path,
) -> None:
    history = run(
        home, "history.json", "history", "--releases", ",".join(RELEASES), *CELL
    )
    points = [
        point
        for point in history["points"]
        if (point["model"], point["target"]) == (MOBILENET.model, MOBILENET.target)
    ]
    assert [point["metrics"]["artifact_bytes"] for point in points] == [
        50_438,
        83_878,
        83_990,
    ]
    assert [point["metrics"]["executables"] for point in points] == [36, 36, 36]
    move = next(
        point["move"]
        for point in points
        if "artifact_bytes" in point.get("move", {"changes": {}})["changes"]
    )
    assert move["cause"] == "strategy" and move["since"] == "3.11.0"
    for point in points:
        (cell,) = (
            cell for cell in stored(point["compiler"]).cells if cell.key == MOBILENET
        )
        assert point["digest"] == cell.artifact_digest, (
            "the stored baselines are of the same artifacts"
        )
    line = points[-1]["command"].replace(
        "iree-compile", shlex.quote(str(binary(RELEASES[-1]))), 1
    )
    subprocess.run(
        ["sh", "-c", line],
        cwd=home.parent,
        check=True,
        capture_output=True,
        timeout=600,
    )
    assert (home.parent / f"{MOBILENET.model}.vmfb").stat().st_size == 83_990


def test_a_bisection_finds_it_in_one_look_for_each_candidate(home: Path) -> None:
    bisection = run(home, "bisect.json", "bisect", *CELL, RELEASES[0], RELEASES[-1])
    assert (bisection["last_good"], bisection["first_bad"], bisection["could_be"]) == (
        "3.11.0",
        "3.12.0",
        [],
    )
    assert [look["values"][0] for look in bisection["looks"]][::2] == [50_438, 83_990]
    assert bisection["cause"] == "strategy"
    assert (
        "--base iree-base-compiler==3.11.0 --head iree-base-compiler==3.12.0"
        in bisection["commands"][0]
    )
