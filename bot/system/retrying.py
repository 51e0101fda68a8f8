"""Repeat a request to GitHub: which, how often, and after which wait."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from github import GithubRetry, RateLimitExceededException
from urllib3 import BaseHTTPResponse
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, ResponseError

SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "DELETE"})
"""The methods that are sent again after a broken connection.

PATCH is missing on purpose: each PATCH appends its annotations to the check run.
"""


class BoundedRetry(GithubRetry):
    """A `GithubRetry` with bounded waits that repeats no write that may have been done.

    GitHub carried out nothing where it answers 429, 403 for a rate limit, or 503 with
    Retry-After ("Rate limits for the REST API"): then every request is sent again, if
    the wait is not above `max_rate_limit_wait`.
    """

    def is_retry(
        self, method: str, status_code: int, has_retry_after: bool = False
    ) -> bool:
        """Return whether the request can be sent again.

        `increment` reads a 403's headers and text to decide.
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
            and method not in SAFE_TO_REPEAT
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
