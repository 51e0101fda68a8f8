"""bot.config.events: payloads as GitHub sends them become the one value from which everything else follows."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from github_runner import queue_event
from hypothesis import example, given
from hypothesis import strategies as st
from places import FIXTURES
from replacing import replace

from bot.config.events import read_event, run_context
from bot.core.asked import Comment
from bot.core.context import Pull, Queue, RunContext, Story, WorkflowRun
from bot.errors import InputError

FOLDER = FIXTURES / "events"
HELLO = "Codertocat/Hello-World"
OCTO = "octo-org/octo-repo"
MERGE_SHA = "0" * 39 + "1"
HEAD_SHA = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"

Payload = dict[str, Any]
Edit = Callable[[Payload], object]


def load(name: str) -> Payload:
    payload: Payload = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return payload


def environ(event: str, repository: str = HELLO, **variables: str) -> dict[str, str]:
    """The variables as a runner sets them."""
    return {
        "GITHUB_EVENT_NAME": event,
        "GITHUB_REPOSITORY": repository,
        "GITHUB_SHA": MERGE_SHA,
        "GITHUB_REF": "refs/pull/2/merge",
        "GITHUB_RUN_ID": "1658821493",
        "GITHUB_API_URL": "https://ghe.example/api/v3",
        "GITHUB_SERVER_URL": "https://ghe.example/",
        "GITHUB_ACTOR": "Codertocat",
        "GITHUB_BASE_REF": "master",
        **variables,
    }


def context(name: str, edit: Edit | None = None, **variables: str) -> RunContext:
    """The context of a fixture, edited in place first; its event is the first part of its name."""
    payload = load(name)
    if edit:
        edit(payload)
    return run_context(environ(name.partition(".")[0], **variables), payload)


def common(event: str, repository: str = HELLO) -> RunContext:
    """What every run in `environ` has."""
    return RunContext(
        *(
            "nothing",
            "",
            event,
            repository,
            "https://ghe.example/api/v3",
            "https://ghe.example",
            1658821493,
        ),
        *(MERGE_SHA, "refs/pull/2/merge", "master", "Codertocat"),
    )


PULL = Pull(number=2, head_sha=HEAD_SHA, base_ref="master", head_repository=HELLO)
LABEL = "with another label than code-size-approved"
CASES: dict[str, tuple[Story, str]] = {
    **{
        f"pull_request.{action}": ("review", f"pull request {action}")
        for action in ("opened", "synchronize", "reopened", "ready_for_review")
    },
    **{
        f"pull_request.{action}": ("nothing", f"pull request {action}, {LABEL}")
        for action in ("labeled", "unlabeled")
    },
    **{
        f"pull_request.{action}": (
            "nothing",
            f"the bot does nothing on a pull request that was {action}",
        )
        for action in ("closed", "assigned")
    },
    "issue_comment.created": (
        "nothing",
        "the comment is on an issue, not on a pull request",
    ),
    **{
        f"issue_comment.{action}": (
            "nothing",
            f"the bot does nothing on a comment that was {action}",
        )
        for action in ("deleted", "edited")
    },
    "push.branch": ("baseline", "push to the default branch"),
    "push.tag": ("nothing", "a push to another ref than the default branch"),
    "push.tag_deleted": ("nothing", "a push to another ref than the default branch"),
    **dict.fromkeys(
        ("workflow_dispatch.main", "workflow_dispatch.master"),
        ("review", "started manually"),
    ),
    "workflow_run.completed": (
        "nothing",
        "the finished run has the event repository_dispatch, not pull_request",
    ),
    "workflow_run.completed_no_conclusion": (
        *(
            "nothing",
            "the finished run has the event workflow_dispatch, not pull_request",
        ),
    ),
    "workflow_run.requested": ("nothing", "the run is requested, not completed"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_payload_as_github_sends_it(name: str) -> None:
    story, reason = CASES[name]
    repository = OCTO if name.startswith("workflow_dispatch") else HELLO
    branch = (
        "main"
        if name in ("workflow_dispatch.main", "workflow_run.completed_no_conclusion")
        else "master"
    )
    pull = PULL if name.startswith("pull_request") else None
    expected = common(name.partition(".")[0], repository)
    expected = replace(
        expected, story=story, why=reason, default_branch=branch, pull=pull
    )
    assert context(name, repository=repository) == expected


def test_every_case_has_its_payload() -> None:
    assert set(CASES) == {path.stem for path in FOLDER.glob("*.json")}
    assert (
        context("push.branch").run_url
        == f"https://ghe.example/{HELLO}/actions/runs/1658821493"
    )
    rows = [
        line
        for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
        if ".json` | `" in line
    ]
    assert {row.split("`")[1] for row in rows} == {f"{name}.json" for name in CASES}


# --- issue_comment ----


COMMENT = Comment(
    id=492700400,
    author="Codertocat",
    pull_number=1,
    line="/code-size rerun",
    written_at="2019-05-15T15:20:21Z",
)


def commented(body: str, edit: Edit = lambda _: None) -> RunContext:
    """The context of a comment on a pull request."""

    def on_pull_request(payload: Payload) -> None:
        payload["issue"]["pull_request"] = {
            "url": "https://api.github.com/repos/Codertocat/Hello-World/pulls/1"
        }
        payload["comment"]["body"] = body
        edit(payload)

    return context("issue_comment.created", on_pull_request)


@pytest.mark.parametrize(
    "body",
    ["/code-size rerun", "/code-size rerun\r\nPlease.", "/code-size rerun\n\n> quoted"],
)
def test_the_first_line_of_a_comment_is_a_command(body: str) -> None:
    run = commented(body)
    assert (run.story, run.comment, run.pull, run.asked) == (
        "command",
        COMMENT,
        None,
        None,
    )


@pytest.mark.parametrize(
    "body",
    [
        "/code-size",
        "/Code-Size\thelp",
        "/code-size\u00a0help",
        "/code-size " + "x" * 65_000,
    ],
)
def test_any_text_behind_the_prefix_goes_to_the_gate(body: str) -> None:
    run = commented(body)
    assert run.story == "command" and run.comment and run.comment.line == body


@pytest.mark.parametrize(
    "body",
    [
        *(
            "",
            "\n/code-size rerun",
            " /code-size rerun",
            "    /code-size rerun",
            "> /code-size rerun",
        ),
        *(
            "```\n/code-size rerun\n```",
            "`/code-size rerun`",
            "Try /code-size rerun",
            "- /code-size rerun",
        ),
        *(
            "/code-sizes",
            "/code-size-approved",
            "/code-size/rerun",
            "/code-size.rerun",
            "<!-- /code-size rerun -->",
        ),
    ],
)
def test_a_quote_a_code_block_and_words_before_it_are_no_command(body: str) -> None:
    run = commented(body)
    assert (run.story, run.comment) == (
        "nothing",
        None,
    ) and "does not begin with /code-size" in run.why


def test_a_comment_whose_account_is_gone_has_no_author() -> None:
    run = commented(
        "/code-size rerun", lambda payload: payload["comment"].update(user=None)
    )
    assert run.comment and run.comment.author == ""


# --- pull_request ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["labeled", "unlabeled"])
def test_the_approval_label(action: str) -> None:
    names = {
        "code-size-approved": "review",
        "Code-Size-Approved-small": "review",
        "code-size-approvednot": "nothing",
        "not-code-size-approved": "nothing",
    }
    for name, story in names.items():
        payload = replaced(load(f"pull_request.{action}"), ("label", "name"), name)
        assert run_context(environ("pull_request"), payload).story == story


# --- merge_group ----------------------------------------------------------------------------------------------------


def queued(**changes: object) -> RunContext:
    payload = queue_event(MERGE_SHA, HEAD_SHA, 7)
    payload["merge_group"].update(changes)
    return run_context(environ("merge_group"), payload)


def test_a_merge_queue_is_reviewed_against_its_base() -> None:
    context = queued()
    ref = f"refs/heads/gh-readonly-queue/main/pr-7-{HEAD_SHA}"
    assert context.queue == Queue(base_sha=HEAD_SHA, base_ref="main", head_ref=ref)
    assert (context.story, context.why) == ("review", "merge queue of main")
    assert context.is_proposal and context.pull is None and not context.read_only
    payload = queue_event(MERGE_SHA, HEAD_SHA, 7) | {"action": "destroyed"}
    assert run_context(environ("merge_group"), payload).story == "nothing"


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"base_sha": "main"}, "event payload: merge_group.base_sha"),
        ({"base_ref": "--x"}, "event payload: merge_group.base_ref"),
        ({"head_ref": None}, "event payload: merge_group.head_ref"),
        ({"head_sha": "a" * 40}, f"GITHUB_SHA {MERGE_SHA[:10]}"),
    ],
)
def test_a_merge_group_that_is_not_one_names_the_key(
    changes: dict[str, object], where: str
) -> None:
    with pytest.raises(InputError) as caught:
        queued(**changes)
    assert caught.value.where == where and "\n" not in caught.value.line


def edited(changes: object) -> Edit:
    # No example of `edited` exists: as `opened`, with what GitHub documents for
    # `changes`.
    return lambda payload: payload.update(action="edited", changes=changes)


def test_an_edit_matters_where_it_moves_the_base() -> None:
    moved = {"base": {"ref": {"from": "master"}, "sha": {"from": MERGE_SHA}}}
    assert context("pull_request.opened", edited(moved)).story == "review"
    for changes in ({"title": {"from": "old"}}, {}, None):
        renamed = context("pull_request.opened", edited(changes))
        assert (renamed.story, renamed.why) == (
            "nothing",
            "the pull request was edited, and its base is the same",
        )


def head_repository(repository: Payload | None) -> Edit:
    # A fork: the head's repository has another name. A deleted fork: GitHub sends null.
    return lambda payload: payload["pull_request"]["head"].update(repo=repository)


def test_a_fork_cannot_write() -> None:
    for name in (
        "pull_request.opened",
        "pull_request.synchronize",
        "pull_request.closed",
    ):
        for fork in ("mallory/Hello-World", "Codertocat/Hello-World-fork"):
            run = context(name, head_repository({"full_name": fork}))
            assert (
                run.read_only
                and run.pull == replace(PULL, head_repository=fork)
                and run.story == CASES[name][0]
            )
    deleted = context("pull_request.synchronize", head_repository(None))
    assert (deleted.story, deleted.read_only, deleted.pull) == (
        "review",
        True,
        replace(PULL, head_repository=""),
    )
    assert not context(
        "pull_request.opened", head_repository({"full_name": HELLO.lower()})
    ).read_only


def test_dependabot_cannot_write() -> None:
    # Dependabot's branches are in the repository itself; its runs get a read-only token
    # all the same.
    def sender(payload: Payload) -> None:
        payload["sender"].update(login="dependabot[bot]", type="Bot")

    assert context("pull_request.opened", sender).read_only
    assert context("pull_request.opened", GITHUB_ACTOR="dependabot[bot]").read_only
    assert context("push.branch", GITHUB_ACTOR="dependabot[bot]").read_only
    assert not context("pull_request.opened", GITHUB_ACTOR="dependabot").read_only


def test_pull_request_target_is_never_acted_on() -> None:
    for payload in (load("pull_request.opened"), {}):
        run = run_context(environ("pull_request_target"), payload)
        assert run.story == "nothing" and run.pull is None
        assert (
            run.why
            == "pull_request_target runs with the secrets of the base repository: use"
            " pull_request"
        )


# --- push and schedule ----------------------------------------------------------------------------------------------


def test_only_a_push_to_the_default_branch_counts_whatever_it_is_called() -> None:
    for ref in (
        "refs/heads/topic",
        "refs/heads/master2",
        "refs/tags/master",
        "refs/heads/x/master",
    ):
        payload = {**load("push.branch"), "ref": ref}
        assert run_context(environ("push"), payload).story == "nothing"

    def renamed(payload: Payload) -> None:
        payload.update(ref="refs/heads/release/v2")
        payload["repository"].update(default_branch="release/v2")

    run = context("push.branch", renamed)
    assert (run.story, run.default_branch) == ("baseline", "release/v2")


@pytest.mark.parametrize(
    ("payload", "ref", "story", "branch"),
    [
        ({"schedule": "0 3 * * *"}, "refs/heads/main", "baseline", "main"),
        (
            {"schedule": "0 3 * * *", "repository": {"default_branch": "main"}},
            "refs/heads/main",
            "baseline",
            "main",
        ),
        (
            {"schedule": "0 3 * * *", "repository": {"default_branch": "main"}},
            "refs/heads/old",
            "nothing",
            "main",
        ),
        ({"schedule": "0 3 * * *"}, "refs/tags/v1", "nothing", ""),
        ({"schedule": "0 3 * * *"}, "", "nothing", ""),
    ],
)
def test_schedules(payload: Payload, ref: str, story: Story, branch: str) -> None:
    run = run_context(environ("schedule", GITHUB_REF=ref), payload)
    assert (run.story, run.default_branch) == (story, branch)


# --- workflow_run ---------------------------------------------------------------------------------------------------


def finished(head: str | None = "mallory/octo-repo", **run: object) -> Edit:
    # The example is of another event in the repository itself: here it is the run of a
    # pull request from a fork.
    def edit(payload: Payload) -> None:
        repository = {"full_name": head} if head else None
        payload["workflow_run"].update(
            {"event": "pull_request", "head_repository": repository, **run}
        )

    return edit


RUN = WorkflowRun(
    id=289782451,
    head_sha="3484a3fb816e0859fd6e1cea078d76385ff50625",
    head_branch="master",
    head_repository="mallory/octo-repo",
    conclusion="success",
    actor="Codertocat",
    workflow="test",
    created_at="2020-10-05T16:33:24Z",
)


def post(edit: Edit) -> RunContext:
    return context("workflow_run.completed", edit, repository=OCTO)


def test_the_finished_run_of_a_fork_is_posted() -> None:
    posted = replace(common("workflow_run", OCTO), story="post")
    posted = replace(
        posted, why="a pull request's run without write access has finished"
    )
    for conclusion in (
        "success",
        "failure",
        "timed_out",
        "cancelled",
        "startup_failure",
    ):
        assert post(finished(conclusion=conclusion)) == replace(
            posted, run=replace(RUN, conclusion=conclusion)
        )
    assert post(finished(OCTO, actor={"login": "dependabot[bot]"})).story == "post"
    deleted = post(finished(None, head_branch=None, actor=None))
    assert deleted.story == "post"
    assert deleted.run == replace(RUN, head_repository="", head_branch="", actor="")


def test_runs_that_did_not_begin_that_could_write_or_of_other_events_are_not_posted() -> (
    None
):
    for conclusion in ("skipped", "action_required", "stale", None):
        run = post(finished(conclusion=conclusion))
        reason = (
            f"the finished run has nothing to post: {conclusion or 'no conclusion'}"
        )
        assert (run.story, run.why) == ("nothing", reason)
    for head in (OCTO, OCTO.upper()):
        run = post(finished(head))
        assert run.story == "nothing" and "published its own report" in run.why
    for event in ("push", "pull_request_target", "workflow_dispatch", "workflow_run"):
        assert post(finished(event=event)).story == "nothing"

    def edit(payload: Payload) -> None:
        finished()(payload)
        payload.update(action="in_progress")

    assert post(edit).story == "nothing"


# --- environment and malformed payloads -----------------------------------------------------------------------------


def test_what_is_no_run_of_ours() -> None:
    assert run_context({}, {}) == RunContext(
        "nothing", "this is not a run of GitHub Actions"
    )
    assert (
        run_context({"GITHUB_EVENT_NAME": ""}, load("push.branch")).story == "nothing"
    )
    run = run_context(environ("release"), {})
    assert (run.story, run.why) == ("nothing", "the bot does nothing on release")


def test_variables_are_what_they_must_be() -> None:
    for name, value in (
        *(
            ("REPOSITORY", "a/b/c"),
            ("SHA", "main"),
            ("RUN_ID", "x"),
            ("REF", "refs/heads/a\nb"),
        ),
        *(
            ("ACTOR", "@a b"),
            ("API_URL", "file:///etc/passwd"),
            ("SERVER_URL", "https://a b"),
        ),
    ):
        with pytest.raises(InputError) as caught:
            run_context(
                environ("push", **{f"GITHUB_{name}": value}), load("push.branch")
            )
        assert caught.value.where == f"environment: GITHUB_{name}"


def test_variables_that_may_be_missing() -> None:
    needed = {"GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_RUN_ID"}
    for name in environ("push").keys() - {"GITHUB_EVENT_NAME"}:
        variables = environ("push")
        del variables[name]
        if name in needed:
            with pytest.raises(InputError, match=f"environment: {name}: is missing"):
                run_context(variables, load("push.branch"))
        else:
            assert run_context(variables, load("push.branch")).story == "baseline"


def test_addresses_are_those_of_github_where_none_are_given() -> None:
    run = context("push.branch", GITHUB_API_URL="", GITHUB_SERVER_URL="")
    assert (run.api_url, run.server_url) == (
        "https://api.github.com",
        "https://github.com",
    )


_OF_PULL = ("number", "head.sha", "base.ref", "head.repo.full_name")
_OF_RUN = ("id", "event", "head_sha", "created_at")
NEEDED = {
    "pull_request.opened": (
        "action",
        "repository.default_branch",
        *(f"pull_request.{key}" for key in _OF_PULL),
    ),
    "pull_request.labeled": ("label.name",),
    "push.branch": ("ref", "repository.default_branch"),
    "workflow_dispatch.main": ("repository.default_branch",),
    "workflow_run.completed": ("action", *(f"workflow_run.{key}" for key in _OF_RUN)),
}
NO_EDIT: Edit = len
PREPARED: dict[str, Edit] = {"workflow_run.completed": finished()}


def prepared(name: str) -> Payload:
    payload = load(name)
    PREPARED.get(name, NO_EDIT)(payload)
    return payload


PAYLOADS = {name: prepared(name) for name in NEEDED}


@pytest.mark.parametrize(
    ("name", "path"), [(name, path) for name, paths in NEEDED.items() for path in paths]
)
def test_a_needed_key_that_is_missing_or_wrong_is_named(name: str, path: str) -> None:
    wrong: list[object] = [None, [], 1.5, {"x": 1}]
    wrong += ["\n"] if path != "label.name" else []  # which any text may be
    for value in wrong:
        with pytest.raises(InputError) as caught:
            run_context(
                environ(name.partition(".")[0]),
                replaced(PAYLOADS[name], tuple(path.split(".")), value),
            )
        assert caught.value.where == f"event payload: {path}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=10,
)


def places(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every place of a payload, outermost first."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))


def replaced(payload: Payload, path: tuple[str, ...], value: object) -> Any:
    if not path:
        return value
    whole = copy.deepcopy(payload)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return whole


# Places that matter, and not the hundreds of addresses in `repository`.
PLACES = [
    (name, path)
    for name, payload in PAYLOADS.items()
    for path in places(payload)
    if len(path) < 3 or path[-1] in "ref sha repo"
]


@given(st.sampled_from(PLACES), json_values)
@example(("pull_request.opened", ("sender",)), "dependabot[bot]")
@example(("pull_request.opened", ("pull_request", "head")), [])
def test_a_real_payload_with_any_json_somewhere(
    place: tuple[str, tuple[str, ...]], value: object
) -> None:
    name, path = place
    payload = replaced(PAYLOADS[name], path, value)
    try:
        run = run_context(environ(name.partition(".")[0]), payload)
    except InputError as error:
        assert error.where.startswith("event payload: ")
        return
    if run.pull:
        assert run.pull.number > 0 and len(run.pull.head_sha) == 40


# --- the payload's file ---------------------------------------------------------------------------------------------


def test_the_payload_is_read_from_the_file_that_github_names() -> None:
    path = FOLDER / "push.branch.json"
    assert read_event(
        {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(path)}
    ) == load("push.branch")
    assert read_event({"GITHUB_EVENT_PATH": str(path)}) == {}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe{}x", "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b"[]", "is not a JSON object"),
        (b"null", "is not a JSON object"),
    ],
)
def test_files_that_are_no_payload(tmp_path: Path, data: bytes, complaint: str) -> None:
    path = tmp_path / "event.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_event({"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(path)})
    assert (caught.value.what, caught.value.where) == (
        complaint,
        f"event payload {path}",
    )
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_event(
            {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": str(tmp_path / "none")}
        )
    with pytest.raises(InputError, match="environment: GITHUB_EVENT_PATH: is missing"):
        read_event({"GITHUB_EVENT_NAME": "push"})
