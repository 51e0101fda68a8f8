"""bot.core.after_merge: what the issue about main remembers, and which findings a person has closed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.acceptance import Acceptance, Seen
from bot.core.after_merge import (
    IssueState,
    MergedPull,
    decode_issue,
    encode_issue,
    is_same_break,
    issue_marker,
)
from bot.core.hidden_state import LINE_LIMIT

GOOD = "a" * 40
FIRST = "b" * 40
NEWEST = "c" * 40
FOUND = Seen(
    model="bert", target="vmvx", metric="artifact_bytes", kind="change", value=2_000
)
STATE = IssueState(
    good_sha=GOOD,
    first_sha=FIRST,
    newest_sha=NEWEST,
    findings=(FOUND,),
    pulls=(MergedPull(7, "-->\n`x`"),),
    unasked=3,
    acceptance=Acceptance("alice", 9, (FOUND,)),
)
MARKER = issue_marker("default")


def body(state: IssueState) -> str:
    return f"{MARKER}\n{encode_issue(state)}\nwords\n"


def test_what_is_remembered_is_found_again_also_with_other_line_ends() -> None:
    assert decode_issue(body(STATE), MARKER) == STATE
    assert decode_issue(body(STATE).replace("\n", "\r\n"), MARKER) == STATE
    assert encode_issue(STATE).count("-->") == 1


@pytest.mark.parametrize(
    "text", ["", MARKER, f"{MARKER}\nwords", f"words\n{body(STATE)}", body(STATE)[:90]]
)
def test_anything_else_is_no_state(text: str) -> None:
    assert decode_issue(text, MARKER) is None
    assert decode_issue(body(STATE), issue_marker("small")) is None


@given(st.integers(0, 400), st.integers(0, 20))
def test_a_line_is_never_too_long_and_counts_the_pull_requests_that_it_forgets(
    findings: int, pulls: int
) -> None:
    many = tuple(replace(FOUND, model=f"{number:x}" * 60) for number in range(findings))
    merged = tuple(MergedPull(number, f"{number}€" * 60) for number in range(pulls))
    state = replace(STATE, findings=many, pulls=merged)
    line = encode_issue(state)
    decoded = decode_issue(f"{MARKER}\n{line}\n", MARKER)
    assert len(line) <= LINE_LIMIT and decoded is not None
    assert (decoded.good_sha, decoded.first_sha, decoded.newest_sha) == (
        GOOD,
        FIRST,
        NEWEST,
    )
    assert (
        decoded.findings in (many, ())
        and len(decoded.pulls) + decoded.unasked == pulls + state.unasked
    )


def test_the_same_findings_of_the_same_merges_are_no_news_and_larger_or_later_ones_are() -> (
    None
):
    smaller = replace(FOUND, value=1_999)
    larger = replace(FOUND, value=2_001)
    assert is_same_break(STATE, [FOUND], [FIRST]) and is_same_break(
        STATE, [smaller], [NEWEST, FIRST]
    )
    assert not is_same_break(STATE, [larger], [FIRST])
    assert not is_same_break(STATE, [FOUND, replace(FOUND, model="vit")], [FIRST])
    assert not is_same_break(STATE, [FOUND], [NEWEST]), "main was repaired in between"
