"""Turn what GitHub refuses, or answers wrongly, into one line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from github import GithubException, RateLimitExceededException
from github.Requester import Requester
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from bot.errors import NetworkError

_CLIP_CHARACTERS = 300
# "GitHub's token formats": a server or proxy that echoes a request must not get one
# into a log.
_TOKEN = re.compile(
    r"(gh[a-z]_|github_pat_|v1\.)\w{10,}|(?i:\b(bearer|token|basic)) [\w.~+/=-]{8,}"
)
# GitHub's words: "Unable to create comment because issue is locked."
_LOCKED = re.compile(
    r"\b(?:issue|conversation|pull request) is locked\b", re.IGNORECASE
)


class Unexpected(Exception):
    """An answer that is not what GitHub's documentation says.

    The text completes "GitHub's answer …".
    """


def in_doubt(error: Exception) -> bool:
    """Return whether the request may have been carried out although it looks failed."""
    if isinstance(error, GithubException):
        return error.status >= 500
    return isinstance(error, (Unexpected, RequestException, HTTPError))


@contextmanager
def explain(action: str, permission: str) -> Iterator[None]:
    """Turn what GitHub and the network raise into one line.

    `action`: completes "cannot …"; `permission`: what the job's token needs for it, as
    in a workflow: `pull-requests: write`.

    Raises:
        NetworkError: with the missing permission, where that may be it. The token is in
            none.
    """
    # `from None`: the errors of requests carry the request, and with it the token.
    try:
        yield
    except GithubException as error:
        raise _refused(action, permission, error) from None
    except Unexpected as error:
        raise NetworkError(
            f"cannot {action}: GitHub's answer {_one_line(str(error))}",
            hint="run it again, or check the API URL",
        ) from None
    except (RequestException, HTTPError) as error:
        reason = _one_line(str(error) or type(error).__name__)
        raise NetworkError(
            f"cannot {action}: GitHub did not answer: {reason}", hint="run it again"
        ) from None


def _refused(action: str, permission: str, error: GithubException) -> NetworkError:
    """Return the error of a refused request, with what to do."""
    status = error.status
    message = _full_message(error)
    if status == 403 and _LOCKED.search(message):
        hint = "unlock it, or read the report in the job summary"
        return NetworkError(f"cannot {action}: the conversation is locked", hint=hint)
    if is_rate_limit(error):
        after = (error.headers or {}).get("retry-after")
        if after:
            waiting = f" and asks to wait {_one_line(after)} seconds"
        else:
            waiting = ""
        return NetworkError(
            f"cannot {action}: GitHub limits the rate of requests{waiting}:"
            f" {status} {message}",
            hint="run it again later",
        )
    if status == 404:
        return NetworkError(
            f"cannot {action}: not found, or the token may not see it",
            permission=permission,
        )
    if status == 403 and "already running" not in message:
        return NetworkError(f"cannot {action}: 403 {message}", permission=permission)
    if status >= 500:
        return NetworkError(
            f"cannot {action}: GitHub did not answer: {status} {message}",
            hint="run it again",
        )
    reasons = {
        401: ("the token was refused", "check the input `github-token`"),
        410: ("it has expired or was removed", "run the workflow again"),
    }
    reason, hint = reasons.get(status, (f"{status} {message}", ""))
    return NetworkError(f"cannot {action}: {reason}", hint=hint)


def _full_message(error: GithubException) -> str:
    """Return GitHub's message and what it names as wrong, on one line.

    An example of the second is a failed validation.
    """
    details = ", ".join(map(_detail, _errors_of(error)))
    parts = [_message(error) or "without a message", details]
    return _one_line(": ".join(filter(None, parts)))


def _errors_of(error: GithubException) -> list[Any]:
    """Return the list of what GitHub names as wrong; empty if there is none."""
    if isinstance(error.data, dict):
        errors = error.data.get("errors")
    else:
        errors = None
    if isinstance(errors, list):
        return errors
    return []


def _detail(entry: Any) -> str:
    """Return one of the things that GitHub names as wrong, as text."""
    if isinstance(entry, dict):
        fields = entry
    else:
        fields = {"message": entry}
    keys = ("resource", "field", "code")
    named = " ".join(str(fields[key]) for key in keys if key in fields)
    return str(fields.get("message") or named)


def is_rate_limit(error: GithubException) -> bool:
    """Return whether the request can succeed later, and lacks no permission."""
    headers = error.headers or {}
    exhausted = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    is_limit = isinstance(
        error, RateLimitExceededException
    ) or Requester.isRateLimitError(_message(error))
    return error.status == 429 or (error.status == 403 and (exhausted or is_limit))


def _message(error: GithubException) -> str:
    """Return GitHub's own words, or a proxy's page; empty if there are none."""
    if isinstance(error.data, dict):
        message = error.data.get("message")
    else:
        message = error.data
    if isinstance(message, str):
        return message
    return ""


def _one_line(text: str) -> str:
    """Return a server's text as one short line without tokens."""
    line = _TOKEN.sub("…", " ".join(text.split()))
    if len(line) <= _CLIP_CHARACTERS:
        return line
    return f"{line[: _CLIP_CHARACTERS - 1]}…"
