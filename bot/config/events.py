"""Read the event and the action's inputs, which GitHub hands to a run, as values.

Values of a payload are checked, because forks choose names and branches. An error names
the key and repeats no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from bot.config.targets import parse_flags
from bot.config.units import parse_shard
from bot.core.acceptance import APPROVAL_LABEL, is_approval
from bot.core.asked import PREFIX, Comment
from bot.core.context import ActionInputs, Pull, Queue, RunContext, WorkflowRun
from bot.core.json_text import parse_json
from bot.core.record import Small
from bot.errors import InputError, UsageError

Kind = Literal[
    "sha", "repository", "ref", "login", "word", "url", "number", "moment", "text"
]

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w-]{0,99}/(?!\.{1,2}$)[\w.-]{1,100}", re.ASCII)
# What git refuses in a ref name (git-check-ref-format), a leading dash, and whatever
# does not print.
_REF = re.compile(r"(?!-)(?!.*(?:\.\.|@\{))[^\x00-\x20\x7f~^:?*\[\\]{1,300}")
_KINDS: dict[Kind, tuple[str, re.Pattern[str]]] = {
    "sha": ("a commit SHA of 40 hex digits", re.compile(r"[0-9a-f]{40}")),
    "repository": ("a name owner/repository", _REPOSITORY),
    "ref": ("a git ref", _REF),
    "login": ("a login", re.compile(r"[A-Za-z0-9][\w-]{0,99}(?:\[bot\])?", re.ASCII)),
    "word": ("a word in lower case", re.compile(r"[a-z_]{1,60}")),
    "url": (
        "an http(s) address",
        re.compile(r"https?://[\w.:\[\]-]+(?:/[\w./~%@+-]*)?", re.ASCII),
    ),
    "number": ("a positive integer", re.compile(r"0{0,9}[1-9][0-9]{0,18}")),
    "moment": (
        "a moment in UTC",
        re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII),
    ),
    "text": ("text", re.compile(r".*", re.DOTALL)),
}


class Document(Small, frozen=True):
    """Reads values of a payload or of the environment.

    A value stands at a path such as `pull_request.head.sha`.
    """

    raw: object
    source: str

    def get(self, path: str) -> object:
        """Return the value there, as it came; None if there is nothing, or null."""
        value = self.raw
        for key in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(key)
            else:
                value = None
        return value

    def read(self, path: str, kind: Kind) -> str:
        """Return a text of this kind.

        Raises InputError, without the text, for any other value.
        """
        value = self.get(path)
        expectation, pattern = _KINDS[kind]
        prints = isinstance(value, str) and (kind == "text" or value.isprintable())
        if not isinstance(value, str) or not prints or not pattern.fullmatch(value):
            if value is None:
                problem = "is missing"
            else:
                problem = f"is not {expectation}"
            raise InputError(problem, where=f"{self.source}: {path}")
        return value

    def read_or_empty(self, path: str, kind: Kind) -> str:
        """Return a text of this kind, or an empty text if it is missing or empty."""
        if self.get(path) in (None, ""):
            return ""
        return self.read(path, kind)

    def id(self, path: str) -> int:
        """Return a positive integer as GitHub counts things.

        Raises InputError for any other value.
        """
        value = self.get(path)
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or not 0 < value < 1 << 63
        ):
            if value is None:
                problem = "is missing"
            else:
                problem = "is not a positive integer"
            raise InputError(problem, where=f"{self.source}: {path}")
        return value


_COMMAND = re.compile(rf"{PREFIX}(?!\S)", re.IGNORECASE)
"""How the first line of a comment with a command begins."""
_DEPENDABOT = "dependabot[bot]"
_HEADS = "refs/heads/"
_POSTED = ("success", "failure", "timed_out", "cancelled", "startup_failure")
"""The ends of a run of which its pull request gets a report.

A run that left no report is among them, so that somebody learns the reason.
"""
_Rule = Callable[[RunContext, Document], RunContext]


def run_context(environ: Mapping[str, str], payload: Mapping[str, Any]) -> RunContext:
    """Return the subject of this run.

    It is made from the environment of GitHub Actions and the event's payload, as
    GitHub documents them (default variables; webhook events and payloads). Raises
    InputError if a value that the event must have is missing or malformed; `where`
    names it.
    """
    event = environ.get("GITHUB_EVENT_NAME", "")
    if not event:
        return RunContext("nothing", "this is not a run of GitHub Actions")
    env = Document(environ, "environment")
    base_context = RunContext(
        "nothing",
        "",
        event=event,
        repository=env.read("GITHUB_REPOSITORY", "repository"),
        run_id=int(env.read("GITHUB_RUN_ID", "number")),
        sha=env.read("GITHUB_SHA", "sha"),
        ref=env.read_or_empty("GITHUB_REF", "ref"),
        actor=env.read_or_empty("GITHUB_ACTOR", "login"),
    )
    api = env.read_or_empty("GITHUB_API_URL", "url").rstrip("/")
    server = env.read_or_empty("GITHUB_SERVER_URL", "url").rstrip("/")
    context = replace(
        base_context,
        api_url=api or base_context.api_url,
        server_url=server or base_context.server_url,
    )
    rule = _RULES.get(event)
    if rule is None:
        return _nothing(context, f"the bot does nothing on {event}")
    return rule(context, Document(payload, "event payload"))


def read_event(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the payload of the event, from the file that GITHUB_EVENT_PATH names.

    Raises InputError; empty outside GitHub.
    """
    if not environ.get("GITHUB_EVENT_NAME"):
        return {}
    name = environ.get("GITHUB_EVENT_PATH", "")
    if not name:
        raise InputError("is missing", where="environment: GITHUB_EVENT_PATH")
    try:
        payload = parse_json(Path(name).read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=f"event payload {name}"
        ) from error
    except ValueError as error:
        raise InputError("is not JSON", where=f"event payload {name}") from error
    if not isinstance(payload, dict):
        raise InputError("is not a JSON object", where=f"event payload {name}")
    return payload


def _nothing(context: RunContext, reason: str) -> RunContext:
    return replace(context, story="nothing", why=reason)


def _with_default_branch(context: RunContext, payload: Document) -> RunContext:
    return replace(
        context, default_branch=payload.read("repository.default_branch", "ref")
    )


def _same(first: str, second: str) -> bool:
    """Return whether two names of repositories are the same, whatever their case."""
    return first.casefold() == second.casefold()


def _name_of(payload: Document, repository: str) -> str:
    """Return the name of a repository.

    Empty if the repository was deleted, which GitHub shows as null.
    """
    if payload.get(repository) is None:
        return ""
    return payload.read(f"{repository}.full_name", "repository")


def _pull_request(context: RunContext, payload: Document) -> RunContext:
    context = _with_default_branch(context, payload)
    pull = Pull(
        number=payload.id("pull_request.number"),
        head_sha=payload.read("pull_request.head.sha", "sha"),
        base_ref=payload.read("pull_request.base.ref", "ref"),
        head_repository=_name_of(payload, "pull_request.head.repo"),
        is_locked=payload.get("pull_request.locked") is True,
    )
    foreign = not _same(pull.head_repository, context.repository) or _by_dependabot(
        context, payload
    )
    context = replace(context, pull=pull, read_only=foreign)
    action = payload.read("action", "word")
    if action in ("labeled", "unlabeled"):
        label = payload.read("label.name", "text")
        if not is_approval(label):
            return _nothing(
                context,
                f"pull request {action}, with another label than {APPROVAL_LABEL}",
            )
        return replace(
            context, story="review", why=f"pull request {action}: {label.casefold()}"
        )
    if action in ("opened", "synchronize", "reopened", "ready_for_review"):
        return replace(context, story="review", why=f"pull request {action}")
    if action != "edited":
        return _nothing(
            context, f"the bot does nothing on a pull request that was {action}"
        )
    if payload.get("changes.base") is None:
        return _nothing(
            context, "the pull request was edited, and its base is the same"
        )
    return replace(context, story="review", why="pull request edited: its base changed")


def _by_dependabot(context: RunContext, payload: Document) -> bool:
    return _DEPENDABOT in (context.actor, payload.get("sender.login"))


def _merge_group(context: RunContext, payload: Document) -> RunContext:
    context = _with_default_branch(context, payload)
    action = payload.read("action", "word")
    if action != "checks_requested":
        return _nothing(
            context, f"the bot does nothing on a merge group that was {action}"
        )
    queue = Queue(
        base_sha=payload.read("merge_group.base_sha", "sha"),
        base_ref=payload.read("merge_group.base_ref", "ref").removeprefix(_HEADS),
        head_ref=payload.read("merge_group.head_ref", "ref"),
    )
    if payload.read("merge_group.head_sha", "sha") != context.sha:
        raise InputError(
            "is not the commit of this merge group",
            where=f"GITHUB_SHA {context.sha[:10]}",
        )
    return replace(
        context, queue=queue, story="review", why=f"merge queue of {queue.base_ref}"
    )


def _push(context: RunContext, payload: Document) -> RunContext:
    context = replace(
        _with_default_branch(context, payload),
        read_only=_by_dependabot(context, payload),
    )
    ref = payload.read("ref", "ref")
    if ref != _HEADS + context.default_branch:
        return _nothing(context, "a push to another ref than the default branch")
    return replace(context, story="baseline", why="push to the default branch")


def _schedule(context: RunContext, payload: Document) -> RunContext:
    """Return what a schedule asks for.

    Payloads of schedules may lack the repository, but GitHub runs schedules on the default
    branch only.
    """
    if payload.get("repository") is not None:
        context = _with_default_branch(context, payload)
    elif context.ref.startswith(_HEADS):
        context = replace(context, default_branch=context.ref[len(_HEADS) :])
    if not context.default_branch or context.ref != _HEADS + context.default_branch:
        return _nothing(context, "a schedule on another ref than the default branch")
    return replace(context, story="baseline", why="schedule on the default branch")


def _workflow_run(context: RunContext, payload: Document) -> RunContext:
    context = _with_default_branch(context, payload)
    action = payload.read("action", "word")
    event = payload.read("workflow_run.event", "word")
    if action != "completed":
        return _nothing(context, f"the run is {action}, not completed")
    if event != "pull_request":
        return _nothing(
            context, f"the finished run has the event {event}, not pull_request"
        )
    run = WorkflowRun(
        id=payload.id("workflow_run.id"),
        head_sha=payload.read("workflow_run.head_sha", "sha"),
        head_branch=payload.read_or_empty("workflow_run.head_branch", "ref"),
        head_repository=_name_of(payload, "workflow_run.head_repository"),
        conclusion=payload.read_or_empty("workflow_run.conclusion", "word"),
        actor=payload.read_or_empty("workflow_run.actor.login", "login"),
        created_at=payload.read("workflow_run.created_at", "moment"),
        workflow=payload.read_or_empty("workflow.name", "text"),
    )
    context = replace(context, run=run)
    if _same(run.head_repository, context.repository) and run.actor != _DEPENDABOT:
        return _nothing(
            context,
            "the finished run had a token that can write, and published its own report",
        )
    if run.conclusion not in _POSTED:
        return _nothing(
            context,
            "the finished run has nothing to post:"
            f" {run.conclusion or 'no conclusion'}",
        )
    return replace(
        context,
        story="post",
        why="a pull request's run without write access has finished",
    )


def _issue_comment(context: RunContext, payload: Document) -> RunContext:
    """Return the command in the first line of a new comment on a pull request.

    Nothing else in a comment is a command.
    """
    context = _with_default_branch(context, payload)
    action = payload.read("action", "word")
    if action != "created":
        return _nothing(context, f"the bot does nothing on a comment that was {action}")
    if payload.get("issue.pull_request") is None:
        return _nothing(context, "the comment is on an issue, not on a pull request")
    first_line, *_ = payload.read("comment.body", "text").splitlines() or [""]
    if not _COMMAND.match(first_line):
        return _nothing(context, f"the comment does not begin with {PREFIX}")
    comment = Comment(
        id=payload.id("comment.id"),
        author=(
            ""
            if payload.get("comment.user") is None
            else payload.read("comment.user.login", "login")
        ),
        pull_number=payload.id("issue.number"),
        line=first_line,
        written_at=payload.read("comment.created_at", "moment"),
    )
    return replace(
        context,
        comment=comment,
        story="command",
        why=f"a comment on #{comment.pull_number}",
    )


_RULES: dict[str, _Rule] = {
    "issue_comment": _issue_comment,
    "pull_request": _pull_request,
    "pull_request_target": lambda context, _payload: _nothing(
        context,
        "pull_request_target runs with the secrets of the base repository: use"
        " pull_request",
    ),
    "merge_group": _merge_group,
    "push": _push,
    "schedule": _schedule,
    "workflow_dispatch": lambda context, payload: replace(
        _with_default_branch(context, payload), story="review", why="started manually"
    ),
    "workflow_run": _workflow_run,
}
"""What each event asks for."""


COMMANDS = (
    "auto",
    "measure",
    "report",
    "store",
    "post",
    "plan",
    "pages",
    "weekly",
    "prepare",
    "gate",
)
# Linux allows 255 bytes for a name and 4,095 for a path. The rest of the path is for
# the directory of the job.
_MOST_NAME_BYTES = 255
_MOST_PATH_BYTES = 3000
_MAX_SHARDS = 256  # GitHub makes at most 256 jobs of a matrix (its usage limits)


def read_inputs(environ: Mapping[str, str]) -> ActionInputs:
    """Return the inputs from the `INPUT_*` variables.

    An empty or missing input has the default of ActionInputs. The runner of a
    Docker action names the variables in upper case, and keeps hyphens. Raises
    UsageError naming the input.
    """
    fields: dict[str, Any] = {}
    for name, parse in INPUTS.items():
        if text := environ.get(f"INPUT_{name.upper()}", "").strip():
            try:
                if not all(char.isprintable() or char in "\n\r\t" for char in text):
                    raise ValueError("has characters that cannot be printed")
                fields[name.replace("-", "_")] = parse(text)
            except ValueError as error:
                raise UsageError(str(error), where=f"input {name}") from None
    return ActionInputs(**fields)


def _shown(text: str) -> str:
    return repr(text[:60])


def _fitting(pattern: str, expectation: str) -> Callable[[str], str]:
    """Return a parser that takes only text of this pattern.

    `expectation`: the error for other text, which replaces its {}.
    """

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(expectation.format(_shown(text)))
        return text

    return parse


def _line(text: str) -> str:
    """Return a path, SPEC or ref.

    Raises ValueError for a text of several lines, for one that is too long to be a
    path, and for one that git or pip would take for an option.
    """
    if len(text.splitlines()) > 1:
        raise ValueError("has more than one line")
    longest_name_bytes = max(len(name.encode()) for name in text.split("/"))
    if len(text.encode()) > _MOST_PATH_BYTES or longest_name_bytes > _MOST_NAME_BYTES:
        raise ValueError(f"{_shown(text)} is longer than a path can be")
    if text.startswith("-"):
        raise ValueError(f"{_shown(text)} begins with a dash")
    return text


def _count(largest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,9}", text) or int(text) > largest:
            raise ValueError(f"{_shown(text)} is not a number from 1 to {largest}")
        return int(text)

    return parse


INPUTS: Mapping[str, Callable[[str], object]] = {
    "command": _fitting(
        "|".join(COMMANDS),
        f"{{}} is not a command; known commands: {', '.join(COMMANDS)}",
    ),
    # without {}: an error must not show a token
    **dict.fromkeys(
        ("github-token", "store-token"), _fitting(r"[!-~]+", "is not a token")
    ),
    **dict.fromkeys(("author", "config", "base", "head"), _line),
    **dict.fromkeys(("models", "targets"), lambda text: tuple(text.split())),
    "flags": parse_flags,
    "pull-request": _count((1 << 31) - 1),
    "asked": str,
    "shards": _count(_MAX_SHARDS),
    "shard": parse_shard,
    "plan": str,
    "parts": lambda text: tuple(text.split()),
    "measured": _line,
    "outcome": _fitting("[a-z_]{1,40}", "{} is not the result of a job"),
    "baselines": _line,
    "jobs": _count(1024),
    **dict.fromkeys(("cache", "out"), _line),
}
"""Each input, in the order of action.yml → the function that reads its text.

The text is never empty. The function raises ValueError with one line.
"""
