"""What does not repeat itself: compiled several times by every command, and told and judged as a range everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fake_compiler import TEMPLATES, FakeCompiler, install, install_native, write_model

from bot.cli.main import main
from bot.study.rechecking import FEW, TIMES

CONFIG = """\
schema: code-size-config/1
models: ['*.mlir']
targets: [vmvx]
thresholds: [{name: size, metrics: [artifact_bytes], fail: {absolute: 64}}, {name: rest, metrics: ['*']}]
"""
KNOWN = "repeats: {alpha: ['vm*']}\n"
FLAKY = (  # s + 128 or s + 192 bytes, in turn, beginning with the larger
    "grow grow flaky"
)
OVERLAPS = "grow grow differ flaky"
APART = "grow grow grow grow grow grow flaky"
"""s + 129 or s + 193; s + 384 or s + 448."""
Run = Callable[..., int]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path, "alpha")
    write_model(tmp_path, "beta")
    (tmp_path / "c.yml").write_text(CONFIG + KNOWN, encoding="utf-8")
    return tmp_path


def compiler(home: Path, name: str, do: str = "", version: str = "1.0") -> FakeCompiler:
    """A compiler in `home / name` that treats alpha so."""
    rules = [{"do": do, "kind": "direct", "model": "model alpha"}] if do else []
    fake = install(home / f"fake-{name}", rules, version=version, templates=TEMPLATES)
    install_native(home / name / "iree-compile", fake)
    return fake


def run(*arguments: str, cache: str = "cache") -> int:
    return main([*arguments, "--config", "c.yml", "--cache", cache])


def compared(base: str, head: str, cache: str = "cache") -> int:
    sides = ("--base", f"{base}/iree-compile", "--head", f"{head}/iree-compile")
    return run("compare", *sides, "--out", "out", cache=cache)


def loaded(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def alpha(path: Path) -> dict[str, Any]:
    """The cell of a snapshot or a report."""
    [cell] = (cell for cell in loaded(path)["cells"] if cell["model"] == "alpha")
    row: dict[str, Any] = cell
    return row


def told(home: Path, out: str) -> list[str]:
    """Comment, page and terminal, without marks."""
    page = unescape(
        re.sub(r"<[^>]+>", " ", (home / "out/report.html").read_text(encoding="utf-8"))
    )
    comment = re.sub(
        r"</?\w+>|[`*\\|]|&nbsp;",
        " ",
        (home / "out/comment.md").read_text(encoding="utf-8"),
    )
    return [
        re.sub(r"\s+", " ", text.replace("\u2060", "")) for text in (comment, page, out)
    ]


def test_overlapping_ranges_are_reported_as_open_and_at_most_warn(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = compiler(home, "b", FLAKY)
    head = compiler(home, "h", OVERLAPS, "2.0")
    assert compared("b", "h") == 0
    sizes = alpha(home / "out/report.json")["seen"]["artifact_bytes"]
    (low, high), (head_low, head_high) = sizes["base"], sizes["head"]
    assert (high - low, head_low - low, head_high - low) == (64, 1, 65)
    sides = [alpha(home / f"out/{name}.json") for name in ("base", "head")]
    assert [
        (side["compiles"], side["metrics"]["artifact_bytes"]) for side in sides
    ] == [
        (TIMES, low),
        (TIMES, head_low),
    ]
    assert base.compiles == head.compiles == TIMES + 1, "beta once"
    [finding] = loaded(home / "out/report.json")["verdict"]["findings"]
    assert (finding["level"], finding["is_open"], finding["seen"]) == (
        "warn",
        True,
        [[low, high], [head_low, head_high]],
    )
    ranges = f"{low:,}..{high:,} → {head_low:,}..{head_high:,} B"
    for text in told(home, capsys.readouterr().out):
        assert ranges in text and "−63..+65 B" in text and "open" in text
        assert not re.search(r"\d (larger|smaller)\b", text)
        assert "non-deterministic" in text


def test_ranges_that_are_apart_are_a_change_and_judged_by_what_is_sure(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler(home, "b", FLAKY)
    compiler(home, "h", APART, "2.0")
    assert compared("b", "h") == 1
    sizes = alpha(home / "out/report.json")["seen"]["artifact_bytes"]
    [finding] = loaded(home / "out/report.json")["verdict"]["findings"]
    assert (finding["level"], finding["base"], finding["head"]) == (
        "fail",
        sizes["base"][1],
        sizes["head"][0],
    )
    comment, page, terminal = told(home, capsys.readouterr().out)
    assert (
        all("+192..+320 B" in text for text in (comment, page))
        and "1 larger" in comment
        and "1 larger" in terminal
    )
    assert " open" not in comment


def test_what_has_the_same_values_on_both_sides_is_no_change(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler(home, "b", FLAKY)
    compiler(home, "h", FLAKY, "2.0")
    assert compared("b", "h") == 0
    report = loaded(home / "out/report.json")
    assert report["verdict"] == {"findings": [], "status": "pass"}
    assert alpha(home / "out/report.json")["state"] == "same"
    assert "no change seen" in told(home, capsys.readouterr().out)[0]


@pytest.mark.parametrize("source", ["cache", "baseline", "run"])
def test_what_was_ever_seen_not_to_repeat_is_compiled_several_times_on_both_sides(
    home: Path, source: str
) -> None:
    """Whatever the budget: beta and others change, too, and take it all."""
    (home / "c.yml").write_text(CONFIG, encoding="utf-8")
    for number in range(12):
        write_model(home, f"large{number}", "// " + "x" * 4000)
    flaky = compiler(home, "b", FLAKY)
    steady = compiler(home, "h", "grow grow", "2.0")
    if source == "run":
        assert compared("b", "h") in (0, 1)
    else:
        measure = ("measure", "--compiler", "b/iree-compile", "--out", "base.json")
        (home / "c.yml").write_text(CONFIG + KNOWN, encoding="utf-8")
        assert run(*measure) == 0
        (home / "c.yml").write_text(CONFIG, encoding="utf-8")
        base = "base.json" if source == "baseline" else "b/iree-compile"
        cache = "other" if source == "baseline" else "cache"
        head = ("--head", "h/iree-compile", "--out", "out")
        assert run("compare", "--base", base, *head, cache=cache) == 0
    for fake in (flaky, steady):
        assert sum(call["model"] == "alpha" for call in fake.calls("direct")) == TIMES
    assert (
        len(alpha(home / "out/base.json")["others"]) == 1
        and alpha(home / "out/head.json")["compiles"] == TIMES
    )


@pytest.mark.slow
def test_doubting_takes_a_tenth_of_what_compiling_took_not_of_what_sizes_promise(
    home: Path,
) -> None:
    """Small files that are dear to compile all alarm, beside large ones that cost nothing."""
    (home / "c.yml").write_text(CONFIG, encoding="utf-8")
    for number in range(8):
        write_model(home, f"dear{number}")
        write_model(home, f"large{number}", "// " + "x" * 100_000)
    install_native(
        home / "b" / "iree-compile",
        install(home / "fake-b", version="1.0", templates=TEMPLATES),
    )
    grows = {"do": "grow grow burn", "kind": "direct", "model": "model dear"}
    install_native(
        home / "h" / "iree-compile",
        install(home / "fake-h", [grows], version="2.0", templates=TEMPLATES),
    )
    assert compared("b", "h") == 1
    again = [
        cell["model"]
        for cell in loaded(home / "out/head.json")["cells"]
        if cell["compiles"] > 1
    ]
    assert len(again) == FEW, "which may always be repeated"
    assert "not confirmed by a second compile" in (home / "out/comment.md").read_text(
        encoding="utf-8"
    )


def test_measure_and_report_tell_the_same_ranges(home: Path) -> None:
    compiler(home, "b", FLAKY)
    compiler(home, "h", OVERLAPS, "2.0")
    for name in ("b", "h"):
        assert (
            run(
                "measure", "--compiler", f"{name}/iree-compile", "--out", f"{name}.json"
            )
            == 0
        )
    assert run("report", "--base", "b.json", "--head", "h.json", "--out", "out") == 0
    sizes = alpha(home / "out/report.json")["seen"]["artifact_bytes"]
    assert [len(values) for values in sizes.values()] == [2, 2]


def test_a_history_has_ranges_and_tells_no_move_of_them(home: Path) -> None:
    for name, do, version in (
        ("a", FLAKY, "1.0"),
        ("b", OVERLAPS, "2.0"),
        ("c", APART, "3.0"),
    ):
        compiler(home, name, do, version)
        assert (
            run(
                "measure", "--compiler", f"{name}/iree-compile", "--out", f"{name}.json"
            )
            == 0
        )
    assert run("history", "--releases", "a.json,b.json,c.json", "--out", "out") == 0
    history = loaded(home / "out/history.json")
    points = [point for point in history["points"] if point["model"] == "alpha"]
    lows, highs = zip(
        *(point["seen"]["artifact_bytes"] for point in points), strict=True
    )
    assert [point["metrics"]["artifact_bytes"] for point in points] == list(lows)
    assert not any("move" in point for point in points)
    text = (home / "out/history.md").read_text(encoding="utf-8")
    page = (home / "out/history.html").read_text(encoding="utf-8")
    for low, high in zip(lows, highs, strict=True):
        assert f"{low:,}..{high:,}" in text and f"{low:,}..{high:,}" in page


STRICT = """\
schema: code-size-config/1
models: ['*.mlir']
targets: [vmvx]
states: {newly-broken: warn}
thresholds:
  - {name: strict, models: [alpha], metrics: [artifact_bytes], fail: {absolute: 0}}
  - {name: rest, metrics: ['*']}
"""


def test_an_alarm_is_compiled_again_before_larger_changes_that_alarm_nobody(
    home: Path,
) -> None:
    """Without its rechecks the alarm that does not hold would fail the check."""
    (home / "c.yml").write_text(STRICT, encoding="utf-8")
    names = [f"model{number}" for number in range(FEW + 2)]
    for name in names:
        write_model(home, name)
    compiler(home, "b")
    rules = [{"do": "flaky", "kind": "direct", "model": "model alpha"}]
    rules += [
        {"do": "grow grow grow", "kind": "direct", "model": f"model {name}"}
        for name in names
    ]
    fake = install(home / "fake-h", rules, version="2.0", templates=TEMPLATES)
    install_native(home / "h/iree-compile", fake)
    assert compared("b", "h") == 0
    [finding] = loaded(home / "out/report.json")["verdict"]["findings"]
    assert (finding["level"], finding["is_open"]) == ("warn", True)
    cells = {
        cell["model"]: cell["compiles"]
        for cell in loaded(home / "out/head.json")["cells"]
        if "compiles" in cell
    }
    assert cells["alpha"] == TIMES
    assert sum(cells.get(name, 1) > 1 for name in names) == FEW - 1, (
        "the alarm is one of the few"
    )


def test_a_build_that_is_newly_broken_is_compiled_again_before_alarms_of_metrics(
    home: Path,
) -> None:
    """Even where the configuration makes a broken build a warning, which is less than a size that fails."""
    names = [f"model{number}" for number in range(FEW + 2)]
    for name in names:
        write_model(home, name)
    (home / "c.yml").write_text(
        STRICT.replace("[alpha]", "['model*']"), encoding="utf-8"
    )
    compiler(home, "b")
    rules = [{"do": "once-fails", "kind": "direct", "model": "model alpha"}]
    rules += [
        {"do": "grow", "kind": "direct", "model": f"model {name}"} for name in names
    ]
    fake = install(home / "fake-h", rules, version="2.0", templates=TEMPLATES)
    install_native(home / "h/iree-compile", fake)
    assert compared("b", "h") == 1
    assert alpha(home / "out/report.json")["state"] == "same", (
        "it compiles the second time"
    )


@pytest.mark.parametrize("above_bytes", [0, 32, 64])
def test_a_limit_within_a_range_never_fails_the_check(
    home: Path, above_bytes: int
) -> None:
    compiler(home, "b", FLAKY)
    compiler(home, "h", OVERLAPS, "2.0")
    assert compared("b", "h") == 0
    low, high = alpha(home / "out/report.json")["seen"]["artifact_bytes"]["head"]
    allowed = "{absolute: 64}", f"{{limit: {low + above_bytes}}}"
    (home / "c.yml").write_text(
        (CONFIG + KNOWN).replace(*allowed).replace("*.mlir", "alpha.mlir"),
        encoding="utf-8",
    )
    assert compared("b", "h") == 0
    findings = loaded(home / "out/report.json")["verdict"]["findings"]
    assert [(finding["level"], finding["is_open"]) for finding in findings] == [
        ("warn", True)
    ] * (low + above_bytes < high)
