"""Connect to GitHub: PyGithub's own objects for one repository and one token.

Each of its errors is one line.

PyGithub builds its objects without looking, so what comes back is looked at here,
before it does. The token goes to the API's own address only; an archive is fetched from
the storage that the API names, without it.
"""

from __future__ import annotations

import json
import logging
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, TypeVar

import requests
from github import (
    Auth,
    Github,
    GithubException,
    GithubRetry,
    RateLimitExceededException,
    set_log_level,
)
from github.GithubException import BadAttributeException, IncompletableObject
from github.Issue import Issue
from github.Repository import Repository
from github.Requester import Requester
from requests.adapters import HTTPAdapter
from requests.exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    RequestException,
)
from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    MaxRetryError,
    ResponseError,
)

from bot.core.json_text import parse_json
from bot.errors import NetworkError
from bot.system.git import safe_address

ACTIONS_LOGIN = "github-actions[bot]"
"""Author of what a workflow's own `GITHUB_TOKEN` writes.

That token may not ask for its user.
"""

# The most that GitHub gives a page ("Using pagination in the REST API")
PAGE_ITEMS = 100

# PATCH is missing on purpose: a check run appends the annotations of each.
_SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "DELETE"})
_USER_AGENT = "code-size-bot"
_CHUNK_BYTES = 64 << 10
_CLIP_CHARACTERS = 300
_LONGEST_PAUSE_SECONDS = 8.0
# "GitHub's token formats": a server or proxy that echoes a request must not get one
# into a log.
_TOKEN = re.compile(
    r"(gh[a-z]_|github_pat_|v1\.)\w{10,}|(?i:\b(bearer|token|basic)) [\w.~+/=-]{8,}"
)
# GitHub's words: "Unable to create comment because issue is locked."
_LOCKED = re.compile(
    r"\b(?:issue|conversation|pull request) is locked\b", re.IGNORECASE
)
_Value = TypeVar("_Value")

# PyGithub prints what it asks again, and refusals that are expected; what matters is
# told in one line here.
set_log_level(logging.WARNING)


class Unexpected(Exception):
    """An answer that is not what GitHub's documentation says.

    The text completes "GitHub's answer …".
    """


class _Answer(dict[str, Any]):
    """An object that GitHub answered with.

    Raises Unexpected where a field is looked for that it has not.
    """

    def __missing__(self, key: str) -> Any:
        raise Unexpected(f"has no `{key}`")


class _CutOff(Unexpected):
    """An answer that is no JSON, as when its end is missing."""


# What PyGithub raises of an answer without the fields, or of the types, that the
# documentation gives it.
_MISREAD = (
    BadAttributeException,
    AssertionError,
    AttributeError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)
_IN_DOUBT = (Unexpected, RequestException, HTTPError, IncompletableObject)
# urllib3 tries a request again until its answer begins; after that the connection may
# still break.
_BROKE_OFF = (ChunkedEncodingError, ContentDecodingError, _CutOff)


class BoundedRetry(GithubRetry):
    """`GithubRetry` that repeats no write which may have been done, and never waits long.

    GitHub carried out nothing where it answers 429, 403 for a rate limit, or 503 with
    Retry-After ("Rate limits for the REST API"): then every request is sent again, if
    the wait is not above `max_rate_limit_wait`.
    """

    def is_retry(
        self, method: str, status_code: int, has_retry_after: bool = False
    ) -> bool:
        """Return whether the request can be sent again.

        Of a 403 only its headers and its text tell (`increment`).
        """
        is_limit = status_code in {403, 429} or (status_code == 503 and has_retry_after)
        return is_limit or super().is_retry(method, status_code, has_retry_after)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> BoundedRetry:
        """Return the state for the next try.

        Raises:
            MaxRetryError: no try is left, or the wait would be too long; urllib3 then
                returns the last answer.
            GithubException: a 403 that is no rate limit, or one that cannot be waited
                for.
        """
        if (
            error is not None
            and not isinstance(error, ConnectTimeoutError)
            and method not in _SAFE_TO_REPEAT
        ):
            raise error
        try:
            following: Any = super().increment(
                method,
                url=url,
                response=response,  # type: ignore[arg-type]
                error=error,
                _pool=_pool,
                _stacktrace=_stacktrace,
            )
        except MaxRetryError:
            if (
                response is not None
                and response.status == 403
                and "Retry-After" not in response.headers
            ):
                # PyGithub has read its text and found a rate limit there: the answer
                # cannot be returned any more.
                data = {"message": "the limit lasted too long"}
                raise RateLimitExceededException(
                    403, data, dict(response.headers)
                ) from None
            raise
        if response is not None:
            asked_seconds = following.get_retry_after(response)
        else:
            asked_seconds = None
        if (
            asked_seconds
            and self.max_rate_limit_wait is not None
            and asked_seconds > self.max_rate_limit_wait
        ):
            raise MaxRetryError(_pool, url, ResponseError("the wait would be too long"))  # type: ignore[arg-type]
        return following  # type: ignore[no-any-return]


class _Requester(Requester):
    """PyGithub's requests.

    Each ends in an object or list of objects, in nothing, or in an error.
    """

    def __init__(self, retry: BoundedRetry, **settings: Any) -> None:
        super().__init__(retry=retry, **settings)
        self.bounded_retry = retry

    def requestJson(  # noqa: N802
        self, verb: str, url: str, *arguments: Any, **options: Any
    ) -> tuple[int, dict[str, Any], str]:
        """Return status, headers and text of an answer.

        Names of headers are in lower case; the text is JSON of the form above, or empty.

        Raises GithubException for an answer of 4xx or 5xx, Unexpected, and what
        `requests` and urllib3 raise.
        """
        return self.repeated(
            verb, lambda: self._json_of(verb, url, *arguments, **options)
        )

    def repeated(self, verb: str, ask: Callable[[], _Value]) -> _Value:
        """Return what `ask` gives.

        Ask again where the answer to a GET broke off, as often as after a reset.
        """
        if verb == "GET":
            tries = self.bounded_retry.total or 0
        else:
            tries = 0
        for attempt in range(tries):
            try:
                return ask()
            except _BROKE_OFF:
                time.sleep(
                    min(
                        self.bounded_retry.backoff_factor * 2**attempt,
                        _LONGEST_PAUSE_SECONDS,
                    )
                )
        return ask()

    def _json_of(
        self, verb: str, url: str, *arguments: Any, **options: Any
    ) -> tuple[int, dict[str, Any], str]:
        status, headers, text = self.checked(verb, url, *arguments, **options)
        if status >= 300:
            raise Unexpected(f"is a redirect ({status})")
        try:
            value = parse_json(text) if text else {}
        except ValueError:
            raise _CutOff("is not JSON") from None
        if not all(
            isinstance(entry, dict)
            for entry in (value if isinstance(value, list) else [value])
        ):
            raise Unexpected("has unexpected data instead of objects")
        return status, headers, text

    def checked(
        self, verb: str, url: str, *arguments: Any, **options: Any
    ) -> tuple[int, dict[str, Any], str]:
        """Status, headers and text of any form, also of a redirect.

        Raises GithubException for 4xx and 5xx.
        """
        status, headers, text = super().requestJson(verb, url, *arguments, **options)
        if status >= 400:
            try:
                raise GithubException(status, parse_json(text), headers)
            except ValueError:
                raise GithubException(status, text, headers) from None
        return status, headers, text


@dataclass(frozen=True)
class Hub:
    """One repository on GitHub, seen with one token."""

    repository: str
    requester: _Requester = field(repr=False, compare=False)
    # the pause before looking again at what an unclear answer left behind
    backoff_seconds: float = 0.5
    timeout_seconds: float = 30  # for connecting and for each silence
    login: str = (
        ""  # of what this token writes, where that is known; empty: GitHub is asked
    )

    @cached_property
    def repo(self) -> Repository:
        """PyGithub's repository.

        Nothing of it, nor of what it gives, is requested before a field is read.
        """
        return Repository(self.requester, url=f"/repos/{self.repository}")

    def issue(self, number: int) -> Issue:
        """Return an issue or pull request, for its comments, labels and events."""
        return self.repo.get_issue(number)

    def close(self) -> None:
        """End all connections."""
        self.requester.close()

    def token_login(self) -> str:
        """Return the login that what this token writes appears under.

        Asked for once; raises NetworkError.
        """
        return self.login or self._login

    @cached_property
    def _login(self) -> str:
        with explain("ask GitHub for the owner of the token", "metadata: read"):
            try:
                return str(self.call("GET", "/user")["login"])
            except GithubException as refused:
                if refused.status in {403, 404} and not _is_rate_limit(refused):
                    return ACTIONS_LOGIN
                raise

    def call(self, verb: str, path: str, **query: Any) -> Any:
        """One request that PyGithub has no method for.

        Its answer is JSON, or nothing (None).

        `path`: from the root of the API with a slash, or from the repository without.
        """
        if path.startswith("/"):
            rooted = path
        else:
            rooted = f"/repos/{self.repository}/{path}"
        text = self.requester.requestJson(verb, rooted, query)[2]
        if text:
            return json.loads(text, object_hook=_Answer)
        return None

    def download(self, path: str, max_bytes: int) -> bytes:
        """Return the bytes that a path of the repository redirects to.

        At a storage, which is not sent the token.
        """
        status, headers, _ = self.requester.checked(
            "GET", f"/repos/{self.repository}/{path}"
        )
        if status < 300:
            raise Unexpected("does not redirect to a storage")
        location = str(headers.get("location", ""))
        if safe_address(location) is None:
            raise Unexpected("redirects to an address that is not https")
        return self.requester.repeated("GET", lambda: self._stored(location, max_bytes))

    def _stored(self, location: str, max_bytes: int) -> bytes:
        """Return the bytes at an address of the storage."""
        data = bytearray()
        with requests.Session() as session:
            for scheme in ("https://", "http://"):
                session.mount(
                    scheme, HTTPAdapter(max_retries=self.requester.bounded_retry)
                )
            try:
                response = session.get(
                    location,
                    headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"},
                    # without it a password of ~/.netrc would be sent
                    auth=lambda request: request,
                    timeout=self.timeout_seconds,
                    allow_redirects=False,
                    stream=True,
                )
            except GithubException as refused:
                raise Unexpected(
                    f"names a storage that answers {refused.status}"
                ) from None
            if response.status_code >= 300:
                raise Unexpected(f"names a storage that answers {response.status_code}")
            for chunk in response.iter_content(_CHUNK_BYTES):
                data += chunk
                if len(data) > max_bytes:
                    raise Unexpected(f"has more than {max_bytes} bytes")
        return bytes(data)


def connect(
    api_url: str,
    token: str,
    repository: str,
    *,
    timeout_seconds: int = 30,
    retries: int = 5,
    max_wait_seconds: float = 120,
    backoff_seconds: float = 0.5,
    login: str = "",
) -> Hub:
    """Return the repository behind an API; nothing is requested yet.

    `api_url`: `https://api.github.com`, or a server's `https://HOST/api/v3`;
    `timeout_seconds`: for connecting, and for each silence of the server;
    `max_wait_seconds`: bound on a wait that GitHub asks for; a longer one is an error
    at once.
    """
    github = Github(
        auth=Auth.Token(token) if token else None,
        base_url=api_url.rstrip("/"),
        timeout=timeout_seconds,
        user_agent=_USER_AGENT,
        per_page=PAGE_ITEMS,
        retry=BoundedRetry(
            total=retries,
            max_rate_limit_wait=max_wait_seconds,
            backoff_factor=backoff_seconds,
            allowed_methods=_SAFE_TO_REPEAT,
            # the last answer is worth more than "too many retries": it says why
            raise_on_status=False,
        ),
        seconds_between_requests=0,
        seconds_between_writes=0,
        lazy=True,
        api_version="2022-11-28",
    )
    return Hub(
        repository=repository,
        requester=_Requester(**github.requester.kwargs),
        backoff_seconds=backoff_seconds,
        timeout_seconds=timeout_seconds,
        login=login,
    )


def required(value: _Value | None, name: str) -> _Value:
    """Return a field that GitHub's documentation promises.

    Raises Unexpected where PyGithub has None for want of it.
    """
    if value is None:
        raise Unexpected(f"has no `{name}`")
    return value


def in_doubt(error: Exception) -> bool:
    """Return whether the request may have been carried out although it looks failed."""
    is_broken = isinstance(error, GithubException) and error.status >= 500
    return is_broken or isinstance(error, _IN_DOUBT) or _is_misread(error)


def _is_misread(error: Exception) -> bool:
    """Return whether an answer could not be followed.

    A key that is not PyGithub's is a fault of this program.
    """
    places = [
        frame.f_globals.get("__name__", "")
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    is_key_of_ours = isinstance(error, KeyError) and not places[-1].startswith(
        "github."
    )
    return isinstance(error, _MISREAD) and not is_key_of_ours


@contextmanager
def explain(action: str, permission: str) -> Iterator[None]:
    """Turns what GitHub, PyGithub and the network throw into one line.

    `action`: completes "cannot …"; `permission`: what the job's token needs for it, as
    in a workflow: `pull-requests: write`.

    Raises:
        NetworkError: with the missing permission, where that may be it. The token is in
            none.
    """
    # `from None`: the errors of requests carry the request, and with it the token.
    try:
        yield
    except IncompletableObject:
        raise _misread(action, "lacks a field") from None
    except GithubException as error:
        raise _refused(action, permission, error) from None
    except (RequestException, HTTPError) as error:
        message = (
            f"cannot {action}: GitHub did not answer:"
            f" {_one_line(str(error) or type(error).__name__)}"
        )
        raise NetworkError(message, hint="run it again") from None
    except Unexpected as error:
        raise _misread(action, str(error)) from None
    except _MISREAD as error:
        if not _is_misread(error):
            raise
        raise _misread(
            action, f"cannot be followed: {type(error).__name__}: {error}"
        ) from None


def _misread(action: str, problem: str) -> NetworkError:
    return NetworkError(
        f"cannot {action}: GitHub's answer {_one_line(problem)}",
        hint="run it again, or check the API URL",
    )


def _refused(action: str, permission: str, error: GithubException) -> NetworkError:
    """Return the error of a refused request, in words that say what to do."""
    status = error.status
    message = _full_message(error)
    if status == 403 and _LOCKED.search(message):
        hint = "unlock it, or read the report in the job summary"
        return NetworkError(f"cannot {action}: the conversation is locked", hint=hint)
    if _is_rate_limit(error):
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

    Such as "Troubleshooting the REST API", or a failed validation.
    """
    details = ", ".join(map(_detail, _errors_of(error)))
    parts = [_message(error) or "without a message", details]
    return _one_line(": ".join(filter(None, parts)))


def _errors_of(error: GithubException) -> list[Any]:
    """Return the list of what GitHub names as wrong; empty where it has none."""
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


def _is_rate_limit(error: GithubException) -> bool:
    """Return whether the request can succeed later, and lacks no permission."""
    headers = error.headers or {}
    exhausted = "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
    is_limit = isinstance(
        error, RateLimitExceededException
    ) or Requester.isRateLimitError(_message(error))
    return error.status == 429 or (error.status == 403 and (exhausted or is_limit))


def _message(error: GithubException) -> str:
    """GitHub's own words, or a proxy's page; empty where there are none."""
    if isinstance(error.data, dict):
        message = error.data.get("message")
    else:
        message = error.data
    if isinstance(message, str):
        return message
    return ""


def _one_line(text: str) -> str:
    """Server's text as one clipped line without anything that looks like a token."""
    line = _TOKEN.sub("…", " ".join(text.split()))
    if len(line) <= _CLIP_CHARACTERS:
        return line
    return f"{line[: _CLIP_CHARACTERS - 1]}…"
