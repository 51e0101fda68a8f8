"""When a request to GitHub is sent again, and after how long.

A request that may have been carried out although no good answer came (a 5xx, a broken connection) is sent again only
where twice is as good as once. Where GitHub says that it did nothing (429, 403 for a rate limit, 503 with Retry-After)
every request is. The waits follow "Rate limits for the REST API" and "Best practices for using the REST API" of
GitHub's documentation, and together never exceed a bound: what would is an answer like any other, and an error.
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, ResponseError
from urllib3.util.retry import Retry

from bot.core.codec.nesting import parse_json

SECONDARY_LIMIT_SECONDS = 60.0
"""What to wait for a rate limit that names no time ("wait for at least one minute before retrying")."""

# PATCH is missing on purpose: a check run appends the annotations of each.
_SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "DELETE"})
_MOST_SAID_BYTES = 1 << 20


class Refused(Exception):
    """An answer of 4xx or 5xx.

    Attributes:
        headers: with names in lower case.
        data: the body: of any JSON type, or text.
    """

    def __init__(self, status: int, headers: Mapping[str, str] | None = None, data: Any = None) -> None:
        super().__init__(status)
        self.status, self.headers, self.data = status, headers or {}, data

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], body: bytes) -> Refused:
        """The answer with what its body says: JSON, or a proxy's page as text."""
        try:
            said = parse_json(body)
        except ValueError:
            said = body.decode("utf-8", "replace")
        return cls(status, {name.lower(): value for name, value in headers.items()}, said)

    @property
    def message(self) -> str:
        """GitHub's own words; empty where there are none."""
        said = self.data.get("message") if isinstance(self.data, dict) else self.data
        return said if isinstance(said, str) else ""

    @property
    def is_rate_limit(self) -> bool:
        """True where the request can succeed later, and lacks no permission."""
        if self.status == 429:
            return True
        from github.Requester import Requester  # takes 17 MiB and a tenth of a second, and downloads need neither

        exhausted = "retry-after" in self.headers or self.headers.get("x-ratelimit-remaining") == "0"
        return self.status == 403 and (exhausted or Requester.isRateLimitError(self.message))


class BoundedRetry(Retry):
    """`urllib3.Retry` that knows what GitHub did not do, and how long it may wait in all.

    PyGithub's own bounds each wait, not their sum, and repeats either any POST or not even one that was refused.

    Args:
        total: how often one request is sent again.
        max_wait_seconds: the bound on all waits of one request together.
        backoff_seconds: the first wait where GitHub names none; doubled each time.
        waited_seconds: what was waited so far, the coming wait of `wait_seconds` included.
    """

    def __init__(
        self,
        total: int = 5,
        *,
        max_wait_seconds: float = 120.0,
        backoff_seconds: float = 0.5,
        waited_seconds: float = 0.0,
        wait_seconds: float = 0.0,
        **others: Any,
    ) -> None:
        self.max_wait_seconds, self.backoff_seconds = max_wait_seconds, backoff_seconds
        self.waited_seconds, self.wait_seconds = waited_seconds, wait_seconds
        # The last answer is worth more than "too many retries": it says why.
        super().__init__(total, **{**others, "raise_on_status": False, "allowed_methods": _SAFE_TO_REPEAT})

    def new(self, **changed: Any) -> BoundedRetry:
        """A copy with some values changed."""
        mine = {
            "max_wait_seconds": self.max_wait_seconds,
            "backoff_seconds": self.backoff_seconds,
            "waited_seconds": self.waited_seconds,
        }
        return super().new(**{**mine, **changed})

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        """True where the request can be sent again; of a 403 only its headers and its text tell (`increment`)."""
        if status_code in {403, 429} or (status_code == 503 and has_retry_after):
            return True
        return status_code >= 500 and method.upper() in _SAFE_TO_REPEAT

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> BoundedRetry:
        """The state for the next try.

        Raises:
            MaxRetryError: no try is left, or the wait would exceed the bound; urllib3 then returns the last answer.
            Refused: a 403 that is no rate limit, or one that cannot be waited for.
        """
        if error is not None and not isinstance(error, ConnectTimeoutError) and method not in _SAFE_TO_REPEAT:
            raise error
        refusal = None
        wait_seconds = asked_wait_seconds(response.headers, time.time()) if response is not None else None
        if response is not None and response.status == 403 and wait_seconds is None:
            refusal, wait_seconds = _rate_limit(response), SECONDARY_LIMIT_SECONDS
        if wait_seconds is None:
            wait_seconds = self.backoff_seconds * 2 ** len(self.history)
        try:
            if self.waited_seconds + wait_seconds > self.max_wait_seconds:
                too_long = error or ResponseError("the wait would be too long")
                raise MaxRetryError(_pool, url, too_long)  # type: ignore[arg-type]
            following = super().increment(method, url, response, error, _pool, _stacktrace)
        except MaxRetryError:
            if refusal is not None:  # its text has been read: the answer cannot be returned any more
                raise refusal from None
            raise
        return following.new(wait_seconds=wait_seconds, waited_seconds=self.waited_seconds + wait_seconds)

    def sleep(self, _response: BaseHTTPResponse | None = None) -> None:
        """Waits for what `increment` found."""
        time.sleep(self.wait_seconds)


def asked_wait_seconds(headers: Mapping[str, str], now_seconds: float) -> float | None:
    """How long GitHub asks to wait; None where the headers do not say.

    `Retry-After` is in seconds or a date (RFC 9110, 10.2.3). Without it an exhausted `X-RateLimit-Remaining` stands for
    the time in `X-RateLimit-Reset` (seconds of the epoch), plus one as its fraction is not told.
    """
    after, reset = headers.get("Retry-After", "").strip(), headers.get("X-RateLimit-Reset", "").strip()
    if after.isdecimal():
        return float(after)
    if date := email.utils.parsedate_tz(after) if after else None:
        return max(0.0, email.utils.mktime_tz(date) - now_seconds)
    if headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
        return max(0.0, int(reset) - now_seconds) + 1
    return None


def _rate_limit(response: BaseHTTPResponse) -> Refused:
    """The 403 as a rate limit; any other 403 is raised as it is, since only its text tells them apart."""
    refusal = Refused.of(response.status, response.headers, response.read(_MOST_SAID_BYTES, decode_content=True))
    if not refusal.is_rate_limit:
        raise refusal
    return refusal
