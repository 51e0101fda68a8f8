"""`bisect` over snapshots and wheels: the answer, what it costs, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import ceil, log2
from pathlib import Path
from typing import Any

import pytest
from fake_compiler import TEMPLATES, install
from fake_wheels import entries, wheel_name, write_wheel
from replacing import replace
from report_factory import with_metrics
from series import CELL, KEY, Value, figures, side, write, write_series

from bot.cli.main import main
from bot.core.snapshot import Snapshot

Bisect = Callable[..., tuple[int, str, str]]
Answer = Callable[..., dict[str, Any]]
VERSIONS = tuple(f"3.{minor}.0" for minor in range(2, 14))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")  # a long line is one here
    return tmp_path


@pytest.fixture
def bisect(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Bisect:
    """Exit code, standard output and standard error."""

    def run(*arguments: str, cell: Sequence[str] = CELL) -> tuple[int, str, str]:
        code = main(["bisect", *cell, "--cache", str(home / "cache"), *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def answer(bisect: Bisect, home: Path) -> Answer:
    """What `--format json` prints, which is what `bisect.json` has."""

    def run(
        *arguments: str, code: int = 0, cell: Sequence[str] = CELL
    ) -> dict[str, Any]:
        ended, out, err = bisect(
            "--config", "default", "--format", "json", *arguments, cell=cell
        )
        assert ended == code, err
        assert (home / "out/bisect.json").read_text().strip() == out.strip()
        document: dict[str, Any] = json.loads(out)
        return document

    return run


def series(
    home: Path, *values: Value, metric: str = "artifact_bytes"
) -> tuple[str, str]:
    """A directory `nightly` with these in the order of their versions; its first and its last."""
    paths = write_series(
        home / "nightly", dict(zip(VERSIONS, values, strict=False)), metric
    )
    return str(paths[0].relative_to(home)), str(paths[-1].relative_to(home))


def looks(result: dict[str, Any]) -> dict[str, str]:
    return {Path(look["name"]).stem: look["judged"] for look in result["looks"]}


@pytest.mark.parametrize("first_bad", range(1, 12))
def test_the_first_bad_snapshot_is_found_wherever_it_is(
    home: Path, answer: Answer, first_bad: int
) -> None:
    ends = series(home, *[50_438] * first_bad, *[83_990] * (12 - first_bad))
    bisection = answer("--among", "nightly", *ends)
    assert Path(bisection["first_bad"]).stem == VERSIONS[first_bad], (
        "3.10.0 comes after 3.9.0"
    )
    assert Path(bisection["last_good"]).stem == VERSIONS[first_bad - 1]
    assert (
        bisection["candidates"] == 12 and len(bisection["looks"]) <= ceil(log2(12)) + 2
    )
    assert (bisection["schema"], bisection["limit"], bisection["could_be"]) == (
        "code-size-bisect/1",
        67_214,
        [],
    )


def test_the_older_candidate_is_the_base_also_if_the_newer_one_is_good(
    home: Path, bisect: Bisect, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = list[list[int | None]]()

    def traced(
        _plans: object, snapshots: dict[str, Snapshot], _work: object
    ) -> dict[str, Snapshot]:
        sizes = [
            snapshots[side].cells[0].value("artifact_bytes")
            for side in ("base", "head")
        ]
        sides.append(sizes)
        return snapshots

    monkeypatch.setattr("bot.study.bisect.traced", traced)
    oldest, newest = series(home, 83_990, 83_990, 50_438, 50_438)
    among = ("--config", "default", "--among", "nightly/*.json")
    code, out, err = bisect(*among, newest, oldest)
    assert code == 0, err
    assert sides == [[83_990, 50_438]], out


def test_the_step_is_reported_with_its_cause_and_commands_that_show_it(
    home: Path, bisect: Bisect
) -> None:
    good, bad = series(home, 50_438, 50_438, 83_990, 83_990)
    code, out, err = bisect(
        "--config", "default", "--among", "nightly/*.json", good, bad
    )
    assert code == 0 and "nightly/3.4.0.json: 83,990 B, bad" in err
    assert "first bad: nightly/3.4.0.json (4 of 4 candidates measured)" in out
    assert "50,438 → 83,990 B: +33,552 B (+66.5 %) of +33,552 B from GOOD to BAD" in out
    assert "cause: container" in out or "cause: unknown" in out
    commands = [
        line.strip() for line in out.splitlines() if line.startswith("code-size-bot ")
    ]
    assert [command.split()[1] for command in commands] == ["report", "explain"]
    assert "--base nightly/3.3.0.json --head nightly/3.4.0.json" in commands[0]
    for command in commands:
        assert main(command.split()[1:]) in (0, 1)
    assert KEY.model in (home / "out/comment.md").read_text()


@pytest.mark.parametrize(
    ("values", "options", "first_bad"),
    [
        ((10, 10, 40, 40, 46, 50), [], "3.4.0"),
        ((10, 10, 40, 40, 46, 50), ["--limit", "45"], "3.6.0"),
        ((10, 10, 40, 40, 46, 50), ["--limit", "19B"], "3.4.0"),
        # what does not compile is skipped, and the answer is still one
        (
            (5, None, 5, 9, None, 9),
            [],
            "3.5.0",
        ),
    ],
)
def test_bad_is_what_the_options_say(
    home: Path,
    answer: Answer,
    values: tuple[Value, ...],
    options: list[str],
    first_bad: str,
) -> None:
    bisection = answer(*options, "--among", "nightly", *series(home, *values))
    assert (
        Path(bisection["first_bad"]).stem == first_bad and bisection["could_be"] == []
    )


def test_another_metric_moves_at_another_place(home: Path, answer: Answer) -> None:
    ends = series(home, 3, 3, 3, 3, 9, metric="executables")
    assert (
        Path(
            answer("--metric", "executables", "--among", "nightly", *ends)["first_bad"]
        ).stem
        == "3.6.0"
    )


def test_another_metric_is_not_explained_by_a_cause_of_bytes(
    home: Path, bisect: Bisect
) -> None:
    values = {"3.2.0": 3, "3.3.0": 3, "3.4.0": 9, "3.5.0": 9}
    for version, value in values.items():
        snapshot = side(version, value, "steady_sites")
        cells = tuple(
            (
                with_metrics(
                    cell,
                    **figures("artifact_bytes", 100_000 + 1000 * value),
                    dispatch_sites=value + 2,
                )
                if cell.key == KEY
                else cell
            )
            for cell in snapshot.cells
        )
        write(home / "nightly" / f"{version}.json", replace(snapshot, cells=cells))
    ends = ("nightly/3.2.0.json", "nightly/3.5.0.json")
    code, out, err = bisect(
        "--config",
        "default",
        "--metric",
        "steady_sites",
        "--among",
        "nightly/*.json",
        *ends,
    )
    assert code == 0 and "first bad: nightly/3.4.0.json" in out, err
    reason = (
        "only changes of artifact_bytes have a cause, not those of steady_sites;"
        " changed with it: dispatch_sites 5 → 11"
    )
    assert f"cause: unknown: {reason}\n" in out
    document = json.loads((home / "out/bisect.json").read_text())
    assert (document["cause"], document["why"]) == (None, reason)


def test_a_range_is_left_where_what_lies_at_the_step_cannot_be_measured(
    home: Path, answer: Answer
) -> None:
    ends = series(home, 5, 5, None, None, 9, 9)
    bisection = answer("--among", "nightly", *ends, code=5)
    assert [Path(name).stem for name in bisection["could_be"]] == [
        "3.4.0",
        "3.5.0",
        "3.6.0",
    ]
    assert looks(bisection)["3.4.0"] == looks(bisection)["3.5.0"] == "skipped"
    assert {
        look["reason"] for look in bisection["looks"] if look["judged"] == "skipped"
    } == {
        "failed: error: 3.4.0 refuses it",
        "failed: error: 3.5.0 refuses it",
    }


def test_one_that_gives_now_this_and_now_that_is_no_evidence(
    home: Path, answer: Answer
) -> None:
    ends = series(home, 10, (10, 11), (10, 90), (90, 91), 90)
    bisection = answer("--among", "nightly", *ends, code=5)
    assert looks(bisection) == {
        "3.2.0": "good",
        "3.3.0": "good",
        "3.4.0": "skipped",
        "3.5.0": "bad",
        "3.6.0": "bad",
    }
    (doubtful,) = [look for look in bisection["looks"] if look["judged"] == "skipped"]
    assert (
        doubtful["values"] == [10, 90]
        and doubtful["reason"]
        == "the build is non-deterministic: its values lie on both sides of the limit"
    )


@pytest.mark.parametrize(
    ("values", "unknown_count"),
    [
        ((5, 5, 9), ""),
        ((5, 9, 5, 9), "1 of 4"),
        ((5, 9, None, 5, 9, 9), "2 of 6"),
        ((5, None, 9), ""),
    ],
    ids=["all are known", "not seen", "not measured", "told as a range"],
)
def test_where_nothing_is_known_of_a_candidate_it_is_said_that_there_may_be_other_boundaries(
    home: Path, bisect: Bisect, values: tuple[Value, ...], unknown_count: str
) -> None:
    code, out, _ = bisect(
        "--config", "default", "--among", "nightly", *series(home, *values)
    )
    assert code == (5 if values == (5, None, 9) else 0)
    notes = [line for line in out.splitlines() if "no known value" in line]
    expected = (
        f"note: {unknown_count} candidates have no known value: good may also turn to bad at"
        " another place"
    )
    assert notes == ([expected] if unknown_count else [])
    written = json.loads((home / "out/bisect.json").read_text())["notes"]
    assert [f"note: {line}" for line in written if "no known value" in line] == notes


def test_a_damaged_file_between_is_skipped(home: Path, answer: Answer) -> None:
    ends = series(home, 5, 5, 9, 9)
    (home / "nightly/3.3.0.json").write_text("{")
    assert answer("--among", "nightly", *ends, code=5)["could_be"]


REFUSED: dict[str, tuple[tuple[Value, ...], list[str], str]] = {
    "swapped": (
        (9, 9, 5),
        [],
        "GOOD and BAD are swapped: GOOD has 9 B, BAD 5 B (lower is better",
    ),
    "equal": (
        (5, 7, 5),
        [],
        "artifact_bytes is the same at both ends: GOOD has 5 B, BAD 5 B",
    ),
    "good is bad": (
        (9, 9, 12),
        ["--limit", "5"],
        "GOOD is not good: GOOD has 9 B, BAD 12 B, and bad means more than 5 B",
    ),
    "bad is good": (
        (5, 7, 9),
        ["--limit", "55"],
        "BAD is not bad: GOOD has 5 B, BAD 9 B, and bad means more than 55 B",
    ),
    "no value": ((5, 7, None), [], "BAD has no value: failed: error: 3.4.0 refuses it"),
    "metric": (
        (5, 7, 9),
        ["--metric", "artifact_byte"],
        "did you mean 'artifact_bytes'",
    ),
    "unit": ((5, 7, 9), ["--limit", "5ms"], "--limit: '5ms' is not a number of bytes"),
    "number": ((5, 7, 9), ["--limit", "much"], "--limit: 'much' is not a number"),
    "noisy": (
        (5, 7, 9),
        ["--metric", "compile_cpu_ms"],
        "compile_cpu_ms varies from run to run: it cannot",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_bisected_is_refused_in_one_line(
    home: Path, bisect: Bisect, case: str
) -> None:
    values, options, expected = REFUSED[case]
    code, out, err = bisect(
        "--config", "default", *options, "--among", "nightly", *series(home, *values)
    )
    assert (code, out) == (5 if case == "no value" else 2, "")
    assert expected in err.splitlines()[-1] and err.splitlines()[-1].startswith(
        "code-size-bot: "
    )


def test_the_row_has_to_be_known_and_its_ends_two(home: Path, bisect: Bisect) -> None:
    good, bad = series(home, 5, 9)
    for expected, arguments in {
        "the candidates between the two are unknown (name the candidates with --among": [
            good,
            bad,
        ],
        "GOOD and BAD are the same (": ["--among", "nightly", bad, f"./{bad}"],
        "holds no iree_base_compiler-*.whl and no snapshot": [
            "--among",
            ".",
            good,
            bad,
        ],
        "is not a release, a file or a directory, and matches no file": [
            "--among",
            "n*/x",
            good,
            bad,
        ],
    }.items():
        try:
            code, _, err = bisect("--config", "default", *arguments)
        except SystemExit as ended:
            code = int(str(ended.code))
            err = expected
        assert code == 2 and expected in err, err


def test_a_limit_that_does_not_fit_the_metric_is_refused_before_anything_is_fetched(
    home: Path, bisect: Bisect
) -> None:
    arguments = (
        "--metric",
        "executables",
        "--limit",
        "64KiB",
        str(home / "no.whl"),
        str(home / "none.whl"),
    )
    code, out, err = bisect("--config", "default", *arguments)
    assert (code, out) == (2, "") and err.startswith(
        "code-size-bot: --limit: '64KiB' is not a count (executables is in"
    )


def test_one_cell_has_to_be_meant(home: Path, bisect: Bisect) -> None:
    ends = series(home, 5, 9)
    code, _, err = bisect(
        "--config",
        "default",
        "--among",
        "nightly",
        *ends,
        cell=("--model", "*", "--target", "vmvx"),
    )
    assert (
        code == 2
        and "2 builds match: bert_l4_f32_s128 on vmvx, mobilenet_v1_f32_224 on vmvx"
        in err
    )
    code, _, err = bisect(
        "--config",
        "default",
        "--among",
        "nightly",
        *ends,
        cell=("--model", "x", "--target", "vmvx"),
    )
    assert code == 2 and "--model x: matches no model" in err


@pytest.fixture
def among_wheels(home: Path, bisect: Bisect) -> Callable[..., tuple[int, str, str]]:
    """Bisect between two of these files, for the one model on the one target."""
    (home / "m.mlir").write_text("func.func @main()\n")
    (home / "code-size.yml").write_text(
        "schema: code-size-config/1\nmodels: [m.mlir]\ntargets: [llvm-cpu-x86_64]\n"
    )
    return lambda good, bad: bisect(
        str(good), str(bad), cell=("--model", "m", "--target", "x86_64")
    )


def wheels(home: Path, **does: str | bool) -> list[Path]:
    """Wheels of fake compilers: a version, and what it does; True: it makes larger artifacts."""
    paths = []
    for name, do in does.items():
        version = name.removeprefix("v").replace("_", ".")
        rules = [{"do": do if isinstance(do, str) else "grow"}] if do else []
        fake = install(
            home / f"fake-{name}", rules, version=f"{version}rc1", templates=TEMPLATES
        )
        library = f"\x7fELF {version}".encode()
        paths.append(
            write_wheel(
                home / "dist" / wheel_name(version), entries(fake, library, version)
            )
        )
    return paths


def test_wheels_of_a_directory_are_candidates_by_version_and_one_that_is_none_is_skipped(
    home: Path, among_wheels: Callable[..., tuple[int, str, str]]
) -> None:
    paths = wheels(
        home,
        v3_8_0=False,
        v3_9_0=False,
        v3_10_0=True,
        v3_11_0=True,
        v3_12_0=True,
        v3_13_0=True,
    )
    (home / "dist" / wheel_name("3.9.5", platform="win_amd64")).touch()
    code, out, err = among_wheels(paths[0], paths[4])
    assert code == 0, err
    assert "5 candidates from " in err, (
        "3.13.0 is newer than BAD, and one is for another platform"
    )
    assert f"first bad: {paths[2]} (4 of 5 candidates measured)" in out
    assert f"--base {paths[1]} --head {paths[2]}" in " ".join(out.split())
    paths[2].write_bytes(b"no wheel")
    code, out, err = among_wheels(paths[1], paths[3])
    assert (
        code == 5
        and f"the first bad candidate is one of: {paths[2]}, {paths[3]}" in out
    ), err
    assert "(2 of 3 candidates measured)" in out


def test_one_whose_alarm_does_not_hold_when_it_is_compiled_again_is_skipped(
    home: Path, among_wheels: Callable[..., tuple[int, str, str]]
) -> None:
    paths = wheels(home, v3_8_0=False, v3_9_0="flaky", v3_10_0=True)
    code, out, err = among_wheels(paths[0], paths[2])
    assert code == 5, out
    assert (
        "skipped, the build is non-deterministic: its values lie on both sides of the"
        " limit" in out
    )
    assert f"the first bad candidate is one of: {paths[1]}, {paths[2]}" in out
    assert err.splitlines()[-1].endswith(
        "2 candidates may be the first bad one (the others have no clear value)"
    )
