"""What an acceptance covers, what a comment remembers, and when there is one."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.acceptance import Acceptance, Seen, accept, seen
from bot.core.comment_state import CommentState, decode, encode
from bot.core.findings import Finding, Verdict
from bot.core.hidden_state import LINE_LIMIT
from bot.core.policy import judge
from bot.core.publication import is_standing, resolves, wants_comment
from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey, CompileOutcome, Failure, Snapshot

CELL = CellKey("bert", "vmvx")
GROWTH = Finding(
    key=CELL,
    level="fail",
    metric="artifact_bytes",
    rule="code size",
    kind="change",
    limit="4KiB",
    actual="+9,000 B",
    base=1_000,
    head=10_000,
    line=12,
)
ENDED = ("ok", "failed: compile")
BROKEN = Finding(
    key=CELL,
    level="fail",
    metric=None,
    rule="states",
    kind="state",
    limit="newly-broken",
    actual="ok → failed",
    outcomes=ENDED,
)
OVER = replace(BROKEN, head=73_728, outcomes=("ok", "over-stack-limit: stack-limit"))
WARNING = replace(GROWTH, level="warn", metric="vm_bytes")


def acceptance(finding: Finding) -> Acceptance:
    return Acceptance("octocat", 1, seen([finding]))


def status(finding: Finding, accepted: Acceptance | None) -> str:
    return accept(Verdict("fail", (finding,)), accepted).status


# What an acceptance covers.


def test_the_failing_findings_can_be_accepted_and_stay_as_such() -> None:
    assert seen([WARNING, GROWTH, BROKEN]) == (
        Seen(
            model="bert",
            target="vmvx",
            metric="",
            kind="state",
            value=None,
            limit="newly-broken: failed: compile",
        ),
        Seen(
            model="bert",
            target="vmvx",
            metric="artifact_bytes",
            kind="change",
            value=10_000,
            limit="",
        ),
    )
    accepted = accept(Verdict("fail", (GROWTH, WARNING)), acceptance(GROWTH))
    assert accepted == Verdict("warn", (replace(GROWTH, accepted="octocat"), WARNING))
    assert seen(accepted.findings) == seen([GROWTH])
    half = accept(Verdict("fail", (BROKEN, GROWTH)), acceptance(GROWTH))
    assert (half.status, [finding.accepted is None for finding in half.findings]) == (
        "fail",
        [True, False],
    )
    for verdict in (Verdict("pass"), Verdict("warn", (WARNING,)), Verdict("unknown")):
        assert accept(verdict, acceptance(GROWTH)) == verdict
    assert accept(Verdict("unknown", (GROWTH,)), acceptance(GROWTH)).status == "unknown"
    assert (
        status(GROWTH, None) == status(GROWTH, Acceptance("octocat", 1, ())) == "fail"
    )


def test_what_base_had_needs_no_acceptance() -> None:
    known_finding = replace(GROWTH, kind="limit", known=True)
    assert seen([known_finding]) == ()
    assert accept(Verdict("pass", (known_finding,)), acceptance(GROWTH)) == Verdict(
        "pass", (known_finding,)
    )
    verdict = accept(Verdict("fail", (BROKEN, known_finding)), acceptance(BROKEN))
    assert (verdict.status, verdict.findings[1:]) == ("warn", (known_finding,))


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_what_is_not_above_the_accepted_value_is_accepted(then: int, now: int) -> None:
    for head in (now, then, then + 1):
        later = status(
            replace(GROWTH, head=head), acceptance(replace(GROWTH, head=then))
        )
        assert (later == "warn") == (head <= then)


def test_nothing_else_is_covered() -> None:
    assert (
        status(replace(GROWTH, limit="2KiB", rule="stricter"), acceptance(GROWTH))
        == "warn"
    ), "a rule written anew"
    for changes in (
        {"key": CellKey("bert", "cuda")},
        {"key": CellKey("vit", "vmvx")},
        {"metric": "executable_bytes"},
        {"kind": "limit"},
        {"head": None},
    ):
        assert status(replace(GROWTH, **changes), acceptance(GROWTH)) == "fail"
    assert (
        status(BROKEN, acceptance(GROWTH))
        == status(GROWTH, acceptance(BROKEN))
        == "fail"
    )
    assert status(BROKEN, acceptance(BROKEN)) == "warn"
    assert status(replace(BROKEN, limit="removed"), acceptance(BROKEN)) == "fail"


def test_accepting_a_cell_over_a_limit_accepts_neither_a_crash_nor_a_larger_figure() -> (
    None
):
    for later in (
        replace(OVER, head=None, outcomes=("ok", "failed: compile, SIGSEGV")),
        replace(OVER, head=None, outcomes=ENDED),
        replace(OVER, head=73_729),
        replace(OVER, head=None),
        replace(OVER, outcomes=ENDED),
        replace(OVER, outcomes=None),
    ):
        assert status(later, acceptance(OVER)) == "fail"
        assert status(OVER, acceptance(later)) == (
            "warn" if later.head == 73_729 else "fail"
        )
    smaller = replace(
        OVER, head=40_000, base=1, outcomes=("absent", "over-stack-limit: stack-limit")
    )
    assert status(smaller, acceptance(OVER)) == "warn"


@pytest.mark.parametrize("stage", ["compile", "output"])
def test_accepting_one_reason_of_a_failure_does_not_accept_another(stage: str) -> None:
    findings = [
        replace(
            BROKEN, outcomes=("ok", f"failed: {stage}"), failure=Failure(stage, message)
        )
        for message in (
            "the model has no public function",
            "the model names its own devices",
        )
    ]
    assert [status(findings[0], acceptance(finding)) for finding in findings] == [
        "warn",
        "fail",
    ]


# What a comment remembers.

MARKER = "<!-- code-size-bot:default -->"
SEEN = Seen(
    model="bert",
    target="vmvx",
    metric="artifact_bytes",
    kind="change",
    value=10_000,
    limit="",
)
GIVEN = Acceptance("octo --> cat", 3, (SEEN, SEEN))
STATE = CommentState(True, (SEEN,), GIVEN)

ints = st.integers(-(1 << 53), 1 << 53)
text = st.text(max_size=12)
seens = st.builds(Seen, text, text, text, text, st.none() | ints, text)
some_seen = st.lists(seens, max_size=3).map(tuple)
given_or_not = st.none() | st.builds(Acceptance, text, ints, some_seen)
states = st.builds(CommentState, st.booleans(), some_seen, given_or_not)


def comment(line: str, marker: str = MARKER) -> str:
    return f"{marker}\n{line}\n✅ **Code size: pass** — fine.\n"


def packed(data: bytes) -> str:
    return f"<!-- code-size-bot-state:1:{base64.b64encode(data).decode()} -->"


def line_of(plain: Any) -> str:
    return packed(zlib.compress(json.dumps(plain).encode()))


@given(states)
def test_it_comes_back_as_it_was_and_nothing_in_it_ends_the_html_comment(
    state: CommentState,
) -> None:
    line = encode(state)
    assert decode(comment(line)) == decode(comment(line).replace("\n", "\r\n")) == state
    assert (
        len(line) <= LINE_LIMIT
        and line.isascii()
        and line.isprintable()
        and line == encode(replace(state))
    )
    inside = line.removeprefix("<!-- ").removesuffix(" -->")
    assert "--" not in inside and ">" not in inside and "<" not in inside


def many(count: int, noise: int = 0) -> tuple[Seen, ...]:
    """As many different ones, sorted; with words that do not compress."""

    def odd(*numbers: int) -> str:
        return "".join(
            format(zlib.crc32(f"{numbers}.{part}".encode()), "08x") for part in range(4)
        )

    rows = (
        Seen(
            model=f"model_{i}_{odd(i)}",
            target="vmvx",
            metric="artifact_bytes",
            kind=odd(noise, i),
            value=i * i,
            limit=odd(noise),
        )
        for i in range(count)
    )
    return tuple(sorted(rows, key=lambda row: row.model))


def test_what_is_too_long_is_forgotten_findings_first_and_then_the_acceptance() -> None:
    for findings in ((SEEN,), many(2_000)):
        state = replace(STATE, findings=findings)
        assert decode(comment(encode(state))) == replace(
            state, findings=() if len(findings) > 1 else findings
        )
        state = replace(state, acceptance=replace(GIVEN, seen=many(2_000, 1)))
        assert decode(comment(encode(state))) == replace(
            state, findings=(), acceptance=None
        )
    huge = CommentState(
        True, (replace(SEEN, model="".join(map(chr, range(0x4E00, 0x9000)))),)
    )
    assert decode(comment(encode(huge))) == replace(huge, findings=())


ROW = ["m", "t", "", "state", None, "new"]
PLAIN = [True, [ROW], ["who", 3, [ROW]]]


def changed(index: int, value: Any) -> list[Any]:
    return [value if position == index else old for position, old in enumerate(PLAIN)]


def test_the_plain_form_is_read() -> None:
    seen_findings = (
        Seen(model="m", target="t", metric="", kind="state", value=None, limit="new"),
    )
    accepted = Acceptance("who", 3, seen_findings)
    assert decode(comment(line_of(PLAIN))) == CommentState(
        True, seen_findings, accepted
    )
    by_command = changed(2, ["who", 3, [ROW], "as discussed"])
    assert decode(comment(line_of(by_command))) == CommentState(
        True, seen_findings, replace(accepted, reason="as discussed")
    )


@pytest.mark.parametrize(
    "plain",
    [
        *(None, [*PLAIN, 1], changed(0, 5), changed(2, ["who", 1 << 54, [ROW]])),
        *(
            changed(1, [row])
            for row in (7, ["m", "t", "", "state", True, "new"], [*ROW, 1])
        ),
        *(
            changed(2, value)
            for value in (["who", 3, [7]], [], [["who", "why", 3, [ROW]]])
        ),
    ],
)
def test_other_forms_are_not_read(plain: Any) -> None:
    assert decode(comment(line_of(plain))) is None


@pytest.mark.parametrize(
    "body",
    [
        *("", MARKER, encode(STATE), comment("hello")),
        f"{MARKER}\n\n{encode(STATE)}",
        f"{MARKER} {encode(STATE)}",
        comment(encode(STATE), "somebody's words"),
        comment(f"x{encode(STATE)}"),
        comment(encode(STATE).replace(":1:", ":2:")),
        comment(encode(STATE)[:-12] + " -->"),
        *(
            comment(f"<!-- code-size-bot-state:1:{data} -->")
            for data in ("AAAA", "A", "A" * 20_000)
        ),
        comment(packed(zlib.compress(b'["' + b"a" * (1 << 21) + b'"]', 9))),
        comment(packed(zlib.compress(b"[" * 200_000, 9))),
        comment(packed(zlib.compress(b"[" + b"1" * 10_000 + b"]", 9))),
        comment(packed(zlib.compress(json.dumps(PLAIN).encode()) + b"more")),
    ],
)
def test_only_the_second_line_of_a_comment_of_ours_is_read(body: str) -> None:
    assert decode(body) is None


@given(st.binary(max_size=60), st.text())
def test_any_bytes_and_any_text_are_survived(data: bytes, body: str) -> None:
    decode(comment(packed(data)))
    decode(comment(packed(zlib.compress(data))))
    assert decode(body) is None


# Quiet by default.

CALM = CommentState()
ALARMED = CommentState(True)
MODELS = ("bert", "vit")
TARGETS = {"vmvx": "vmvx", "llvm-cpu-x86_64": "llvm-cpu"}


def side(edit: Callable[[Cell], Cell | None] = lambda cell: cell) -> Snapshot:
    return make.snapshot(
        "3.13.0", lambda key, cell: edit(cell) if key == CELL else cell, MODELS, TARGETS
    )


def refused(cell: Cell) -> Cell:
    return make.failed(cell, "error: no")


def over(cell: Cell) -> Cell:
    return make.over(cell, 40_000)


def lost(_cell: Cell) -> None:
    return None


def late(cell: Cell) -> Cell:
    return replace(cell, status="timeout")


def shaky(cell: Cell) -> Cell:
    return replace(
        make.grown(cell, artifact_bytes=8), others=(CompileOutcome("ok", {}, "e" * 64),)
    )


def grown(by: int) -> Snapshot:
    return side(lambda cell: make.grown(cell, artifact_bytes=by))


def quiet(report: Report) -> bool:
    return not wants_comment(report, None, always=False)


MORE = make.snapshot("3.13.0", models=(*MODELS, "whisper"), targets=TARGETS)
INLINE = make.unsupported(side())
OTHER_BYTES = side(lambda cell: replace(shaky(cell), artifact_digest="f" * 64))


def test_nothing_new_is_quiet() -> None:
    same_sides = [
        (snapshot, snapshot)
        for snapshot in (side(), side(refused), side(over), side(lost), INLINE)
    ]
    for base, head in (*same_sides, (side(shaky), OTHER_BYTES)):
        assert quiet(make.report(base, head))
    for snapshot in (side(late), side(lost)):
        report = make.report(snapshot, snapshot)
        verdict = judge(report.deltas, [])
        assert verdict.status == "warn" and quiet(replace(report, verdict=verdict)), (
            "it ended alike on both sides"
        )


@pytest.mark.parametrize(
    ("base", "head"),
    [
        *(
            (side(), head)
            for head in (
                grown(1),
                grown(-1),
                side(refused),
                side(over),
                side(lost),
                side(late),
            )
        ),
        *((side(), head) for head in (side(shaky), MORE, INLINE)),
        *((base, side()) for base in (side(refused), side(lost), MORE)),
        (side(refused), side(over)),
    ],
)
def test_a_cell_with_news_is_reported(base: Snapshot, head: Snapshot) -> None:
    # with one compiler it would be noise
    head = replace(head, compiler=replace(head.compiler, digest="f" * 64))
    assert not quiet(replace(make.report(base, head), verdict=Verdict("pass")))


def test_a_standing_limit_alone_is_no_news_and_any_other_finding_is() -> None:
    report = make.usual()
    assert (
        report.verdict.findings
        and all(map(is_standing, report.verdict.findings))
        and quiet(report)
    )
    first, *other_findings = report.verdict.findings
    ended = replace(
        first, kind="state", outcomes=("failed: compile", "failed: compile, SIGSEGV")
    )
    first = replace(first, known=False)
    for finding in (first, replace(first, kind="state"), replace(ended, known=False)):
        assert not quiet(
            replace(report, verdict=Verdict("warn", (finding, *other_findings)))
        )


def test_what_broke_is_reported_and_a_comment_that_is_there_is_updated() -> None:
    calm = make.report(side(), side())
    unknown = replace(calm, verdict=Verdict("unknown"))
    assert not quiet(unknown) and not resolves(unknown, ALARMED)
    assert not quiet(replace(calm, broke="a shard was lost"))
    assert not quiet(replace(calm, notes=("model vit could not be read",)))
    noted = replace(calm.head, notes=("a shard is lost",))
    assert not quiet(replace(calm, head=noted)) and quiet(
        replace(calm, head=noted, base=noted)
    )
    assert wants_comment(calm, CALM, always=False) and wants_comment(
        calm, None, always=True
    )


def test_an_alarm_is_resolved_by_a_pass_alone() -> None:
    calm = make.report(side(), side())
    alarm = make.report(side(), side(refused))
    accepted = Acceptance("octocat", 1, seen(alarm.verdict.findings))
    assert resolves(calm, ALARMED)
    assert not resolves(calm, CALM) and not resolves(calm, None)
    for still in (
        replace(alarm, verdict=accept(alarm.verdict, accepted)),
        replace(calm, broke="a shard"),
        alarm,
    ):
        assert not resolves(still, ALARMED)
