"""bot.study.specs: globs and directories that name a side."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_wheels import wheel_name

from bot.errors import BotError, CompilerUnavailable, UsageError
from bot.study.specs import named_file

RUNTIME = "iree_base_runtime-3.13.0-py3-none-any.whl"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of files, and a folder for each question."""
    monkeypatch.chdir(tmp_path)
    names = [
        f"one/{wheel_name()}",
        f"one/{RUNTIME}",
        "one/notes.txt",
        "build/iree-compile",
        "a[1].json",
        "a1.json",
    ]
    names += [
        f"many/{wheel_name(**only)}"
        for only in ({}, {"platform": "win_amd64"}, {"python": "cp27"})
    ]
    names += [f"two/{wheel_name()}", f"two/{wheel_name('3.12.0')}", f"none/{RUNTIME}"]
    names += [
        f"both/{wheel_name()}",
        "both/snapshot.json",
        "side/snapshot.json",
        "side/report.html",
    ]
    for name in (*names, "out/a/snapshot.json", "out/b/snapshot.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")


SPECS = (
    "3.13.0",
    "iree-base-compiler==3.13.0",
    "one",
    "one/",
    "./build",
    "main",
    "ref:main",
    "b.json",
    "x" * 5_000,
)


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        *((spec, spec) for spec in SPECS),  # no glob and no directory with a snapshot
        *(
            (f"{pattern}", f"one/{wheel_name()}")
            for pattern in ("one/*.whl", "one/*", "on*/iree_base_compiler-*")
        ),
        ("many/*.whl", f"many/{wheel_name()}"),  # the one for this machine
        *((spec, "side/snapshot.json") for spec in ("side", "sid*", "side/*.json")),
        ("a[1].json", "a[1].json"),  # a file whose name looks like a glob
    ],
)
def test_what_is_meant(spec: str, meant: str) -> None:
    assert named_file(spec) == meant


@pytest.mark.parametrize(
    ("spec", "line", "hint"),
    [
        (
            "none/*.whl",
            "none/*.whl: matches 1 wheel, but none is of the compiler",
            "name one wheel of iree-base-compiler",
        ),
        (
            "gone/*.whl",
            "gone/*.whl: matches no file",
            "name one wheel of iree-base-compiler",
        ),
        (
            "out/*",
            "out/*: matches 2 paths: out/a, out/b",
            "name one wheel of iree-base-compiler",
        ),
        (
            "out/*/*.json",
            "out/*/*.json: matches 2 paths: out/a/snapshot.json, out/b/snapshot.json",
            "name one wheel",
        ),
        (
            "both",
            "both: holds a snapshot.json and a wheel of the compiler",
            "name one of them",
        ),
    ],
)
def test_what_means_nothing_or_several_is_one_line(
    spec: str, line: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        named_file(spec)
    assert caught.value.line.startswith(line) and hint in caught.value.line


def test_several_wheels_that_fit_this_machine_and_odd_globs_are_one_line() -> None:
    with pytest.raises(
        CompilerUnavailable,
        match=r"several wheels fit this machine: iree_base_compiler-3\.12\.0",
    ):
        named_file("two/*.whl")
    for spec in ("two/*.whl", "[", "**", "a\0b*", "*" * 300, "~/*", "[!a]?"):
        with pytest.raises(BotError) as caught:
            named_file(spec)
        assert "\n" not in caught.value.line
