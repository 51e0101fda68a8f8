"""bot.compiler.diagnostics: what is kept of what real compilers print, and what is made of it."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import FIXTURES
from replacing import replace

from bot.compiler.diagnostics import (
    LONGEST_LINE,
    MOST_CHARACTERS,
    MOST_LINES,
    Undumped,
    WholeLines,
    failure,
    reason,
    stack_figure_bytes,
    trim,
    unknown_option,
    without_places,
)
from bot.compiler.machine_limits import memory_kib
from bot.core.snapshot import Failure
from bot.system.cancel import Cancel
from bot.system.processes import Outcome, run

HERE = FIXTURES / "diagnostics"
NAMES = sorted(path.stem for path in HERE.glob("*.txt"))
ABSOLUTE_PATH = re.compile(r"(?:^|[\s'\"(=])/[\w.-]+/")
EXITED = Outcome(
    exit_code=1, signal=None, timed_out=False, output="", cpu_ms=0, peak_rss_kib=None
)


def failed(**ending: Any) -> Failure:
    return failure(replace(EXITED, **ending), 90.0)


def said(name: str) -> str:
    return (HERE / f"{name}.txt").read_text(encoding="utf-8")


def lines(name: str) -> list[str]:
    return trim(said(name)).splitlines()


DUMPS = (
    "see current operation",
    "}) : ()",
    "Stack dump",
    " #0 0x",
    "sym_name",
    "hal.executable.variant",
)


@pytest.mark.parametrize("name", NAMES)
def test_within_bounds_and_without_dumps_and_directories(name: str) -> None:
    text = trim(said(name))
    assert (
        text and len(text) <= MOST_CHARACTERS and len(text.splitlines()) <= MOST_LINES
    )
    assert max(map(len, text.splitlines())) <= LONGEST_LINE and len(
        set(lines(name))
    ) == len(lines(name))
    assert (
        not ABSOLUTE_PATH.search(text) and "/home/" not in text and "/tmp/" not in text
    )
    assert not [dump for dump in DUMPS if dump in text]
    output = said(name).encode()
    undumped = Undumped()
    output_kept = undumped(output) + undumped(b"")
    assert trim(output_kept.decode()) == text and len(output_kept) <= len(output)
    assert (unknown_option(said(name)) is None) == (name != "unknown-option")


def test_the_fixtures_hold_what_is_to_go() -> None:
    whole = "\n".join(map(said, NAMES))
    assert ABSOLUTE_PATH.search(whole) and all(dump in whole for dump in DUMPS)


def test_the_stack_gate() -> None:
    failure = failed(output=said("stack-gate"))
    assert (failure.stage, failure.exit_code, failure.signal, failure.figure_bytes) == (
        "compile",
        1,
        None,
        36864,
    )
    first, second = failure.message.splitlines()
    assert (
        first
        == "torch/nn/modules/normalization.py:228:0: error: 'func.func' op exceeded"
        " stack allocation limit of 32768 bytes for function. Got 36864 bytes"
    )
    assert second.startswith(
        "torch/nn/modules/normalization.py:228:0: error: failed to run translation of"
        " source"
    )
    assert second.endswith("…")
    text = said("stack-gate")
    assert stack_figure_bytes(text) == 36864
    assert (
        stack_figure_bytes(text + text.replace("Got 36864", "Got 144896") + text)
        == 144896
    )
    assert stack_figure_bytes("no gate") is None


@pytest.mark.parametrize(
    ("name", "line", "figure_bytes"),
    [
        (
            "shared-memory",
            "uses 81920 bytes of shared memory; exceeded the limit of 65536 bytes",
            81920,
        ),
        (
            "unknown-option",
            "this compiler does not know the option --no-such-flag",
            None,
        ),
        ("parse-error", "<stdin>:2:23: error: use of undeclared SSA value name", None),
        (
            "dot-product",
            (
                "<stdin>:5:8: error: Capability 'DotProduct' requires min version v1.6"
                " but target "
            ),
            None,
        ),
    ],
)
def test_what_real_compilers_say(
    name: str, line: str, figure_bytes: int | None
) -> None:
    failure = failed(output=said(name))
    assert line in failure.first_line and failure.figure_bytes == figure_bytes
    assert failure.stage == ("option" if name == "unknown-option" else "compile")
    assert stack_figure_bytes(said(name)) is None
    if name == "parse-error":
        assert lines(name) == said(name).splitlines(), "with its source line"


def test_a_long_name_does_not_take_the_figures_out_of_the_line_and_the_largest_need_counts() -> (
    None
):
    text = said("shared-memory")
    name = "main$async_dispatch_10_batch_matmul_12x197x197x64_f32"
    long = text.replace(name, f"{'x' * 300}{name}")
    smaller = text.replace("81920", "70000")
    failure = failed(output=f"{smaller}{long}")
    assert failure.figure_bytes == 81920
    line = failure.message.splitlines()[-1]
    assert line.endswith(
        "197x64_f32' uses 81920 bytes of shared memory; exceeded the limit of 65536"
        " bytes"
    )


def test_a_crash() -> None:
    failure = failed(exit_code=None, signal="SIGABRT", output=said("crash"))
    assert failure.message.splitlines() == [
        "ended by SIGABRT",
        (
            "error: <unknown>:0:0: in function __extendhfdf2 double (float): SSE2"
            " register return with SSE2 disabled"
        ),
        "LLVM ERROR: Access past stack top!",
    ]
    assert (failure.stage, failure.exit_code, failure.signal) == (
        "compile",
        None,
        "SIGABRT",
    )


def test_names_of_temporary_files_do_not_differ_from_run_to_run() -> None:
    again = (
        said("link")
        .replace("2353ca", "d9ac2a")
        .replace("/tmp/run-1f3a/", "/tmp/other/")
    )
    assert again != said("link")
    assert trim(again) == trim(said("link"))
    assert ">>>               f_dispatch_0.o:(f_dispatch_0_elementwise_4_f32)" in lines(
        "link"
    )
    assert "iree-lld: error: undefined symbol: __addsf3" in lines("link")


@pytest.mark.parametrize(
    ("output", "trimmed"),
    [
        ("a.mlir:1:1: error: x\n" * 50, "a.mlir:1:1: error: x"),
        (
            (
                "a:1:1: error: one\na:1:1: note: see current operation: \n%0 = dump\n "
                " body\n}\nb:2:2: error: two\n%after"
            ),
            "a:1:1: error: one\nb:2:2: error: two\n%after",
        ),
        (
            "".join(
                f"a:{i}:1: remark: strategy {i}\n  with details\n" for i in range(50)
            )
            + "b:2:2: error: two\n",
            "b:2:2: error: two",
        ),
        (
            "<stdin>:1:1: error: " + "x" * 5000,
            ("<stdin>:1:1: error: " + "x" * 5000)[: LONGEST_LINE - 1] + "…",
        ),
    ],
    ids=[
        "no line twice",
        "dumps end at the next diagnostic",
        "no remarks and what hangs below them",
        "long lines",
    ],
)
def test_what_is_left_out(output: str, trimmed: str) -> None:
    assert trim(output) == trimmed


@pytest.mark.parametrize(
    ("line", "short"),
    [
        (
            "cannot open '/home/me/secret place/m.mlir'",
            "cannot open 'secret place/m.mlir'",
        ),
        ("/usr/lib/x.so+0x5c: bad", "x.so+0x5c: bad"),
        ("torch/nn/linear.py:1:1: error", "torch/nn/linear.py:1:1: error"),
        ("a/b and c/d", "a/b and c/d"),
        ("report to https://iree.dev/x/y", "report to https://iree.dev/x/y"),
    ],
)
def test_directories_go_and_relative_paths_stay(line: str, short: str) -> None:
    assert trim(line) == short


# Endings without words


def test_a_timeout_and_silence() -> None:
    late = failed(exit_code=None, signal="SIGKILL", timed_out=True, output="half a wo")
    assert (late.stage, late.message) == ("timeout", "not finished after 90 s")
    assert failed(exit_code=3).message == "exit code 3 without a message"
    assert failed(exit_code=None, signal="SIGSEGV").message == "ended by SIGSEGV"
    assert failure(EXITED, 90.0, "import").stage == "import"


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        (
            {"signal": "SIGKILL"},
            (
                r"memory ran out, most likely \(this machine has [\d.]+ GiB\): ended by"
                r" SIGKILL"
            ),
        ),
        (
            {"signal": "SIGKILL", "peak_rss_kib": 15 << 19},
            (
                r"memory ran out, most likely \(the compiler held 7\.5 GiB, this"
                r" machine has .*\): ended by SIGKILL"
            ),
        ),
        (
            {
                "exit_code": 1,
                "output": "LLVM ERROR: out of memory",
                "peak_rss_kib": memory_kib(),
            },
            (
                r"memory ran out \(the compiler held .*, this machine has .*\): LLVM"
                r" ERROR: out of memory"
            ),
        ),
    ],
)
def test_a_model_that_needs_more_memory_than_there_is(
    ending: dict[str, Any], message: str
) -> None:
    failure = failed(**{"exit_code": None, **ending})
    assert re.fullmatch(f"on this machine: {message}", failure.message), failure.message
    assert (failure.stage, failure.signal) == ("compile", ending.get("signal"))


def test_the_machine_has_no_more_than_its_control_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = memory_kib()
    for text, limit in (
        ("max\n", whole),
        (f"{512 << 20}\n", 512 << 10),
        ("9223372036854771712\n", whole),
    ):
        (tmp_path / "memory.max").write_text(text)
        monkeypatch.setattr(
            "bot.compiler.machine_limits._GROUP_LIMITS",
            (str(tmp_path / "memory.max"), "nowhere"),
        )
        assert whole is not None and memory_kib() == (
            min(limit or whole, whole) if limit else whole
        )


@pytest.mark.parametrize("peak_rss_kib", [None, 900 << 10])
def test_a_compiler_that_asks_for_too_much_at_once_crashes_by_itself(
    peak_rss_kib: int | None,
) -> None:
    message = "terminate called after throwing an instance of 'std::bad_alloc'"
    failure = failed(
        exit_code=None, signal="SIGABRT", output=message, peak_rss_kib=peak_rss_kib
    )
    assert (failure.stage, failure.signal, failure.message) == (
        "compile",
        "SIGABRT",
        f"ended by SIGABRT\n{message}",
    )


OUTPUT_LINES = [
    "a:1:1: error: x",
    "b: note: see current operation: ",
    "  %0 = y loc(z)",
    "}",
    "%1",
    "Stack dump:",
    "b: remark: r",
    "",
    "/a/b/c",
]


@given(
    st.lists(st.sampled_from(OUTPUT_LINES)),
    st.lists(st.integers(0, 200)),
    st.sampled_from(["\n", ""]),
)
def test_dumps_left_out_as_they_come_change_no_diagnostic(
    parts: list[str], cuts: list[int], end: str
) -> None:
    text = "\n".join(parts) + end
    output = text.encode()
    undumped = Undumped()
    edges = [0, *sorted(min(cut, len(output)) for cut in cuts), len(output)]
    chunks = [output[start:stop] for start, stop in pairwise(edges) if start < stop]
    remaining = b"".join(undumped(chunk) for chunk in [*chunks, b""]).decode()
    assert trim(remaining) == trim(text) == trim(trim(text))


def test_a_dump_of_megabytes_does_not_use_up_the_room_of_the_next_diagnostic(
    tmp_path: Path,
) -> None:
    lines = [
        "a:1:1: error: one",
        "a:1:1: note: see current operation: ",
        *["  %0 = dump"] * 100_000,
        "b:2:2: error: two",
    ]
    (tmp_path / "said").write_text("\n".join(lines), encoding="utf-8")
    process = run(["cat", str(tmp_path / "said")], cancel=Cancel(), keeping=Undumped())
    assert trim(process.output) == "a:1:1: error: one\nb:2:2: error: two"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("<stdin>:12:3: error: failed to legalize", "failed to legalize"),
        ("-:1:1: error: a: 3:4: error: b", "a: 3:4: error: b"),
        ("dir/a b.mlir:12:3: error: x", "x"),
        ("a.mlir:12:3: 'func.func' op x", "'func.func' op x"),
        ("ended by SIGSEGV", "ended by SIGSEGV"),
        ("error: unknown option", "error: unknown option"),
        (
            (
                "module {\n^\n-:1:1: error: failed to legalize 'a': %6 = \"a\"() : ()"
                " -> f16\n-:2:2: error: y"
            ),
            "failed to legalize 'a'",
        ),
        ("<stdin>:1:1: note: a\n<stdin>:12:3: error: x\nmore", "x"),
        ("", ""),
    ],
)
def test_the_reason_of_a_message_has_no_place(message: str, expected: str) -> None:
    assert reason(message) == expected


def test_places_are_left_out_with_whatever_stands_in_them() -> None:
    text = """util.func @main(%arg0: i32 loc("a(b"("x.py":1:2))) {
  %0 = arith.addi %arg0, %arg0 : i32 loc(fused["p", "q"])
} loc(#loc1)
#loc1 = loc("x.py":3:4)
"""
    assert (
        without_places(text)
        == "util.func @main(%arg0: i32) {\n  %0 = arith.addi %arg0, %arg0 : i32\n}\n"
    )
    assert without_places('a loc("never closed') == "a"


def test_a_line_that_two_chunks_share_is_whole() -> None:
    text = b"a.mlir:1:1: error: no such op\nsecond line\nthe last one"
    for place in range(1, len(text)):
        whole_lines = WholeLines()
        lines = list[bytes]()
        for chunk in (text[:place], text[place:], b""):
            lines += whole_lines.ended_by(chunk)
        assert list(filter(None, lines)) == text.splitlines(keepends=True), place
