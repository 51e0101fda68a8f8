"""The connection to GitHub: one repository, one token, bounded retries; and its errors as one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from bot.errors import NetworkError
from bot.publish.connection import Connection, Unexpected
from bot.publish.shapes import rows, text
from bot.system.retrying import BoundedRetry, Refused

ACTIONS_LOGIN = "github-actions[bot]"
"""Author of what a workflow's own `GITHUB_TOKEN` writes; that token may not ask for its user."""

PAGE_ITEMS = 100
"""The most that GitHub gives a page ("Using pagination in the REST API")."""

_MOST_PAGES = 300
_CLIP_CHARACTERS = 300
# "GitHub's token formats": a server or proxy that echoes a request must not get one into a log.
_TOKEN = re.compile(r"(gh[a-z]_|github_pat_|v1\.)\w{10,}|(?i:\b(bearer|token|basic)) [\w.~+/=-]{8,}")


@dataclass(frozen=True)
class Hub:
    """One repository on GitHub, seen with one token.

    Attributes:
        repository: `owner/name`.
        backoff_seconds: the pause before looking again at what an unclear answer left behind.
        login: of what this token writes, where that is known; empty: GitHub is asked.
    """

    repository: str
    client: Connection = field(repr=False, compare=False)
    backoff_seconds: float = 0.5
    login: str = ""

    def token_login(self) -> str:
        """The login that what this token writes appears under; asked for once.

        Raises:
            NetworkError: GitHub did not answer, or refused the token.
        """
        return self.login or self._login

    @cached_property
    def _login(self) -> str:
        with explain("ask GitHub whose token this is", "metadata: read"):
            try:
                return text(self.call("GET", "/user"), "login")
            except Refused as refused:
                if refused.status in {403, 404} and not refused.is_rate_limit:
                    return ACTIONS_LOGIN
                raise

    def call(self, verb: str, path: str, body: dict[str, Any] | None = None, **query: Any) -> Any:
        """One request whose answer is JSON, or nothing (None).

        Args:
            path: from the root of the API with a slash, or from the repository without.
        """
        return self.client.ask(verb, self._rooted(path), body, _plain(query)).json

    def listed(self, path: str, envelope: str = "", most_pages: int = _MOST_PAGES, **query: Any) -> list[Any]:
        """All items of a list that comes in pages, at most `most_pages` of them.

        Args:
            envelope: where in an answer's object the items are; empty where the answer is the list.
        """
        found: list[Any] = []
        for page in range(1, most_pages + 1):
            asked = _plain({**query, "per_page": PAGE_ITEMS, "page": page})
            answer = self.client.ask("GET", self._rooted(path), query=asked)
            items = rows(answer.json, envelope)
            found += items
            if not items or not answer.has_next_page:
                break
        return found

    def download(self, path: str, max_bytes: int) -> bytes:
        """The bytes that a path of the repository leads to."""
        return self.client.download(self._rooted(path), max_bytes)

    def _rooted(self, path: str) -> str:
        return path if path.startswith("/") else f"/repos/{self.repository}/{path}"


def _plain(query: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in query.items()}


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
    """The repository behind an API; nothing is requested yet.

    Args:
        api_url: `https://api.github.com`, or a server's `https://HOST/api/v3`.
        timeout_seconds: for connecting, and for each silence of the server.
        retries: how often one request is sent again.
        max_wait_seconds: bound on all waits of one request together; a longer `Retry-After` is an error at once.
        login: as in Hub.
    """
    retry = BoundedRetry(retries, max_wait_seconds=max_wait_seconds, backoff_seconds=backoff_seconds)
    client = Connection(api_url, token, timeout_seconds, retry)
    return Hub(repository, client, backoff_seconds, login)


def in_doubt(error: Exception) -> bool:
    """True where the request may have been carried out although it looks failed."""
    if isinstance(error, Refused):
        return error.status >= 500
    return isinstance(error, (Unexpected, RequestException, HTTPError))


@contextmanager
def explain(action: str, permission: str) -> Iterator[None]:
    """Turns what GitHub and the network throw into one line.

    Args:
        action: completes "cannot …".
        permission: what the job's token needs for it, as in a workflow: `pull-requests: write`.

    Raises:
        NetworkError: with the missing permission, where that may be it. The token is in none.
    """
    # `from None`: the errors of requests carry the request, and with it the token.
    try:
        yield
    except Refused as error:
        raise _refused(action, permission, error) from None
    except (RequestException, HTTPError) as error:
        what = f"cannot {action}: GitHub did not answer: {_one_line(str(error) or type(error).__name__)}"
        raise NetworkError(what, hint="run it again") from None
    except Unexpected as error:
        what = f"cannot {action}: GitHub's answer {_one_line(str(error))}"
        raise NetworkError(what, hint="run it again, or check the API URL") from None


def _refused(action: str, permission: str, error: Refused) -> NetworkError:
    status, said = error.status, _said(error)
    if not error.is_rate_limit and (status == 404 or (status == 403 and "already running" not in said)):
        what = f"403 {said}" if status == 403 else "not found, or the token may not see it"
        return NetworkError(f"cannot {action}: {what}", permission=permission)
    reasons = {
        401: ("the token was refused", "check the input `github-token`"),
        410: ("it has expired or was removed", "run the workflow again"),
    }
    what, hint = reasons.get(status, (f"{status} {said}", ""))
    if error.is_rate_limit:
        after = error.headers.get("retry-after")
        waiting = f" and asks to wait {_one_line(after)} seconds" if after else ""
        what, hint = f"GitHub limits the rate of requests{waiting}: {status} {said}", "run it again later"
    elif status >= 500:
        what, hint = f"GitHub did not answer: {status} {said}", "run it again"
    return NetworkError(f"cannot {action}: {what}", hint=hint)


def _said(error: Refused) -> str:
    """GitHub's message and what it names as wrong ("Troubleshooting the REST API", validation failed)."""
    wrong = error.data.get("errors") if isinstance(error.data, dict) else None
    details = [_detail(item) for item in wrong] if isinstance(wrong, list) else []
    return _one_line(": ".join([error.message or "without a message", *filter(None, [", ".join(details)])]))


def _detail(item: object) -> str:
    if not isinstance(item, dict):
        return str(item)
    named = " ".join(str(item[key]) for key in ("resource", "field", "code") if key in item)
    return str(item.get("message") or named)


def _one_line(text: str) -> str:
    """Server's text as one clipped line without anything that looks like a token."""
    line = _TOKEN.sub("…", " ".join(text.split()))
    return line if len(line) <= _CLIP_CHARACTERS else f"{line[: _CLIP_CHARACTERS - 1]}…"
