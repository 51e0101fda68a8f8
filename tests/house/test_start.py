"""Help, version and mistakes import next to nothing; a command gets all that it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import everyday
import pytest
from json_texts import to_json
from places import ROOT

from bot.cli.main import COMMANDS
from bot.core.planned import SIDES

LIGHT = ("bot.cli.", "bot.system.defaults", "bot.core.near")
"""What reads the words of a command line, where things are by default, and which name was meant."""
# Only who gives a size or a part waits for what reads it
SIZES = {
    "bot.config",
    "bot.config.units",
}
SLOW = {
    "asyncio",
    "dataclasses",
    "http",
    "inspect",
    "json",
    "logging",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
}
"""Of the standard library: what alone costs about as much as argparse."""
SCRIPT = """
import atexit, sys
before = set(sys.modules)
def tell():
    new = sorted(set(sys.modules) - before)
    import json
    print(json.dumps(new), file=open(sys.argv[1], "w"))
atexit.register(tell)
from bot.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def started(folder: Path, *arguments: str) -> tuple[int, set[str], str]:
    """Exit code, all modules that the program imported, and the last line that it wrote to standard error."""
    path = folder / "modules.json"
    argv = [sys.executable, "-c", SCRIPT, str(path), *arguments]
    run = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    return (
        run.returncode,
        set(json.loads(path.read_text(encoding="utf-8"))),
        (run.stderr.splitlines() or [""])[-1],
    )


def tops(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--version"], 0, ""),
        (["--help"], 0, ""),
        *(([command, "--help"], 0, "") for command in COMMANDS),
        ([], 0, ""),
        (["zzz"], 2, "zzz: unknown command (see "),
        (["measure", "--out", "x.json"], 2, "missing: --compiler"),
        (
            ["measure", "--compiler", "3.13.0", "--out", "x.json", "--shard", "5/4"],
            2,
            "'5/4' is not I/N",
        ),
        (["compare", "--unknown"], 2, "--unknown: unknown option"),
        (
            ["compare", "--cache-limit", "5"],
            2,
            "'5' is not a size with a unit, such as 5GiB",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_help_version_and_mistakes_import_next_to_nothing(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    ended, modules, line = started(tmp_path, *arguments)
    assert ended == code and message in line
    bot_modules = {name for name in modules if name.partition(".")[0] == "bot"}
    assert {
        name
        for name in bot_modules
        if name.count(".") > 1 and not name.startswith(LIGHT)
    } <= SIZES
    assert not bot_modules & SIZES or {"--cache-limit", "--shard"} & set(arguments)
    assert tops(modules) <= {"bot", *sys.stdlib_module_names}
    assert tops(modules) & SLOW == set()


def test_the_walls_of_this_test_would_fall_for_a_command(tmp_path: Path) -> None:
    code, modules, _ = started(tmp_path, "targets", "--config", "default")
    assert code == 0
    assert {"rich", "yaml"} <= tops(modules) and tops(modules) & SLOW


def test_what_asks_nothing_of_github_imports_no_client_of_it(tmp_path: Path) -> None:
    _, imported, _ = started(tmp_path, "targets", "--config", "default")
    assert "bot.study.prepare" in imported and "github" not in imported


def test_a_comparison_of_snapshots_imports_no_library_of_a_format(
    tmp_path: Path,
) -> None:
    for name, side in zip(SIDES, everyday.sides("one_flag"), strict=True):
        (tmp_path / f"{name}.json").write_text(to_json(side), encoding="utf-8")
    snapshots = (str(tmp_path / "base.json"), str(tmp_path / "head.json"))
    places = ("--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "out"))
    code, imported, line = started(tmp_path, "compare", *snapshots, *places)
    assert code in (0, 1), line
    assert "bot.study.prepare" in imported
    assert tops(imported) & {"elftools", "numpy"} == set()
