"""HTTP with GitHub: bounded in time, size and number of tries; what comes back is JSON, bytes or one of two errors.

The API is asked through PyGithub, whose answers are taken as they arrived: it builds its objects without looking, and a
field of another type would fail far away. The token goes to the API's own address only; an archive is fetched from the
storage that the API names, without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from github import Auth, Github
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError
from urllib3.exceptions import ProtocolError

from bot.core.codec.nesting import parse_json
from bot.system.retrying import BoundedRetry, Refused

MAX_ANSWER_BYTES = 64 << 20
_CHUNK_BYTES = 64 << 10
_USER_AGENT = "code-size-bot"
_ACCEPT = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Unexpected(Exception):
    """An answer that is not what GitHub's documentation says; the text completes "GitHub's answer …"."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer that is no refusal; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body's value, None for no body; raises Unexpected."""
        try:
            return parse_json(self.body) if self.body else None
        except ValueError:
            raise Unexpected("is no JSON") from None

    @property
    def has_next_page(self) -> bool:
        """What the Link header says."""
        links = requests.utils.parse_header_links(self.headers.get("link", ""))
        return any(link.get("rel") == "next" for link in links)


class Connection:
    """Requests to the API at `api_url`, with one token.

    Args:
        timeout_seconds: for connecting and for each silence; a whole answer may take ten times that.
    """

    def __init__(self, api_url: str, token: str, timeout_seconds: float, retry: BoundedRetry) -> None:
        self._url, self._timeout_seconds, self._retry = api_url.rstrip("/"), timeout_seconds, retry
        self._github = Github(
            auth=Auth.Token(token) if token else None,
            base_url=self._url,
            timeout=timeout_seconds,  # type: ignore[arg-type]  # any number will do
            user_agent=_USER_AGENT,
            retry=retry,
            seconds_between_requests=0,
            seconds_between_writes=0,
            lazy=True,
        )
        self._authorized = {"Authorization": f"Bearer {token}", **_ACCEPT}
        self._session = requests.Session()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry))

    def close(self) -> None:
        """End all connections."""
        self._github.close()
        self._session.close()

    def ask(self, verb: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Answer:
        """One request; raises Refused, Unexpected, and what `requests` and urllib3 raise."""
        answer = self._retried(verb, path, lambda: self._asked(verb, path, body, query))
        if answer.status >= 300:
            raise Unexpected(f"is a redirect ({answer.status})")
        return answer

    def _asked(self, verb: str, path: str, body: Any, query: Mapping[str, str] | None) -> Answer:
        try:
            status, headers, text = self._github.requester.requestJson(verb, path, dict(query or {}), {**_ACCEPT}, body)
        except (RuntimeError, ValueError) as error:  # a redirect to another host, a header that is no number
            raise Unexpected(f"cannot be followed: {error}") from None
        if len(text) > MAX_ANSWER_BYTES:
            raise Unexpected(f"has more than {MAX_ANSWER_BYTES} bytes")
        return _taken(status, headers, text.encode())

    def download(self, path: str, max_bytes: int) -> bytes:
        """The bytes of a path that redirects to a storage, which is not sent the token; raises as `ask` does."""
        answer = self._fetched(f"{self._url}{path}", self._authorized, max_bytes)
        if answer.status < 300:
            return answer.body
        location = answer.headers.get("location", "")
        if not _is_safe(location):
            raise Unexpected("redirects to an address that is not https")
        try:
            found = self._fetched(location, {}, max_bytes)
        except Refused as refused:
            raise Unexpected(f"names a storage that answers {refused.status}") from None
        if found.status >= 300:
            raise Unexpected("redirects twice")
        return found.body

    def _fetched(self, url: str, headers: Mapping[str, str], max_bytes: int) -> Answer:
        return self._retried("GET", url, lambda: self._once(url, headers, max_bytes))

    def _retried(self, verb: str, url: str, once: Callable[[], Answer]) -> Answer:
        """An answer that breaks off is asked for again by the rules for a connection that does."""
        retry = self._retry
        while True:
            try:
                return once()
            except ChunkedEncodingError:
                retry = retry.increment(verb, url, error=ProtocolError("the answer broke off"))
                retry.sleep()

    def _once(self, url: str, headers: Mapping[str, str], max_bytes: int) -> Answer:
        deadline = time.monotonic() + 10 * self._timeout_seconds
        with self._session.get(
            url,
            headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity", **headers},
            auth=lambda request: request,  # without it a password of ~/.netrc would stand in the token's place
            timeout=self._timeout_seconds,
            allow_redirects=False,
            stream=True,
        ) as response:
            body = _read(response, max_bytes, deadline)
        return _taken(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


def _taken(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The answer; raises Refused for one of 4xx or 5xx."""
    if status >= 400:
        raise Refused.of(status, headers, body)
    return Answer(status, headers, body)


def _read(response: requests.Response, max_bytes: int, deadline: float) -> bytes:
    data = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise Unexpected(f"has more than {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise Unexpected("takes too long")
    return bytes(data)


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    plain = parts.scheme == "http" and host in _LOOPBACK
    return bool(host) and "@" not in parts.netloc and (parts.scheme == "https" or plain)
