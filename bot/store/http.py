"""GET requests to GitHub: bounded in time, size and number, and with errors that say which permission is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import requests

from bot.errors import NetworkError

ATTEMPTS = 4
LONGEST_PAUSE_SECONDS = 60.0
_CHUNK_BYTES = 64 << 10
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PERMISSION = "give the job permissions: actions: read"
_REASONS: Mapping[int, tuple[str, str]] = {
    401: ("the token is not valid (401)", _PERMISSION),
    403: ("the token may not read artifacts (403)", _PERMISSION),
    404: ("not found, or not visible to the token (404)", _PERMISSION),
    410: ("the artifact has expired (410)", "run the workflow that made it again"),
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Client:
    """How to ask: `token` goes to `api_url` only.

    Attributes:
        timeout_seconds: for connecting and for each silence; a whole answer may take ten times that.
    """

    api_url: str
    token: str
    timeout_seconds: float = 30
    sleep: Callable[[float], None] = time.sleep

    def retried(self, what: str, ask: Callable[[], T]) -> T:
        """Call `ask` until it is answered; raises NetworkError naming `what` once that is hopeless."""
        for attempt in range(ATTEMPTS):
            try:
                return ask()
            except _Again as again:
                problem, pause = str(again), again.pause_seconds
            except (requests.RequestException, OSError) as error:
                problem, pause = f"no answer ({type(error).__name__})", None
            pause = 0.5 * 2**attempt if pause is None else pause
            if pause > LONGEST_PAUSE_SECONDS or attempt == ATTEMPTS - 1:
                break
            self.sleep(pause)
        raise NetworkError(problem, where=what, mend="run the job again later")

    def get(self, url: str, what: str, *, with_token: bool, parameters: Mapping[str, str] | None = None) -> Answer:
        """One GET that follows no redirect; raises NetworkError for a refusal, and what `retried` understands."""
        response = requests.get(
            url,
            params=parameters,
            headers=self._headers if with_token else {"Accept-Encoding": "identity"},
            auth=lambda request: request,  # else requests would take a password from ~/.netrc
            timeout=self.timeout_seconds,
            allow_redirects=False,
            stream=True,
        )
        try:
            _check(response, what)
        except BaseException:
            response.close()
            raise
        return Answer(response, time.monotonic() + 10 * self.timeout_seconds, what)

    @property
    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Accept-Encoding": "identity",
        }


class _Again(Exception):
    """An answer that may be another one later."""

    def __init__(self, problem: str, pause_seconds: float | None) -> None:
        super().__init__(problem)
        self.pause_seconds = pause_seconds


def _pause_seconds(response: requests.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


def _check(response: requests.Response, what: str) -> None:
    status, pause = response.status_code, _pause_seconds(response)
    if status == 429 or status >= 500 or (status == 403 and pause is not None):
        raise _Again(f"GitHub answers {status}", pause)
    if status >= 400:
        problem, mend = _REASONS.get(status, (f"GitHub answers {status}", ""))
        raise NetworkError(problem, where=what, mend=mend)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer whose body was not read yet."""

    response: requests.Response
    deadline: float
    what: str

    @property
    def location(self) -> str | None:
        """Where a redirect leads; None for none. Raises NetworkError for an address that is not safe."""
        if not 300 <= self.response.status_code < 400:
            return None
        self.response.close()
        url = self.response.headers.get("Location", "")
        if not _is_safe(url):
            raise NetworkError("GitHub redirects to an address that is not https", where=self.what)
        return url

    def read(self, max_bytes: int) -> bytes:
        """The body; raises NetworkError where it has more bytes or takes too long."""
        data = bytearray()
        with self.response:
            for chunk in self.response.iter_content(_CHUNK_BYTES):
                data += chunk
                if len(data) > max_bytes:
                    raise NetworkError(f"the answer has more than {max_bytes} bytes", where=self.what)
                if time.monotonic() > self.deadline:
                    raise NetworkError("the answer takes too long", where=self.what)
        return bytes(data)


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    plain = parts.scheme == "http" and host in _LOOPBACK
    return bool(host) and "@" not in parts.netloc and (parts.scheme == "https" or plain)
