"""HTTP with GitHub: bounded in time, size and number of tries; what comes back is JSON, bytes or one of two errors.

The token goes to the API's own address only, and redirects are followed by nobody but `Connection.download`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError
from urllib3.exceptions import ProtocolError

from bot.publish.retrying import BoundedRetry, Refused

MAX_ANSWER_BYTES = 64 << 20
_CHUNK_BYTES = 64 << 10
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
        return _parsed(self.body) if self.body else None

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
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        self._session = requests.Session()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry))

    def close(self) -> None:
        """End all connections."""
        self._session.close()

    def ask(self, verb: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Answer:
        """One request; raises Refused, Unexpected, and what `requests` and urllib3 raise."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if data is None else {**self._headers, "Content-Type": "application/json"}
        answer = self._answer(verb, f"{self._url}{path}", headers, MAX_ANSWER_BYTES, data=data, params=query)
        if answer.status >= 300:
            raise Unexpected(f"is a redirect ({answer.status})")
        return answer

    def download(self, path: str, max_bytes: int) -> bytes:
        """The bytes of a path that redirects to a storage, which is not sent the token; raises as `ask` does."""
        answer = self._answer("GET", f"{self._url}{path}", self._headers, max_bytes)
        if answer.status < 300:
            return answer.body
        location = answer.headers.get("location", "")
        if not _is_safe(location):
            raise Unexpected("redirects to an address that is not https")
        try:
            found = self._answer("GET", location, {}, max_bytes)
        except Refused as refused:
            raise Unexpected(f"names a storage that answers {refused.status}") from None
        if found.status >= 300:
            raise Unexpected("redirects twice")
        return found.body

    def _answer(self, verb: str, url: str, headers: Mapping[str, str], max_bytes: int, **more: Any) -> Answer:
        """An answer that breaks off is asked for again by the rules for a connection that does."""
        retry = self._retry
        while True:
            try:
                return self._once(verb, url, headers, max_bytes, **more)
            except ChunkedEncodingError:
                retry = retry.increment(verb, url, error=ProtocolError("the answer broke off"))
                retry.sleep()

    def _once(self, verb: str, url: str, headers: Mapping[str, str], max_bytes: int, **more: Any) -> Answer:
        deadline = time.monotonic() + 10 * self._timeout_seconds
        with self._session.request(
            verb,
            url,
            headers={"User-Agent": "code-size-bot", "Accept-Encoding": "identity", **headers},
            auth=_keep_headers,
            timeout=self._timeout_seconds,
            allow_redirects=False,
            stream=True,
            **more,
        ) as response:
            body = _read(response, max_bytes, deadline)
        told = {name.lower(): value for name, value in response.headers.items()}
        if response.status_code >= 400:
            raise Refused(response.status_code, told, _said(body))
        return Answer(response.status_code, told, body)


def _keep_headers(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Without it `requests` would put a password of ~/.netrc in the token's place."""
    return request


def _read(response: requests.Response, max_bytes: int, deadline: float) -> bytes:
    data = bytearray()
    for chunk in response.iter_content(_CHUNK_BYTES):
        data += chunk
        if len(data) > max_bytes:
            raise Unexpected(f"has more than {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise Unexpected("takes too long")
    return bytes(data)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Unexpected("is no JSON") from None


def _said(body: bytes) -> Any:
    """What a refusal says: JSON, or a proxy's page as text."""
    try:
        return _parsed(body)
    except Unexpected:
        return body.decode("utf-8", "replace")


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    plain = parts.scheme == "http" and host in _LOOPBACK
    return bool(host) and "@" not in parts.netloc and (parts.scheme == "https" or plain)
