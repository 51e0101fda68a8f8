"""bot.running.runner: counts of instructions, from what `perf` says; or why there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.running import runner as retiring
from bot.running.feeding import Feed
from bot.running.runner import Runtime, count_of, retired
from bot.system.processes import Cancel

STARTING, ONE_RUN = 5000, 700
PERF = f"""#!/bin/sh
# Counts {STARTING} for starting, and {ONE_RUN} for each repetition that is asked for.
while [ "$1" != -o ]; do shift; done
out=$2
times=0
for word; do case "$word" in --benchmark_min_time=*x) times="${{word#*=}}"; times="${{times%x}}";; esac; done
echo "# started" > "$out"
echo "$(({STARTING} + {ONE_RUN} * times)),,instructions:u,100,100.00,," >> "$out"
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    retiring._refusal.cache_clear()
    yield
    retiring._refusal.cache_clear()


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path, (("--function=main",),), ("f32 of about 0.25",), True, ("f32",), None)


def perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    program = tmp_path / "bin" / "perf"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setattr(retiring, "PERF", str(program))


def test_what_starting_takes_is_in_no_count(tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    perf(tmp_path, monkeypatch, PERF)
    assert retired(Runtime(tmp_path, "3.13.0"), tmp_path / "a.vmfb", feed, Cancel(), 60) == ONE_RUN


def test_without_perf_there_is_a_reason(tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retiring, "PERF", str(tmp_path / "none"))
    told = retired(Runtime(tmp_path, "3.13.0"), tmp_path / "a.vmfb", feed, Cancel(), 60)
    assert told == "on this machine: perf, which counts instructions, is not installed"


def test_a_refusal_of_the_kernel_is_told(tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    perf(tmp_path, monkeypatch, "#!/bin/sh\necho 'No permission to enable events.' >&2\nexit 255\n")
    told = retired(Runtime(tmp_path, "3.13.0"), tmp_path / "a.vmfb", feed, Cancel(), 60)
    assert told == "on this machine: instructions are not counted: No permission to enable events."


@pytest.mark.parametrize(
    ("report", "count"),
    [
        ("# started\n\n1234,,instructions:u,5,100.00,,\n", 1234),
        ("1234,,instructions,5,100.00,,\n", 1234),
        ("<not supported>,,instructions:u,0,100.00,,\n", "the kernel says <not supported>"),
        ("<not counted>,,instructions:u,0,0.00,,\n", "the kernel says <not counted>"),
        ("", "the kernel says nothing"),
        ("1,,instructions:u,1,1,,\n2,,instructions:u,1,1,,\n", "the kernel says 1"),
        ("-5,,instructions:u,1,1,,\n", "the kernel says -5"),
    ],
)
def test_what_perf_says_is_a_count_or_a_reason(report: str, count: int | str) -> None:
    told = count_of(report)
    assert told == count or told == f"on this machine: instructions are not counted: {count}"
