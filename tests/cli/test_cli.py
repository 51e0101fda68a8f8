"""bot.cli.main: one line and the right exit code for what a user can get wrong, and the files for what is right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from json_texts import to_json
from places import ROOT
from replacing import replace
from report_factory import MODELS, snapshot
from strategies import plain_snapshot

from bot import __version__
from bot.cli.main import main
from bot.core.planned import COMMON_FLAGS
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_json

FILES = [
    "base.json",
    "comment.md",
    "head.json",
    "report.html",
    "report.json",
    "summary.md",
]
CONFIG = "schema: code-size-config/1\nmodels: ['suite/*.mlir']\ntargets: [vmvx, cuda]\n"
OURS = {**os.environ, "PYTHONPATH": str(ROOT)}
BASE = plain_snapshot(("a", "vmvx", "ok"), ("b", "vmvx", "ok"))


@dataclass(frozen=True)
class Outcome:
    """What one command came to."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line of complaint, without the program's name.

        What configuration was found is said before it.
        """
        lines = [
            line
            for line in self.err.splitlines()
            if not line.startswith("configuration: ")
        ]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("code-size-bot: ")
        return lines[0].removeprefix("code-size-bot: ")


@dataclass(frozen=True)
class Bench:
    """A directory to work in, and the program."""

    folder: Path
    capture: pytest.CaptureFixture[str]

    def run(self, *arguments: str) -> Outcome:
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Outcome(code, *self.capture.readouterr())

    def write(self, name: str, content: str | bytes | Snapshot) -> str:
        content = to_json(content) if isinstance(content, Snapshot) else content
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    def files(self, name: str = "out") -> list[str]:
        return sorted(path.name for path in (self.folder / name).iterdir())


@pytest.fixture
def bench(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODE_SIZE_CACHE", str(tmp_path / "cache"))
    before = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    workbench = Bench(tmp_path, capsys)
    for name in ("small", "middle", "large"):
        workbench.write(
            f"suite/{name}.mlir",
            "module {}" * {"small": 1, "middle": 10, "large": 100}[name],
        )
    workbench.write("c.yml", CONFIG)
    workbench.write("base.json", BASE)
    yield workbench
    for number, handler in before.items():
        signal.signal(number, handler)


def grown(by: int) -> Snapshot:
    """BASE with larger artifacts."""
    cells = [
        replace(
            cell,
            metrics={**cell.metrics, "artifact_bytes": 1000 + by},
            artifact_digest="e" * 64,
        )
        for cell in BASE.cells
    ]
    return replace(BASE, cells=tuple(cells))


# Arguments.


def test_the_version(bench: Bench) -> None:
    assert bench.run("--version") == Outcome(0, f"code-size-bot {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["zzz"], "code-size-bot: zzz: unknown command (see code-size-bot --help)"),
        (["plan"], "missing: --shards"),
        (
            ["plan", "--shards", "0"],
            "'0' is not a positive whole number (allowed: 1 or more)",
        ),
        (
            ["plan", "--shards", "two"],
            "'two' is not a positive whole number (allowed: 1 or more)",
        ),
        (["measure", "--compiler", "3.13.0"], "missing: --out"),
        *(
            (
                [
                    "measure",
                    "--compiler",
                    "3.13.0",
                    "--out",
                    "x.json",
                    "--shard",
                    shard,
                ],
                f"'{shard}' is not I/N",
            )
            for shard in ("0/4", "1/0", "1", "a/b", "1/2/3", "+1/4")
        ),
        (
            ["compare", "--jobs", "0"],
            "'0' is not a positive whole number (allowed: 1 or more)",
        ),
        (["compare", "--cache-limit", "5GB"], "'5GB' has an unknown unit"),
        (
            ["compare", "--unknown"],
            "code-size-bot compare: --unknown: unknown option (see ",
        ),
        (["merge", "--out", "x.json"], "missing: part.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_that_are_wrong_end_with_2_and_say_why(
    bench: Bench, arguments: list[str], message: str
) -> None:
    outcome = bench.run(*arguments)
    assert outcome.code == 2 and outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert message in line


def test_a_wrong_limit_in_the_environment_is_reported_by_its_name(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODE_SIZE_CACHE_LIMIT", "50%")
    assert "(default: 50%)" in bench.run("compare", "--help").out
    outcome = bench.run("plan", "--config", "c.yml", "--shards", "2")
    assert (outcome.code, outcome.out) == (2, "")
    assert (
        outcome.line
        == "CODE_SIZE_CACHE_LIMIT: '50%' has an unknown unit; known units: B, KiB,"
        " MiB, GiB"
    )


# Configuration.


@pytest.mark.parametrize("command", ["plan", "report", "compare", "measure"])
def test_a_bad_configuration_is_one_line_before_anything_is_done(
    bench: Bench, command: str
) -> None:
    other_options = {
        "plan": ["--shards", "2"],
        "report": ["--base", "base.json", "--head", "base.json", "--out", "out"],
        "compare": ["--base", "base.json", "--head", "base.json", "--out", "out"],
        "measure": ["--compiler", "3.13.0", "--out", "out/x.json"],
    }
    outcome = bench.run(command, "--config", "bad.yml", *other_options[command])
    assert (
        outcome.line
        == "bad.yml: cannot be read: No such file or directory (without --config it is"
        " .github/code-size.yml or code-size.yml if one is there; quick and full are"
        " packaged suites)"
    )
    bench.write("bad.yml", "schema: code-size-config/1\nmodelz: []\n")
    outcome = bench.run(command, "--config", "bad.yml", *other_options[command])
    assert (outcome.code, outcome.out) == (2, "") and not (
        bench.folder / "out"
    ).exists()
    assert outcome.line.startswith(
        "bad.yml:2: modelz: unknown key (did you mean 'models'"
    )


# Plan.


def plan_of(bench: Bench, *arguments: str) -> list[dict[str, Any]]:
    outcome = bench.run("plan", "--config", "c.yml", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    plain = json.loads(outcome.out)
    assert plain.keys() == {"include"}
    rows: list[dict[str, Any]] = plain["include"]
    for row in rows:
        assert row["cells"] == sum(map(len, row.pop("assigned").values()))
    return rows


def test_a_plan_is_a_matrix_of_shards(bench: Bench) -> None:
    assert plan_of(bench, "--shards", "2") == [
        {"shard": "1/2", "cells": 2},
        {"shard": "2/2", "cells": 4},
    ]
    assert plan_of(bench, "--shards", "1") == [{"shard": "1/1", "cells": 6}]


def test_selectors_narrow_a_plan(bench: Bench) -> None:
    assert plan_of(bench, "--shards", "1", "--model", "s*", "--model", "large") == [
        {"shard": "1/1", "cells": 4}
    ]
    assert plan_of(bench, "--shards", "1", "--model", "s*", "--target", "vmvx") == [
        {"shard": "1/1", "cells": 1}
    ]


# Report and compare over snapshots.


@pytest.mark.parametrize("command", ["report", "compare"])
@pytest.mark.parametrize(
    ("head", "code", "status"),
    [
        (BASE, 0, "pass"),
        (grown(2000), 0, "warn"),
        (grown(8000), 1, "fail"),
        (plain_snapshot(("a", "vmvx", "failed"), ("b", "vmvx", "ok")), 1, "fail"),
        (
            plain_snapshot(
                ("a", "vmvx", "ok"), ("b", "vmvx", "ok"), ("c", "vmvx", "ok")
            ),
            0,
            "pass",
        ),
    ],
    ids=["same", "grown", "grown much", "newly broken", "new"],
)
def test_the_verdict_decides_the_exit_code_and_all_files_are_written(
    bench: Bench, command: str, head: Snapshot, code: int, status: str
) -> None:
    bench.write("head.json", head)
    outcome = bench.run(
        command, "--base", "base.json", "--head", "head.json", "--out", "deep/out"
    )
    assert outcome.code == code
    assert bench.files("deep/out") == FILES
    out = bench.folder / "deep" / "out"
    report = json.loads((out / "report.json").read_text())
    assert report["verdict"]["status"] == status
    assert (out / "base.json").read_text() == to_json(BASE)
    assert from_json((out / "head.json").read_text()) == head
    files = outcome.out.splitlines()[-2]
    assert files.startswith("written to deep/out: ") and all(
        name in files for name in FILES
    )


@pytest.mark.parametrize("command", ["report", "compare"])
def test_selectors_narrow_snapshots(bench: Bench, command: str) -> None:
    rows = [(model, target, "ok") for model in "ab" for target in ("cuda", "vmvx")]
    bench.write("base.json", plain_snapshot(*rows))
    bench.write(
        "head.json", plain_snapshot(*rows[:1], ("a", "vmvx", "failed"), *rows[2:])
    )
    sides = ("--base", "base.json", "--head", "head.json")
    assert bench.run(command, *sides).code == 1
    assert bench.run(command, *sides, "--model", "b*").code == 0
    assert bench.run(command, *sides, "--target", "cuda").code == 0
    report = json.loads((bench.folder / "out/report.json").read_text())
    assert [(cell["model"], cell["target"]) for cell in report["cells"]] == [
        ("a", "cuda"),
        ("b", "cuda"),
    ]
    assert from_json((bench.folder / "out/head.json").read_text()).targets == {
        "cuda": "cuda"
    }
    outcome = bench.run(command, *sides, "--model", "c*")
    assert (outcome.code, outcome.line) == (
        2,
        "--model c*: matches no model (known: a, b)",
    )
    outcome = bench.run(command, *sides, "--model", "a", "--target", "rocm")
    assert (outcome.code, outcome.line) == (
        2,
        "--target rocm: matches no target (known: cuda, vmvx)",
    )


@pytest.mark.parametrize(
    ("glob", "states", "lacking"),
    [
        ("[ac]", {"a": "same", "c": "new"}, ""),
        ("c", {"c": "new"}, "base"),
        ("b", {"b": "removed"}, "head"),
    ],
)
@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_glob_may_match_on_one_side_alone(
    bench: Bench, command: str, glob: str, states: dict[str, str], lacking: str
) -> None:
    bench.write("head.json", plain_snapshot(("a", "vmvx", "ok"), ("c", "vmvx", "ok")))
    outcome = bench.run(
        command,
        "--config",
        "c.yml",
        "--base",
        "base.json",
        "--head",
        "head.json",
        "--model",
        glob,
    )
    cells = json.loads((bench.folder / "out/report.json").read_text())["cells"]
    assert {cell["model"]: cell["state"] for cell in cells} == states
    expected = (
        f"out/report.json: no verdict: nothing could be compared ({lacking} has none of"
        " these builds)"
    )
    assert (
        (outcome.code, outcome.line) == (5, expected)
        if lacking
        else (outcome.code, outcome.err) == (0, "")
    )


def test_a_side_may_be_a_directory_or_a_glob(bench: Bench) -> None:
    bench.write("dist-base/snapshot.json", BASE)
    bench.write("head/snapshot.json", grown(50))
    outcome = bench.run("compare", "--base", "dist-base", "--head", "h*/*.json")
    assert (
        outcome.code == 0
        and from_json((bench.folder / "out/base.json").read_text()) == BASE
    )
    report = json.loads((bench.folder / "out/report.json").read_text())
    assert report["baseline"]["rule"] == "snapshot snapshot.json"
    outcome = bench.run("compare", "--base", "dist/*.whl", "--head", "head")
    assert (outcome.code, outcome.line.partition(" (")[0]) == (
        2,
        "dist/*.whl: matches no file",
    )
    outcome = bench.run("measure", "--compiler", "*/snapshot.json", "--out", "x.json")
    assert (
        outcome.code == 2
        and "matches 2 paths: dist-base/snapshot.json, head/snapshot.json"
        in outcome.line
    )


def test_quiet_says_only_the_verdict_and_where_the_files_are(bench: Bench) -> None:
    outcome = bench.run("report", "-q", "--base", "base.json", "--head", "base.json")
    assert outcome.err == ""
    verdict, files = outcome.out.splitlines()
    assert "Code size" in verdict and files.startswith("written to out: ")


def test_a_trace_of_a_build_that_one_side_lacks_names_the_side(bench: Bench) -> None:
    for side, model in (("left", MODELS[1]), ("right", MODELS[0])):
        bench.write(f"{side}.json", snapshot("3.13.0", models=(model,)))
    cell = ("--model", MODELS[0], "--target", "vmvx", "--dispatch", "dispatch_1")
    sides = ("--base", "left.json", "--head", "right.json", "--config", "default")
    outcome = bench.run("trace", *sides, *cell)
    assert outcome.code == 5
    assert f"{MODELS[0]} on vmvx, base: has no such build" in outcome.line


def test_a_trace_of_two_snapshots_says_that_no_compiler_is_here(bench: Bench) -> None:
    cell = ("--model", MODELS[0], "--target", "vmvx", "--dispatch", "dispatch_1")
    for side, release in (("left", "3.11.0"), ("right", "3.13.0")):
        bench.write(f"{side}.json", snapshot(release))
    outcome = bench.run(
        "trace",
        "--config",
        "default",
        "--base",
        "left.json",
        "--head",
        "right.json",
        *cell,
    )
    assert outcome.code == 5 and "no pass is named" not in outcome.out
    assert (
        "not traced: no compiler is available: both sides are snapshots" in outcome.out
    )
    assert outcome.line.endswith(
        "was not traced: no compiler is available: both sides are snapshots"
    )


def test_the_last_line_is_a_next_step(bench: Bench) -> None:
    bench.write("head.json", grown(50_000))
    outcome = bench.run("report", "--base", "base.json", "--head", "head.json")
    assert (
        outcome.out.splitlines()[-1]
        == "next: code-size-bot explain out/report.json --model a --target vmvx"
    )
    assert bench.run(*outcome.out.splitlines()[-1].split()[2:]).code == 0
    same = ("report", "--base", "base.json", "--head", "base.json")
    outcome = bench.run(*same)
    assert outcome.out.splitlines()[-1] == "next: open out/report.html"
    outcome = bench.run(*same, "--out", "my out")
    assert outcome.out.splitlines()[-1] == "next: open 'my out/report.html'"


def test_sides_are_named_by_place_or_by_option(bench: Bench) -> None:
    bench.write("head.json", grown(50))
    by_option = bench.run(
        "compare", "--base", "base.json", "--head", "head.json", "--out", "one"
    )
    assert by_option.code == 0
    for sides in (
        ("base.json", "head.json", "--out", "one"),
        ("base.json", "--out", "one", "head.json"),
        ("base.json", "--out", "one", "--", "head.json"),
    ):
        assert bench.run("compare", *sides) == by_option
    assert (
        bench.run("compare", "base.json", "--out", "one", "--head", "head.json")
        == by_option
    )
    outcome = bench.run("compare", "base.json", "head.json", "base.json")
    assert (outcome.code, outcome.line.partition(" (")[0]) == (
        2,
        "base.json head.json base.json: too many sides",
    )
    outcome = bench.run("compare", "base.json", "--base", "head.json")
    assert (outcome.code, outcome.line) == (
        2,
        (
            "base.json and --base head.json: the base side is named twice (leave out"
            " --base)"
        ),
    )


def test_a_script_in_place_of_a_compiler_is_called_one(bench: Bench) -> None:
    bench.write("build/bin/iree-compile", "#!/bin/sh\n")
    for word in ("build", str(bench.folder / "build/bin/iree-compile")):
        outcome = bench.run("measure", "--compiler", word, "--out", "x.json")
        assert (
            outcome.code == 4
            and outcome.line.startswith(f"{word}: ")
            and "script" in outcome.line
        )


def test_the_help_is_grouped_and_is_what_no_words_at_all_print(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    groups = [block.splitlines() for block in bench.run("--help").out.split("\n\n")]
    names = {lines[0]: [line.split()[0] for line in lines[1:]] for lines in groups}
    assert names["ask:"] == [
        "compare",
        "report",
        "explain",
        "trace",
        "history",
        "bisect",
        "lab",
        "fold",
    ]
    assert names["set up:"] == ["init", "doctor", "models", "targets"]
    assert {"post", "action", "plan", "merge"} <= set(names["in CI:"])
    assert bench.run().out == bench.run("--help").out


def test_no_file_holds_a_directory_of_this_machine(bench: Bench) -> None:
    bench.write("head.json", grown(8000))
    bench.run(
        "report",
        "--base",
        str(bench.folder / "base.json"),
        "--head",
        "head.json",
        "--config",
        "c.yml",
    )
    texts = {name: (bench.folder / "out" / name).read_text() for name in bench.files()}
    assert [name for name, text in texts.items() if str(bench.folder) in text] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            None,
            (
                "bad.json: cannot be read: No such file or directory (measure one with:"
                " code-size-bot measure"
            ),
        ),
        (
            to_json(BASE)[:700],
            (
                "bad.json: is not a snapshot: it is not JSON, or was cut off: Input"
                " data was truncated"
            ),
        ),
        (
            '{"name": "package", "version": "1"}',
            (
                "bad.json: is not a snapshot that this version reads: its schema is"
                " missing"
            ),
        ),
    ],
    ids=["missing", "cut", "foreign"],
)
def test_a_snapshot_that_cannot_be_used_is_one_line(
    bench: Bench, content: str | None, message: str
) -> None:
    if content is not None:
        bench.write("bad.json", content)
    for command, base, head in (
        ("report", "bad.json", "base.json"),
        ("compare", "base.json", "bad.json"),
    ):
        outcome = bench.run(command, "--base", base, "--head", head)
        assert outcome.code == 2 and message in outcome.line


@pytest.mark.parametrize("out", ["out", "out/deep", "/proc"])
@pytest.mark.parametrize("command", ["report", "compare"])
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_done(
    bench: Bench, command: str, out: str
) -> None:
    """Root may write to every directory, but not to /proc."""
    bench.write("out", "in the way")
    outcome = bench.run(
        command, "--base", "base.json", "--head", "base.json", "--out", out
    )
    assert outcome.code == 2 and outcome.line.startswith(
        f"{out}: cannot be written to: "
    )
    assert outcome.line.endswith(" (choose another place with --out)")
    assert (bench.folder / "out").read_text() == "in the way"


def verdict_of(bench: Bench) -> str:
    status: str = json.loads((bench.folder / "out/report.json").read_text())["verdict"][
        "status"
    ]
    return status


GONE = replace(BASE, cells=())
NOTHING = {
    "dead": (
        plain_snapshot(("a", "vmvx", "failed")),
        plain_snapshot(("a", "vmvx", "failed")),
        (
            "nothing could be compared, no build could be measured on either side (a is"
            " refused)"
        ),
    ),
    "lost": (BASE, GONE, "nothing could be compared (not measured on head)"),
    "late": (
        BASE,
        plain_snapshot(("a", "vmvx", "timeout"), ("b", "vmvx", "timeout")),
        "nothing could be compared (timed out on head: a is refused)",
    ),
    "no baseline": (GONE, BASE, "nothing could be compared (not measured on base)"),
    "another suite": (
        BASE,
        plain_snapshot(("z", "vmvx", "ok")),
        (
            "nothing could be compared (measure both sides with the same suite: base"
            " has a on vmvx and others, head z on vmvx and others)"
        ),
    ),
}


@pytest.mark.parametrize("command", ["report", "compare"])
@pytest.mark.parametrize("case", NOTHING)
def test_where_nothing_was_compared_the_report_is_written_and_the_code_is_5(
    bench: Bench, case: str, command: str
) -> None:
    base, head, line = NOTHING[case]
    bench.write("left.json", base)
    bench.write("right.json", head)
    outcome = bench.run(command, "-q", "--base", "left.json", "--head", "right.json")
    assert (outcome.code, outcome.line) == (5, f"out/report.json: no verdict: {line}")
    assert bench.files() == FILES and verdict_of(bench) == "unknown"
    assert "Code size: unknown" in (bench.folder / "out/comment.md").read_text()


@pytest.mark.parametrize("command", ["report", "compare"])
@pytest.mark.parametrize("case", NOTHING)
def test_a_run_that_compared_nothing_replaces_no_report(
    bench: Bench, case: str, command: str
) -> None:
    bench.write("right.json", grown(2000))
    assert bench.run(command, "base.json", "right.json").code == 0
    before = {name: (bench.folder / "out" / name).read_bytes() for name in FILES}
    base, head, line = NOTHING[case]
    bench.write("left.json", base)
    bench.write("right.json", head)
    for _ in range(2):
        outcome = bench.run(command, "left.json", "right.json")
        assert outcome.code == 5
        notice, error_line = outcome.err.splitlines()[-2:]
        assert notice == "kept the old out/report.json: this run compared nothing"
        assert (
            error_line
            == f"code-size-bot: out/no-verdict/report.json: no verdict: {line}"
        )
    assert {
        name: (bench.folder / "out" / name).read_bytes() for name in FILES
    } == before
    assert bench.files("out/no-verdict") == FILES
    assert from_json((bench.folder / "out/no-verdict/head.json").read_text()) == head


def test_report_takes_sides_by_place_or_by_option(bench: Bench) -> None:
    bench.write("head/snapshot.json", grown(50))
    by_option = bench.run(
        "report", "--base", "base.json", "--head", "head/snapshot.json", "--out", "one"
    )
    assert by_option.code == 0
    for arguments in (
        ("base.json", "head", "--out", "one"),
        ("base.json", "--out", "one", "head"),
        ("base.json", "--head", "h*/*.json", "--out", "one"),
    ):
        assert bench.run("report", *arguments) == by_option


def test_a_side_that_lacks_cells_warns(bench: Bench) -> None:
    eight = plain_snapshot(*((model, "vmvx", "ok") for model in "abcdefgh"))
    bench.write("base.json", eight)
    bench.write("head.json", replace(eight, cells=eight.cells[:1]))
    outcome = bench.run("report", "--base", "base.json", "--head", "head.json")
    assert outcome.code == 0 and verdict_of(bench) == "warn"
    assert outcome.out.startswith(
        "⚠️ Code size: 1 of 8 builds compared: 7 not measured on head · no change seen"
    )
    bench.write("c.yml", CONFIG + "states: {unmeasured: fail}\n")
    assert (
        bench.run(
            "report", "--config", "c.yml", "--base", "base.json", "--head", "head.json"
        ).code
        == 1
    )


# What nobody foresaw.


def test_a_fault_of_the_program_ends_with_5_and_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall(*_arguments: object) -> None:
        raise KeyError("of our own making")

    monkeypatch.setattr("bot.study.comparison.judge", fall)
    arguments = (
        "report",
        "--config",
        "default",
        "--base",
        "base.json",
        "--head",
        "base.json",
    )
    outcome = bench.run(*arguments)
    assert outcome.code == 5 and outcome.line.startswith("bot.study.comparison:")
    assert "internal error: KeyError: 'of our own making'" in outcome.line
    assert "CODE_SIZE_TRACEBACK=1" in outcome.line
    monkeypatch.setenv("CODE_SIZE_TRACEBACK", "1")
    with_traceback = bench.run(*arguments)
    assert (
        with_traceback.code == 5
        and with_traceback.err.startswith("Traceback")
        and with_traceback.err.endswith(f"code-size-bot: {outcome.line}\n")
    )


def test_a_side_without_compiler_is_said_to_have_none(bench: Bench) -> None:
    bench.write("c.yml", CONFIG + "compiler: {base: base.json}\n")
    outcome = bench.run("compare", "--config", "c.yml")
    assert outcome.code == 2
    assert (
        outcome.line
        == "c.yml: no compiler for the head side (give --head SPEC, such as --head"
        " 3.13.0, or a --config that names compiler.head)"
    )


@pytest.mark.parametrize("config", [[], ["--config", "c.yml"]])
def test_the_pins_of_the_packaged_configuration_are_nobodys_default(
    bench: Bench, config: list[str]
) -> None:
    outcome = bench.run("compare", *config)
    assert outcome.code == 2 and not (bench.folder / "cache").exists()
    where = f"{config[-1]}: " if config else ""
    assert (
        outcome.line
        == f"{where}no compiler for the base and head side (give --base SPEC and --head"
        " SPEC, such as --base 3.13.0, or a --config that names compiler.base)"
    )


@pytest.mark.parametrize(
    ("arguments", "variable_name"),
    [
        (["compare", "--base", "base.json", "--head", ""], "SPEC"),
        (["measure", "--out", "x.json", "--compiler", "  "], "SPEC"),
        (["report", "--head", "base.json", "--base", ""], "SPEC"),
        (
            ["report", "--base", "base.json", "--head", "base.json", "--config", " "],
            "path",
        ),
        (["plan", "--shards", "2", "--cache", ""], "path"),
    ],
    ids=" ".join,
)
def test_a_variable_that_is_not_set_is_a_usage_error(
    bench: Bench, arguments: list[str], variable_name: str
) -> None:
    outcome = bench.run(*arguments)
    line = f"{arguments[-2]}: the {variable_name} is empty (is a shell variable unset?)"
    assert (outcome.code, outcome.out) == (2, "") and outcome.err.splitlines()[
        -1
    ].endswith(line)


def test_a_spec_that_is_no_compiler_ends_with_4(bench: Bench) -> None:
    bench.write("notes.txt", "no compiler")
    outcome = bench.run(
        "measure",
        "--config",
        "c.yml",
        "--compiler",
        "./notes.txt",
        "--out",
        "head.json",
    )
    assert outcome.code == 4
    assert "notes.txt" in outcome.line
    assert not (bench.folder / "head.json").exists()


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    ids=lambda number: number.name,
)
def test_a_signal_ends_with_130_and_one_line(
    bench: Bench, number: signal.Signals
) -> None:
    pipe = bench.folder / "endless.json"
    os.mkfifo(pipe)

    def interrupt() -> None:
        with open(pipe, "wb"):  # goes on when the program has begun to read
            os.kill(os.getpid(), number)

    sender = threading.Thread(target=interrupt)
    sender.start()
    outcome = bench.run(
        "report", "--base", "endless.json", "--head", "base.json", "--out", "out"
    )
    sender.join()
    assert (outcome.code, outcome.out) == (130, "")
    assert (
        "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    ) in outcome.line
    assert "finished builds are in the cache" in outcome.line


def test_a_signal_that_is_ignored_stays_so(bench: Bench) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    assert bench.run("models", "--config", "c.yml").code == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_who_reads_only_the_beginning_of_the_answer_has_the_verdicts_exit_code(
    bench: Bench,
) -> None:
    bench.write("head.json", grown(8000))
    arguments = ("report", "--base", "base.json", "--head", "head.json", "--format")
    for form in ("json", "text"):
        with subprocess.Popen(
            [sys.executable, "-m", "bot", *arguments, form],
            stdout=subprocess.PIPE,
            env=OURS,
        ) as child:
            assert child.stdout
            child.stdout.close()
            assert child.wait() == 1


def test_what_a_terminal_cannot_show_is_escaped_and_json_is_whole(bench: Bench) -> None:
    bench.write("suite/é.mlir", "module {}")
    bench.write("é.json", plain_snapshot(("é", "vmvx", "ok")))
    report = ("report", "--base", "é.json", "--head", "é.json")
    for arguments, expected in (
        (("models", "--config", "c.yml"), rb"\xe9 "),
        (report, b""),
        ((*report, "--format", "json"), b""),
    ):
        argv = [sys.executable, "-m", "bot", *arguments]
        done = subprocess.run(
            argv,
            capture_output=True,
            env=OURS | {"PYTHONIOENCODING": "ascii"},
            check=True,
        )
        assert expected in done.stdout
    assert json.loads(done.stdout)["cells"][0]["model"] == "é"


def test_at_a_terminal_the_entries_of_github_name_its_commands(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "INPUT_"))]:
        monkeypatch.delenv(name)
    outcome = bench.run("post")
    assert outcome.code == 2 and outcome.line.endswith(
        "(at a terminal, use code-size-bot compare or measure)"
    )


# Merge.


def test_merged_parts_are_the_run(bench: Bench) -> None:
    whole = replace(BASE, flags=COMMON_FLAGS)
    names = []
    for cell in whole.cells:
        names.append(
            bench.write(f"part-{cell.key.model}.json", replace(whole, cells=(cell,)))
        )
    outcome = bench.run("merge", names[0], "--out", "new/head.json")
    assert (
        outcome.err.strip()
        == "wrote new/head.json: 1 build (1 planned build missing from all parts, such"
        " as b on vmvx)"
    )
    outcome = bench.run("merge", *names[::-1], "--out", "new/head.json")
    assert (outcome.code, outcome.err.strip()) == (0, "wrote new/head.json: 2 builds")
    assert (bench.folder / "new" / "head.json").read_text() == to_json(whole)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        ({}, "measured a on vmvx again (merge every shard once)"),
        *(
            (
                {field: value},
                f"has a different {field} than base.json (merge the shards of one run)",
            )
            for field, value in (
                ("compiler", replace(BASE.compiler, digest="e" * 64)),
                ("source", replace(BASE.source, dirty=True)),
                ("flags", ("--other",)),
            )
        ),
        *(
            (
                {field: {name: "another"}},
                (
                    f"has a different '{name}' among its {field} than the parts before"
                    " (merge the"
                ),
            )
            for field, name in (("models", "a"), ("targets", "vmvx"))
        ),
    ],
)
def test_what_is_no_part_of_one_run_is_refused_and_nothing_is_written(
    bench: Bench, edit: dict[str, Any], line: str
) -> None:
    bench.write("base.json", replace(BASE, cells=BASE.cells[:1]))
    bench.write("again.json", replace(BASE, cells=BASE.cells[bool(edit) :], **edit))
    outcome = bench.run("merge", "base.json", "again.json", "--out", "head.json")
    assert outcome.code == 2 and outcome.line.startswith(f"again.json: {line}")
    assert not (bench.folder / "head.json").exists()


def test_on_a_runner_no_line_is_a_command_of_its_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    name = tmp_path / "##[error]base.json"
    outcome = bench.run(
        "report", "--base", str(name), "--head", str(name), "--out", "o"
    )
    assert (
        outcome.code == 2
        and "matches no file" in outcome.err
        and "##[" not in outcome.err
    )
