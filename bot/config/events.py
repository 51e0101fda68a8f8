"""What GitHub hands to a run as values: the event, the action's inputs, and the `/code-size` commands of comments.

Values of a payload are checked, as forks choose names and branches. A message names the key and repeats no value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from bot.config.targets import parse_flags
from bot.config.units import parse_steps
from bot.core.context import ActionInputs, Command, Pull, RunContext, WorkflowRun
from bot.core.json_text import parse_json
from bot.core.publication import APPROVAL_LABEL
from bot.core.record import Small
from bot.errors import InputError, UsageError

PREFIX = "/code-size"
MAX_REASON = 300  # characters of a reason; it is shown in a comment, in a table
_MAX_LINE = 2000

# Keyboards of telephones write these where a quotation mark was typed.
_CURLY = re.compile(r"[\u201c\u201e\u2018](.*)[\u201d\u201c\u2019]")


_SHORTENED = (
    "looks like a shortened commit, and anybody can make another one that begins the same: name a release, a branch or "
    "a tag (refs/heads/NAME or refs/tags/NAME where it looks like this); a run that is started by hand takes a whole "
    "commit, as `git rev-parse` prints it"
)


class _Problem(Exception):
    """Why a comment is no command, in words without any of the comment's own."""


class _Known(Small, frozen=True):
    """One command: how to write it, what it does, an example, and what reads its arguments."""

    usage: str
    about: str
    example: str
    arguments: Callable[[str], tuple[str, ...]]


def parse_command(body: str) -> Command | None:
    """The command that a comment's first line is; None where it does not begin with `/code-size` and a space or end.

    What cannot be carried out becomes `help` with the problem, which never repeats the comment's text.
    """
    line = re.split(r"\r\n|\r|\n", body, maxsplit=1)[0]
    prefix, _, rest = line.replace("\t", " ").partition(" ")
    if prefix != PREFIX:
        return None
    name, _, text = rest.strip(" ").partition(" ")
    try:
        if len(line) > _MAX_LINE:
            raise _Problem(f"the line is longer than {_MAX_LINE:,} characters")
        known = _KNOWN.get(name or "help")
        if known is None:
            raise _Problem(f"unknown command, known are {', '.join(_KNOWN)}")
        return Command(name or "help", known.arguments(text.strip(" ")))
    except _Problem as problem:
        return Command("help", problem=str(problem))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise _Problem("a quotation mark is not closed") from None


def _none(text: str) -> tuple[str, ...]:
    if text:
        raise _Problem("rerun takes no arguments")
    return ()


def _two_sides(text: str) -> tuple[str, ...]:
    words = _split(text)
    if len(words) != 2:
        raise _Problem("compare takes two arguments, BASE and HEAD")
    for side, word in zip(("BASE", "HEAD"), words, strict=True):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/=+-]*", word) or ".." in word or len(word) > 200:
            raise _Problem(f"{side} is neither a release nor a branch or tag of this repository")
        if re.fullmatch(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?", word):
            # GitHub serves the commits of forks from the repository they were forked from.
            raise _Problem(f"{side} is a commit, which may be a fork's: name a release, a branch or a tag")
        if re.fullmatch(r"[0-9a-fA-F]{4,39}", word):
            raise _Problem(f"{side} {_SHORTENED}")
        if re.search(r"(?:^|/)pull/", word, flags=re.IGNORECASE):
            # Refs of pull requests hold the code of forks, and this run's token may write.
            raise _Problem(f"{side} is a ref of a pull request, which is not measured with a token that may write")
    return tuple(words)


def _reason(text: str) -> tuple[str, ...]:
    # An apostrophe in plain words is no quotation mark.
    words = _split(text) if text[:1] in ("'", '"') else [text]
    spaced = " ".join(" ".join(words).split())
    printable = "".join(char for char in spaced if char.isprintable())
    curly = _CURLY.fullmatch(printable)
    reason = (curly[1] if curly else printable).strip()
    if not reason:
        raise _Problem("accept needs a reason")
    if len(reason) > MAX_REASON:
        raise _Problem(f"the reason is longer than {MAX_REASON} characters")
    return (reason,)


_KNOWN: dict[str, _Known] = {
    "rerun": _Known("rerun", "measure this pull request again", "rerun", _none),
    "compare": _Known(
        "compare BASE HEAD",
        "compare two releases, branches or tags of this repository",
        "compare iree-base-compiler==3.12.0 iree-base-compiler==3.13.0",
        _two_sides,
    ),
    "accept": _Known(
        'accept "REASON"',
        "accept the failing findings at their present values; later growth is reported again",
        'accept "faster attention is worth 4 KiB"',
        _reason,
    ),
    "help": _Known("help", "this text", "help", lambda _text: ()),
}


HELP = f"""\
Comments of people with write access whose first line begins with `{PREFIX}`:

| command | what it does | example |
|:--|:--|:--|
""" + "".join(f"| `{PREFIX} {one.usage}` | {one.about} | `{PREFIX} {one.example}` |\n" for one in _KNOWN.values())
"""The commands with an example each, as Markdown."""


Kind = Literal["sha", "repository", "ref", "login", "word", "url", "moment", "text"]

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w-]{0,99}/(?!\.{1,2}$)[\w.-]{1,100}", re.ASCII)
# What git refuses in a ref name (git-check-ref-format), a leading dash, and whatever does not print.
_REF = re.compile(r"(?!-)(?!.*(?:\.\.|@\{))[^\x00-\x20\x7f~^:?*\[\\]{1,300}")
_KINDS: dict[Kind, tuple[str, re.Pattern[str]]] = {
    "sha": ("a commit SHA of 40 hex digits", re.compile(r"[0-9a-f]{40}")),
    "repository": ("a name owner/repository", _REPOSITORY),
    "ref": ("a git ref", _REF),
    "login": ("a login", re.compile(r"[A-Za-z0-9][\w-]{0,99}(?:\[bot\])?", re.ASCII)),
    "word": ("a word in lower case", re.compile(r"[a-z_]{1,60}")),
    "url": ("an http(s) address", re.compile(r"https?://[\w.:\[\]-]+(?:/[\w./~%@+-]*)?", re.ASCII)),
    "moment": ("a moment in UTC", re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)),
    "text": ("text", re.compile(r".*", re.DOTALL)),
}


class Value(Small, frozen=True):
    """One value of a document, with the place it was found at."""

    raw: object  # as it came; None where the key is missing or null
    source: str  # the document (`event payload`)
    path: str = ""  # keys from its top, with dots between them

    def at(self, *keys: str) -> Value:
        """The value below; missing where a key is missing. InputError where something on the way has no keys."""
        value = self
        for key in keys:
            if not isinstance(value.raw, Mapping):
                raise value._error("is missing" if value.raw is None else "is no object")
            value = Value(value.raw.get(key), self.source, f"{value.path}.{key}" if value.path else key)
        return value

    @property
    def missing(self) -> bool:
        """True where there is no such key, or null."""
        return self.raw is None

    def read(self, kind: Kind) -> str:
        """The text, which is what its kind says; InputError otherwise."""
        if self.raw is None:
            raise self._error("is missing")
        words, pattern = _KINDS[kind]
        prints = isinstance(self.raw, str) and (kind == "text" or self.raw.isprintable())
        if not isinstance(self.raw, str) or not prints or not pattern.fullmatch(self.raw):
            raise self._error(f"is not {words}")
        return self.raw

    def read_or_empty(self, kind: Kind) -> str:
        """The same, empty where it is missing or empty."""
        return "" if self.raw is None or self.raw == "" else self.read(kind)

    def id(self) -> int:
        """A positive integer as GitHub counts things; InputError otherwise."""
        if self.raw is None:
            raise self._error("is missing")
        if not isinstance(self.raw, int) or isinstance(self.raw, bool) or not 0 < self.raw < 1 << 63:
            raise self._error("is not a positive integer")
        return self.raw

    def number(self) -> int:
        """A positive integer written as decimal digits, as environment variables have it; InputError otherwise."""
        digits = self.read("text")
        if not re.fullmatch(r"[0-9]{1,19}", digits):
            raise self._error("is not a positive integer")
        return Value(int(digits), self.source, self.path).id()

    def flag(self) -> bool:
        """True or false, false where it is missing; InputError otherwise."""
        if self.raw is not None and not isinstance(self.raw, bool):
            raise self._error("is neither true nor false")
        return bool(self.raw)

    def _error(self, what: str) -> InputError:
        return InputError(what, where=f"{self.source}: {self.path or 'top level'}")


_DEPENDABOT = "dependabot[bot]"
_HEADS = "refs/heads/"
_POSTED = ("success", "failure", "timed_out", "cancelled", "startup_failure")
"""How a run ends of which its pull request hears: one that left no report, too, or nobody knows why there is none."""
# `owner/name/.github/workflows/FILE@REF`: the file is not the last part, as the ref has slashes too.
_WORKFLOW = re.compile(r"[^@]*/\.github/workflows/([\w.+-]+)@.*", re.ASCII)

_Rule = Callable[[RunContext, Value], RunContext]


def run_context(environ: Mapping[str, str], payload: Mapping[str, Any]) -> RunContext:
    """What this run is for: the environment of GitHub Actions and the event's payload as one value.

    Both as GitHub documents them (default variables; webhook events and payloads). Raises InputError where one that the
    event must have is missing or not what it should be; `where` names it.
    """
    event = environ.get("GITHUB_EVENT_NAME", "")
    if not event:
        return RunContext("nothing", "not a run of GitHub Actions")
    env = Value(environ, "environment")
    workflow = _WORKFLOW.fullmatch(environ.get("GITHUB_WORKFLOW_REF", ""))
    attempt = env.at("GITHUB_RUN_ATTEMPT")
    known = RunContext(
        "nothing",
        "",
        event=event,
        repository=env.at("GITHUB_REPOSITORY").read("repository"),
        run_id=env.at("GITHUB_RUN_ID").number(),
        run_attempt=attempt.number() if attempt.raw else 1,
        workflow=workflow[1] if workflow else "",
        sha=env.at("GITHUB_SHA").read("sha"),
        ref=env.at("GITHUB_REF").read_or_empty("ref"),
        actor=env.at("GITHUB_ACTOR").read_or_empty("login"),
    )
    api, server = (env.at(f"GITHUB_{one}_URL").read_or_empty("url").rstrip("/") for one in ("API", "SERVER"))
    context = replace(known, api_url=api or known.api_url, server_url=server or known.server_url)
    rule = _RULES.get(event)
    if rule is None:
        return _nothing(context, f"nothing is done on {event}")
    return rule(context, Value(payload, "event payload"))


def read_event(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """The payload of the event, from the file that GITHUB_EVENT_PATH names; raises InputError; empty outside GitHub."""
    if not environ.get("GITHUB_EVENT_NAME"):
        return {}
    name = environ.get("GITHUB_EVENT_PATH", "")
    if not name:
        raise InputError("is missing", where="environment: GITHUB_EVENT_PATH")
    try:
        payload = parse_json(Path(name).read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=f"event payload {name}") from error
    except ValueError as error:
        raise InputError("is no JSON", where=f"event payload {name}") from error
    if not isinstance(payload, dict):
        raise InputError("is no JSON object", where=f"event payload {name}")
    return payload


def _nothing(context: RunContext, why: str) -> RunContext:
    return replace(context, story="nothing", why=why)


def _on_default(context: RunContext, payload: Value) -> RunContext:
    return replace(context, default_branch=payload.at("repository", "default_branch").read("ref"))


def _same(one: str, other: str) -> bool:
    """Names of repositories are the same whatever their case."""
    return one.casefold() == other.casefold()


def _head_repository(holder: Value, key: str) -> str:
    """Name of the repository that a head is in; empty where it was deleted, which GitHub shows as null."""
    repository = holder.at(key)
    return "" if repository.missing else repository.at("full_name").read("repository")


def _pull_request(context: RunContext, payload: Value) -> RunContext:
    context = _on_default(context, payload)
    head = payload.at("pull_request", "head")
    pull = Pull(
        number=payload.at("pull_request", "number").id(),
        head_sha=head.at("sha").read("sha"),
        base_ref=payload.at("pull_request", "base", "ref").read("ref"),
        head_repository=_head_repository(head, "repo"),
    )
    foreign = not _same(pull.head_repository, context.repository) or _by_dependabot(context, payload)
    context = replace(context, pull=pull, read_only=foreign)
    action = payload.at("action").read("word")
    if action in ("labeled", "unlabeled"):
        label = payload.at("label", "name").read("text")
        if label != APPROVAL_LABEL:
            return _nothing(context, f"pull request {action}, with another label than {APPROVAL_LABEL}")
        why = f"pull request {action}: {APPROVAL_LABEL}"
        return replace(context, story="review", why=why, labelled=label if action == "labeled" else "")
    if action in ("opened", "synchronize", "reopened", "ready_for_review"):
        return replace(context, story="review", why=f"pull request {action}")
    if action != "edited":
        return _nothing(context, f"nothing is done on a pull request that was {action}")
    changes = payload.at("changes")
    if changes.missing or changes.at("base").missing:
        return _nothing(context, "the pull request was edited, and its base is the same")
    return replace(context, story="review", why="pull request edited: its base changed")


def _by_dependabot(context: RunContext, payload: Value) -> bool:
    sender = payload.at("sender")
    return _DEPENDABOT in (context.actor, "" if sender.missing else sender.at("login").read_or_empty("login"))


def _push(context: RunContext, payload: Value) -> RunContext:
    context = replace(_on_default(context, payload), read_only=_by_dependabot(context, payload))
    ref = payload.at("ref").read("ref")
    if payload.at("deleted").flag():
        return _nothing(context, "a push that deleted its ref")
    if ref != _HEADS + context.default_branch:
        return _nothing(context, "a push to something else than the default branch")
    return replace(context, story="baseline", why="push to the default branch")


def _schedule(context: RunContext, payload: Value) -> RunContext:
    """Payloads of schedules may lack the repository, but GitHub runs schedules on the default branch only."""
    if not payload.at("repository").missing:
        context = _on_default(context, payload)
    elif context.ref.startswith(_HEADS):
        context = replace(context, default_branch=context.ref[len(_HEADS) :])
    if not context.default_branch or context.ref != _HEADS + context.default_branch:
        return _nothing(context, "a schedule of something else than the default branch")
    return replace(context, story="baseline", why="schedule on the default branch")


def _workflow_run(context: RunContext, payload: Value) -> RunContext:
    context = _on_default(context, payload)
    action, finished = payload.at("action").read("word"), payload.at("workflow_run")
    event = finished.at("event").read("word")
    if action != "completed":
        return _nothing(context, f"the run is not completed, it is {action}")
    if event != "pull_request":
        return _nothing(context, f"the finished run is one of {event}, not of pull_request")
    actor = finished.at("actor")
    run = WorkflowRun(
        id=finished.at("id").id(),
        head_sha=finished.at("head_sha").read("sha"),
        head_branch=finished.at("head_branch").read_or_empty("ref"),
        head_repository=_head_repository(finished, "head_repository"),
        conclusion=finished.at("conclusion").read_or_empty("word"),
        actor="" if actor.missing else actor.at("login").read("login"),
        created_at=finished.at("created_at").read("moment"),
    )
    context = replace(context, run=run)
    if _same(run.head_repository, context.repository) and run.actor != _DEPENDABOT:
        return _nothing(context, "the finished run could write, so it published its report by itself")
    if run.conclusion not in _POSTED:
        return _nothing(context, f"the finished run has nothing to post: {run.conclusion or 'no conclusion'}")
    return replace(context, story="post", why="a pull request's run that could not write is finished")


def _issue_comment(context: RunContext, payload: Value) -> RunContext:
    context = _on_default(context, payload)
    action, issue, comment = payload.at("action").read("word"), payload.at("issue"), payload.at("comment")
    if action != "created":
        return _nothing(context, f"a comment was {action}, not created")
    if issue.at("pull_request").missing:
        return _nothing(context, "a comment on an issue, not on a pull request")
    if comment.at("user", "type").read("text") == "Bot":
        return _nothing(context, "a comment of a bot")
    command = parse_command(comment.at("body").read_or_empty("text"))
    if command is None:
        return _nothing(context, "a comment that is no /code-size command")
    author, comment_id = comment.at("user", "login").read("login"), comment.at("id").id()
    command = replace(command, author=author, comment_id=comment_id, pull_number=issue.at("number").id())
    return replace(context, story="command", why=f"/code-size {command.name}", command=command)


_RULES: dict[str, _Rule] = {
    "pull_request": _pull_request,
    "pull_request_target": lambda context, _payload: _nothing(
        context, "pull_request_target would run with the secrets of the base repository: use pull_request"
    ),
    "push": _push,
    "schedule": _schedule,
    "workflow_dispatch": lambda context, payload: replace(
        _on_default(context, payload), story="review", why="started manually"
    ),
    "workflow_run": _workflow_run,
    "issue_comment": _issue_comment,
}
"""What each event asks for."""


COMMANDS = ("auto", "review", "post", "baseline", "plan", "measure", "pages")
_MAX_SHARDS = 256  # GitHub makes at most 256 jobs of a matrix (its usage limits)


def read_inputs(environ: Mapping[str, str]) -> ActionInputs:
    """The inputs from the `INPUT_*` variables; an empty or missing one has the default of ActionInputs.

    The runner of a Docker action names them in upper case, and keeps hyphens. Raises UsageError naming the input.
    """
    fields: dict[str, Any] = {}
    for name, parse in INPUTS.items():
        if text := environ.get(f"INPUT_{name.upper()}", "").strip():
            try:
                if not all(char.isprintable() or char in "\n\r\t" for char in text):
                    raise ValueError("has characters that do not print")
                fields[name.replace("-", "_")] = parse(text)
            except ValueError as error:
                raise UsageError(str(error), where=f"input {name}") from None
    return ActionInputs(**fields)


def _shown(text: str) -> str:
    return repr(text[:60])


def _fitting(pattern: str, said: str) -> Callable[[str], str]:
    """What reads a text that fits; `said` of any other, in which {} stands for the text."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(said.format(_shown(text)))
        return text

    return parse


def _line(text: str) -> str:
    """A path, SPEC or ref: no second line, and nothing that git or pip would take for an option."""
    if len(text.splitlines()) > 1:
        raise ValueError("has more than one line")
    if text.startswith("-"):
        raise ValueError(f"{_shown(text)} begins with a dash")
    return text


def _count(largest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"0*[1-9][0-9]{0,9}", text) or int(text) > largest:
            raise ValueError(f"{_shown(text)} is no number from 1 to {largest}")
        return int(text)

    return parse


def _shard(text: str) -> str:
    match = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text)
    if match is None or not int(match[1]) <= int(match[2]) <= _MAX_SHARDS:
        raise ValueError(f"{_shown(text)} is not I/N with 1 <= I <= N <= {_MAX_SHARDS}, such as 2/4")
    return text


INPUTS: Mapping[str, Callable[[str], object]] = {
    "command": _fitting("|".join(COMMANDS), f"{{}} is no command, known are {', '.join(COMMANDS)}"),
    "github-token": _fitting(r"[!-~]+", "is no token"),
    **dict.fromkeys(("author", "config", "base", "head"), _line),
    **dict.fromkeys(("models", "targets"), lambda text: tuple(text.split())),
    "flags": parse_flags,
    "pull-request": _count((1 << 31) - 1),
    "shards": _count(_MAX_SHARDS),
    "shard": _shard,
    "plan": str,
    "parts": lambda text: tuple(text.split()),
    "steps": parse_steps,
    "lab": _line,
    "fold": lambda text: _fitting("true|false", "{} is neither true nor false")(text) == "true",
    "jobs": _count(1024),
    **dict.fromkeys(("cache", "out"), _line),
}
"""Each input, in the order of action.yml → what reads its text, which is never empty; ValueError in one line."""
