"""bot.github.after_merge: a push that exceeds main's thresholds gets a check, and one issue if that is configured."""

from __future__ import annotations

import re
from typing import Any

import pytest
from action_stage import Stage
from github_runner import git
from harmless import assert_harmless
from main_pushes import GROWN, LARGEST, A, jobs, merge, push_without_growth, started
from msgspec import UNSET
from replacing import replace

from bot.core.acceptance import Acceptance
from bot.core.comment_state import decode, encode
from bot.github import merged_pulls

pytestmark = pytest.mark.slow

MARKER = "<!-- code-size-bot-after-merge:default -->"
BOT = "github-actions[bot]"
READER = {"contents": "read", "pull_requests": "read", "checks": "write"}


def issue_of(stage: Stage) -> dict[str, Any]:
    (issue,) = stage.hub.issues
    assert issue["body"].startswith(f"{MARKER}\n<!-- code-size-bot-state:1:")
    return issue


def shown(body: str) -> str:
    """What a reader sees of an issue."""
    return re.sub(r"<!--.*?-->", "", body)


def writes(stage: Stage) -> list[str]:
    below = "/repos/octo/repo"
    return [
        f"{exchange['method']} {exchange['path'].removeprefix(below)}"
        for exchange in stage.hub.traffic
        if exchange["method"] != "GET"
    ]


def test_a_push_that_breaks_the_thresholds_gets_a_failing_check_and_no_issue_unless_configured(
    stage: Stage,
) -> None:
    started(stage, after_merge=None)
    sha = merge(stage, GROWN, number=7)
    ran = jobs(stage, sha)
    assert ran.code == 0 and ran.outputs["verdict"] == "fail", ran.error
    (check,) = stage.hub.check_runs
    assert (check["name"], check["head_sha"], check["conclusion"]) == (
        "code size after merge (main)",
        sha,
        "failure",
    )
    assert (
        "1 of 1 build fails the check" in check["output"]["title"]
        and check["annotations"]
    )
    assert "code-size-approved" not in check["output"]["summary"], (
        "nobody can accept after the merge"
    )
    assert stage.hub.issues == [] and writes(stage) == ["POST /check-runs"]
    assert not ran.summary, "the job that stores has the summary"


def test_the_issue_names_builds_causes_and_merged_pull_requests_and_closes_itself(
    stage: Stage,
) -> None:
    main = started(stage)
    first = merge(stage, GROWN, number=7, title="Unroll everything")
    ran = jobs(stage, first)
    issue = issue_of(stage)
    assert ran.code == 0 and issue["state"] == "open", ran.error
    assert issue["title"] == "Code size of main: 1 build fails the thresholds"
    body = shown(issue["body"])
    assert (
        f"The push of [`{first[:10]}`]" in body
        and f"last good baseline is that of [`{main[:10]}`]" in body
    )
    assert (
        "Fails the check" in body
        and "| ❌ `a` on `vmvx`: code size<br>mainly cause 1 (100 %) |" in body
    )
    assert (
        "Model `a` was edited" in body.replace("**", "")
        and "](<https://github.example/octo/repo/pull/7>)" in body
    )
    assert "`Unroll everything`" in body and f"issue: {issue['html_url']}" in ran.said
    # Nothing of the next push grows, but main is still worse than the last good
    # baseline.
    neutral = push_without_growth(stage)
    ran = jobs(stage, neutral)
    assert (
        ran.outputs["verdict"] == "pass"
        and stage.hub.check_runs[-1]["conclusion"] == "success"
    )
    updated = issue_of(stage)
    assert updated["state"] == "open" and "`Unroll everything`" in updated["body"], (
        "it is not forgotten"
    )
    assert f"The numbers are those of [`{neutral[:10]}`]" in updated["body"]
    worse = merge(stage, LARGEST, number=8, title="Unroll more")
    jobs(stage, worse)
    assert (
        "`Unroll more`" in issue_of(stage)["body"]
        and "`Unroll everything`" in issue_of(stage)["body"]
    )
    repaired = merge(stage, A, number=9, title="Revert")
    ran = jobs(stage, repaired)
    closed = issue_of(stage)
    assert (closed["state"], closed["state_reason"]) == (
        "closed",
        "completed",
    ), ran.said
    assert closed["title"] == "Code size of main: within the thresholds again"
    assert f"**Resolved:** [`{repaired[:10]}`]" in closed["body"]
    # A new regression opens a new issue, which begins from the repaired state.
    again = merge(stage, GROWN, number=10)
    jobs(stage, again)
    assert [issue["state"] for issue in stage.hub.issues] == ["closed", "open"]
    assert (
        f"last good baseline is that of [`{repaired[:10]}`]"
        in stage.hub.issues[1]["body"]
    )


def test_a_commit_that_takes_the_change_back_closes_the_issue_although_nothing_is_measured(
    stage: Stage,
) -> None:
    started(stage)
    jobs(stage, merge(stage, GROWN))
    entries = len(stage.store.entries())
    back = merge(stage, A)
    ran = jobs(stage, back)
    assert issue_of(stage)["state"] == "closed", ran.said
    assert len(stage.store.entries()) == entries + 1, (
        "the next push is compared with this commit"
    )
    assert {entry.sha for entry in stage.store.entries()} >= {back}
    assert jobs(stage, merge(stage, GROWN)).outputs["verdict"] == "fail"
    assert len(stage.hub.issues) == 2


def test_an_issue_that_a_person_closed_is_not_opened_again_for_the_same_findings(
    stage: Stage,
) -> None:
    started(stage)
    sha = merge(stage, GROWN)
    jobs(stage, sha)
    stage.hub.set_issue(issue_of(stage)["number"], state="closed")
    before = issue_of(stage)
    ran = jobs(stage, sha)
    assert issue_of(stage) == before and "a person closed #" in ran.said
    neutral = push_without_growth(stage)
    jobs(stage, neutral)
    assert issue_of(stage) == before
    jobs(stage, merge(stage, LARGEST))
    assert [issue["state"] for issue in stage.hub.issues] == [
        "closed",
        "open",
    ], "that is a new regression"


def test_a_run_again_and_an_older_run_change_nothing(stage: Stage) -> None:
    started(stage)
    first = merge(stage, GROWN)
    jobs(stage, first)
    second = merge(stage, LARGEST)
    jobs(stage, second)
    before = issue_of(stage)
    start = len(writes(stage))
    assert f"is about the newer commit {second[:10]}" in jobs(stage, first).said
    assert "up to date" in jobs(stage, second).said
    assert issue_of(stage) == before
    assert writes(stage)[start:] == ["POST /check-runs"] * 2


def test_a_run_again_of_what_was_repaired_since_opens_no_issue(stage: Stage) -> None:
    started(stage)
    pushes = [merge(stage, GROWN)]
    jobs(stage, pushes[0])
    pushes.append(merge(stage, LARGEST))
    jobs(stage, pushes[1])
    jobs(stage, merge(stage, A))
    before = issue_of(stage)
    assert before["state"] == "closed"
    for sha in pushes:
        ran = jobs(stage, sha)
        assert (
            ran.outputs["verdict"] == "fail"
            and "is about this commit or a newer one" in ran.said
        )
    assert issue_of(stage) == before


def test_a_push_of_dependabot_writes_nothing(stage: Stage) -> None:
    started(stage)
    stage.environ["GITHUB_ACTOR"] = "dependabot[bot]"
    ran = jobs(stage, merge(stage, GROWN))
    assert (
        ran.code == 0
        and "because Dependabot started it" in ran.said
        and writes(stage) == []
    )


def test_only_own_issues_with_the_marker_count_over_all_pages(stage: Stage) -> None:
    started(stage)
    forged = f"{MARKER}\nforged"
    stage.hub.add_issue("mallory", "Code size of main", forged)
    quoting_issue = stage.hub.add_issue(BOT, "Code size of main", f"Quoted:\n{MARKER}")
    jobs(stage, merge(stage, GROWN))
    first = max(issue["number"] for issue in stage.hub.issues)
    for number in range(120):
        stage.hub.add_issue(BOT, f"Another issue {number}", "of another workflow")
    jobs(stage, merge(stage, A))
    by_number = {issue["number"]: issue for issue in stage.hub.issues}
    assert by_number[first]["state"] == "closed" and len(by_number) == 123
    assert by_number[quoting_issue]["state"] == "open" and by_number[quoting_issue][
        "body"
    ].startswith("Quoted")


def test_without_the_permission_one_line_says_so_and_the_check_stays(
    stage: Stage,
) -> None:
    started(stage)
    stage.token = stage.hub.token(permissions=READER)
    ran = jobs(stage, merge(stage, GROWN))
    assert ran.code == 0 and ran.error == "" and ran.outputs["verdict"] == "fail"
    (line,) = [line for line in ran.news.said if "issue about" in line]
    assert (
        line.startswith("cannot write the issue about the main branch: 403")
        and "issues: write" in line
    )
    assert [check["conclusion"] for check in stage.hub.check_runs] == [
        "failure"
    ] and stage.hub.issues == []
    stage.token = stage.hub.token()
    stage.hub.turn_issues_off()
    ran = jobs(stage, merge(stage, LARGEST))
    assert (
        ran.code == 0
        and "issues are turned off (turn issues on in the settings" in ran.said
    )


def test_a_refused_check_is_an_error_after_the_issue_was_written(stage: Stage) -> None:
    started(stage)
    stage.token = stage.hub.token(
        permissions={"contents": "read", "pull_requests": "read", "issues": "write"}
    )
    ran = jobs(stage, merge(stage, GROWN))
    assert (
        ran.code == 3
        and "checks: write" in ran.error
        and issue_of(stage)["state"] == "open"
    )


def test_what_was_accepted_on_the_merged_pull_request_fails_nothing(
    stage: Stage,
) -> None:
    started(stage)
    head, merge_sha = stage.open_pull({"models/a.mlir": GROWN})
    assert stage.pull(head, merge_sha).report.verdict.status == "fail"
    stage.hub.add_label(1, "code-size-approved", by="alice")
    sha = stage.origin.push_main("Merge 1", {"models/a.mlir": GROWN})
    stage.hub.merge_pull(1, sha, [git(stage.origin.bare, "rev-parse", f"{sha}^")])
    ran = jobs(stage, sha)
    assert ran.outputs["verdict"] == "warn" and stage.hub.issues == [], ran.said
    check = stage.hub.check_runs[-1]
    assert (
        check["conclusion"] == "neutral"
        and "Accepted by `alice`" in check["output"]["summary"]
    )
    jobs(stage, merge(stage, LARGEST))
    assert issue_of(stage)["state"] == "open", (
        "more than what was accepted is a regression"
    )


def test_what_a_command_accepted_fails_nothing_and_its_reason_stays(
    stage: Stage,
) -> None:
    started(stage)
    head, merge_sha = stage.open_pull({"models/a.mlir": GROWN})
    assert stage.pull(head, merge_sha).report.verdict.status == "fail"
    (comment,) = stage.hub.comments(1)
    command = stage.hub.add_comment(1, "alice", "/code-size accept as planned")
    state = decode(comment["body"])
    assert state is not None
    accepted = replace(
        state, acceptance=Acceptance("alice", command, state.findings, "as planned")
    )
    lines = comment["body"].split("\n")
    stage.hub.edit_comment(
        comment["id"], "\n".join([lines[0], encode(accepted), *lines[2:]])
    )
    sha = stage.origin.push_main("Merge 1", {"models/a.mlir": GROWN})
    stage.hub.merge_pull(1, sha, [git(stage.origin.bare, "rev-parse", f"{sha}^")])
    ran = jobs(stage, sha)
    assert ran.outputs["verdict"] == "warn" and stage.hub.issues == [], ran.said
    check = stage.hub.check_runs[-1]
    assert (
        "Accepted by `alice`" in check["output"]["summary"]
        and "as planned" in check["output"]["summary"]
    )


HOSTILE_TITLES = (
    "@everyone fixes #1 <img src=x onerror=alert(1)> **bold** [x](javascript:alert(1))",
    "` | --> <!-- code-size-bot-after-merge:default --> ```\n# Heading",
    "\x1b[31mred\u202e" + "long " * 100,
)


def test_hostile_titles_are_only_text(stage: Stage) -> None:
    started(stage)
    texts = (f"{A}// first\n", f"{A}// second\n", GROWN)
    shas = [
        merge(stage, text, number=7 + place, title=HOSTILE_TITLES[place])
        for place, text in enumerate(texts)
    ]
    jobs(stage, shas[-1])
    body = issue_of(stage)["body"]
    head, state, visible = body.split("\n", 2)
    assert (head, state.count("-->")) == (MARKER, 1) and "<!--" not in visible
    assert all(f"/pull/{number}>" in visible for number in (7, 8, 9))
    assert_harmless(re.sub(r"\[[^\]]*\]\(<[^>]*>\)", "", visible))


def test_only_so_many_commits_are_asked_and_the_others_are_counted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(stage)
    monkeypatch.setattr(merged_pulls, "MOST_COMMITS", 2)
    shas = [merge(stage, GROWN, number=11, title="Number 11")]
    shas += [
        stage.origin.push_main(f"Notes {number}", {"notes.txt": str(number)})
        for number in range(3)
    ]
    for sha in shas:
        stage.hub.add_commit(sha, [])
    start = len(stage.hub.traffic)
    jobs(stage, shas[-1])
    paths = [
        exchange["path"]
        for exchange in stage.hub.traffic[start:]
        if exchange["path"].endswith("/pulls")
    ]
    assert len(paths) == 2 * 2 and shas[-1] in paths[0], (
        "two in each of the jobs that store and report"
    )
    body = shown(issue_of(stage)["body"])
    assert (
        "It did not ask for 2 older commits." in body
        and "GitHub knows no merged pull request" in body
    )
    assert "Number 11" not in body


def test_a_good_push_asks_for_nothing_but_open_issues(stage: Stage) -> None:
    started(stage)
    start = len(stage.hub.traffic)
    neutral = push_without_growth(stage)
    jobs(stage, neutral)
    requests = [
        f"{exchange['method']} {exchange['path']}"
        for exchange in stage.hub.traffic[start:]
    ]
    assert requests == [
        "POST /repos/octo/repo/check-runs",
        "GET /user",
        "GET /repos/octo/repo/issues",
    ]


def test_two_runs_that_create_at_the_same_time_leave_one_open_issue(
    stage: Stage,
) -> None:
    started(stage)
    body = f"{MARKER}\n<!-- another run -->\n"
    stage.hub.before(
        "POST",
        "/issues$",
        lambda: stage.hub.add_issue(BOT, "Code size of main", body),
    )
    ran = jobs(stage, merge(stage, GROWN))
    assert [issue["state"] for issue in stage.hub.issues] == [
        "open",
        "closed",
    ] and ran.code == 0, ran.error


def test_a_lost_answer_creates_no_second_issue(stage: Stage) -> None:
    started(stage)
    stage.hub.fail_next("POST", "/issues$", 502, served=True)
    assert jobs(stage, merge(stage, GROWN)).code == 0
    assert issue_of(stage)["state"] == "open"


def test_a_baseline_that_is_not_stored_any_more_leaves_the_issue_as_it_is(
    stage: Stage,
) -> None:
    main = started(stage)
    jobs(stage, merge(stage, GROWN))
    before = issue_of(stage)
    next((stage.home / "store").rglob(f"{main}*")).unlink()
    ran = jobs(stage, push_without_growth(stage))
    assert (
        ran.code == 0
        and f"the baseline of {main[:10]} is not stored any more" in ran.said
    )
    assert issue_of(stage) == before


def test_a_second_configuration_has_its_own_check_and_issue(stage: Stage) -> None:
    started(stage, report_id="small")
    jobs(stage, merge(stage, GROWN))
    assert [check["name"] for check in stage.hub.check_runs] == [
        "code size small after merge (main)"
    ]
    (issue,) = stage.hub.issues
    assert issue["title"] == "Code size small of main: 1 build fails the thresholds"
    assert issue["body"].startswith("<!-- code-size-bot-after-merge:small -->\n")


def test_a_revert_has_no_acceptance_of_the_baseline_that_it_takes_back(
    stage: Stage,
) -> None:
    main = started(stage)
    head, merge_sha = stage.open_pull({"models/a.mlir": GROWN})
    stage.pull(head, merge_sha)
    stage.hub.add_label(1, "code-size-approved", by="alice")
    grown = stage.origin.push_main("Merge 1", {"models/a.mlir": GROWN})
    stage.hub.merge_pull(1, grown, [git(stage.origin.bare, "rev-parse", f"{grown}^")])
    jobs(stage, grown)
    larger = merge(stage, LARGEST)
    jobs(stage, larger)
    taken_back = merge(stage, GROWN)
    jobs(stage, taken_back)
    accepted = {}
    for entry in stage.store.entries():
        snapshot = stage.store.load(entry)
        accepted[entry.sha] = snapshot.accepted is not UNSET
    assert accepted == {main: False, grown: True, larger: False, taken_back: False}
