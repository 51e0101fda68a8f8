"""Send requests to one repository on GitHub, and read each answer as a typed row.

The token goes to the API's own address only. An archive is fetched without it from the
storage that the API names.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
import requests
from github import Auth, Github, GithubException, set_log_level
from github.Requester import Requester
from requests.adapters import HTTPAdapter
from requests.exceptions import (
    ChunkedEncodingError,
    ContentDecodingError,
    RequestException,
)
from requests.utils import parse_header_links
from urllib3.exceptions import HTTPError

from bot.core.json_text import decoder, parse_json
from bot.core.record import Small
from bot.system.credentials import safe_address
from bot.system.refusals import Unexpected, explain, is_rate_limit
from bot.system.retrying import SAFE_TO_REPEAT, BoundedRetry

ACTIONS_LOGIN = "github-actions[bot]"
"""Author of what a workflow's own `GITHUB_TOKEN` writes.

That token may not ask for its user.
"""

# The most that GitHub gives a page ("Using pagination in the REST API")
PAGE_ITEMS = 100

_USER_AGENT = "code-size-bot"
_CHUNK_BYTES = 64 << 10
_LONGEST_PAUSE_SECONDS = 8.0
_Value = TypeVar("_Value")

# PyGithub prints what it asks again, and refusals that are expected. Errors have what
# matters in one line.
set_log_level(logging.WARNING)


class _CutOff(Unexpected):
    """An answer that is not JSON, as when its end is missing."""


# urllib3 tries a request again until its answer begins; after that the connection may
# still break.
_BROKE_OFF = (ChunkedEncodingError, ContentDecodingError, _CutOff)


class Account(Small, frozen=True):
    """A user or an app."""

    login: str


class _Answer(NamedTuple):
    """An answer of the API; the names of headers are in lower case."""

    status: int
    headers: dict[str, Any]
    text: str

    def require_direct(self) -> None:
        """Raise Unexpected for a redirect."""
        if self.status >= 300:
            raise Unexpected(f"is a redirect ({self.status})")

    def row(self, kind: type[_Value]) -> _Value:
        """Return the value of the text."""
        self.require_direct()
        try:
            value: _Value = decoder(kind).decode(self.text)
        except msgspec.ValidationError as error:
            # A value that does not fit may stand before the place of a cut.
            self.require_whole()
            raise Unexpected(f"has unexpected data: {error}") from None
        except (msgspec.DecodeError, RecursionError):
            raise _CutOff("is not JSON") from None
        return value

    def require_whole(self) -> None:
        """Raise Unexpected for a text that is not JSON."""
        try:
            parse_json(self.text)
        except ValueError:
            raise _CutOff("is not JSON") from None


@dataclass(frozen=True)
class Hub:
    """One repository on GitHub, seen with one token.

    A path of a request begins below the repository, or with a slash at the root of the
    API. Each method raises GithubException for an answer of 4xx or 5xx, Unexpected for
    another one that does not fit, and what `requests` and urllib3 raise.
    """

    repository: str
    requester: Requester = field(repr=False, compare=False)
    retry: BoundedRetry = field(repr=False, compare=False)
    timeout_seconds: float = 30  # for connecting and for each silence
    # the token's login; empty: ask GitHub
    login: str = ""

    def get(self, kind: type[_Value], path: str, /, **query: str | int) -> _Value:
        """Return the answer to a GET."""
        return self._read(kind, path, query)[0]

    def find(
        self, kind: type[_Value], path: str, missing: tuple[int, ...] = (404,)
    ) -> _Value | None:
        """Return the answer to a GET; None if its status says that nothing is there."""
        try:
            return self.get(kind, path)
        except GithubException as refused:
            if refused.status in missing:
                return None
            raise

    def rows(
        self, kind: type[list[_Value]], path: str, /, **query: str | int
    ) -> list[_Value]:
        """Return the rows of all pages of a list."""
        return list(chain.from_iterable(self.pages(kind, path, **query)))

    def pages(
        self, kind: type[_Value], path: str, /, **query: str | int
    ) -> Iterator[_Value]:
        """Yield the pages of a list; one of them is a `kind`."""
        place = path
        parameters = {**query, "per_page": PAGE_ITEMS}
        while place:
            page, answer = self._read(kind, place, parameters)
            yield page
            place = self._next_page(answer)
            parameters = {}

    def write(self, verb: str, kind: type[_Value], path: str, /, **body: Any) -> _Value:
        """Create or change something, and return its new state."""
        return self._sent(verb, path, body=body).row(kind)

    def delete(self, path: str) -> None:
        """Delete something."""
        self._sent("DELETE", path).require_direct()

    def download(self, path: str, max_bytes: int) -> bytes:
        """Return the bytes that a path of the repository redirects to.

        They are at a storage, which is not sent the token.
        """
        answer = self._sent("GET", path)
        if answer.status < 300:
            raise Unexpected("does not redirect to a storage")
        location = str(answer.headers.get("location", ""))
        if safe_address(location) is None:
            raise Unexpected("redirects to an address that is not https")
        return self._repeated(lambda: self._stored(location, max_bytes))

    def pause(self, times: int = 1) -> None:
        """Wait before checking whether a write with an unclear answer was done."""
        time.sleep(self.retry.backoff_factor * times)

    def close(self) -> None:
        """End all connections."""
        self.requester.close()

    def token_login(self) -> str:
        """Return the login that GitHub shows as the author of what this token writes.

        GitHub is asked at most once. Raises NetworkError.
        """
        return self.login or self._login

    @cached_property
    def _login(self) -> str:
        with explain("ask GitHub for the owner of the token", "metadata: read"):
            try:
                return self.get(Account, "/user").login
            except GithubException as refused:
                if refused.status in {403, 404} and not is_rate_limit(refused):
                    return ACTIONS_LOGIN
                raise

    def _read(
        self, kind: type[_Value], path: str, query: dict[str, str | int]
    ) -> tuple[_Value, _Answer]:
        """Return the value of the answer to a GET, and the answer."""

        def read() -> tuple[_Value, _Answer]:
            answer = self._sent("GET", path, query)
            return answer.row(kind), answer

        return self._repeated(read)

    def _sent(
        self,
        verb: str,
        path: str,
        query: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
    ) -> _Answer:
        """Return an answer, also a redirect."""
        if path.startswith(("/", "https://", "http://")):
            address = path
        else:
            address = f"/repos/{self.repository}/{path}"
        try:
            answer = _Answer(
                *self.requester.requestJson(verb, address, query, input=body)
            )
        except (RequestException, HTTPError):
            raise
        except (OverflowError, RuntimeError, ValueError) as error:
            # PyGithub refuses a redirect to another host, and headers that are not
            # numbers.
            problem = f"cannot be followed: {type(error).__name__}: {error}"
            raise Unexpected(problem) from None
        if answer.status < 400:
            return answer
        try:
            data = parse_json(answer.text)
        except ValueError:
            data = answer.text
        raise GithubException(answer.status, data, answer.headers)

    def _repeated(self, ask: Callable[[], _Value]) -> _Value:
        """Return the result of `ask`.

        Ask again if the answer broke off, up to `retry.total` times.
        """
        for attempt in range(self.retry.total or 0):
            try:
                return ask()
            except _BROKE_OFF:
                pause = self.retry.backoff_factor * 2**attempt
                time.sleep(min(pause, _LONGEST_PAUSE_SECONDS))
        return ask()

    def _next_page(self, answer: _Answer) -> str:
        """Return the address of the page after an answer; empty after the last one."""
        for link in parse_header_links(answer.headers.get("link", "")):
            if link.get("rel") == "next":
                self._require_own_host(link["url"])
                return link["url"]
        return ""

    def _require_own_host(self, address: str) -> None:
        """Raise Unexpected for a page of another server."""
        try:
            host = urlsplit(address).hostname
        except ValueError:
            host = None
        if host != self.requester.hostname:
            raise Unexpected(f"cannot be followed: its next page is at {address}")

    def _stored(self, location: str, max_bytes: int) -> bytes:
        """Return the bytes at an address of the storage."""
        data = bytearray()
        with requests.Session() as session:
            for scheme in ("https://", "http://"):
                session.mount(scheme, HTTPAdapter(max_retries=self.retry))
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
    retry = BoundedRetry(
        total=retries,
        max_rate_limit_wait=max_wait_seconds,
        backoff_factor=backoff_seconds,
        allowed_methods=SAFE_TO_REPEAT,
        # the last answer is worth more than "too many retries": it says why
        raise_on_status=False,
    )
    github = Github(
        auth=Auth.Token(token) if token else None,
        base_url=api_url.rstrip("/"),
        timeout=timeout_seconds,
        user_agent=_USER_AGENT,
        retry=retry,
        seconds_between_requests=0,
        seconds_between_writes=0,
        api_version="2022-11-28",
    )
    return Hub(
        repository=repository,
        requester=github.requester,
        retry=retry,
        timeout_seconds=timeout_seconds,
        login=login,
    )
