"""The shapes of a request and its answer, GitHub's error object, and pages with their Link header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from .state import Token

_DEFAULT_PAGE, _MAX_PAGE = 30, 100


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is below the API root; `url` is its address without the query."""

    method: str
    path: str
    url: str
    query: Mapping[str, str]
    body: Any
    token: Token

    @property
    def per_page(self) -> int:
        return min(_MAX_PAGE, max(1, _number(self.query.get("per_page"), _DEFAULT_PAGE)))

    @property
    def page(self) -> int:
        return max(1, _number(self.query.get("page"), 1))


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: `body` is JSON, or None for none."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """An answer of 4xx in GitHub's form."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, error(message))


def error(message: str) -> dict[str, str]:
    return {"message": message, "documentation_url": "https://docs.github.com/rest"}


def page_of(request: Request, items: Sequence[Any], envelope: str = "") -> Reply:
    """The page asked for; with `envelope`, in an object with `total_count` and the items under that name."""
    start = (request.page - 1) * request.per_page
    shown = list(items[start : start + request.per_page])
    body = {"total_count": len(items), envelope: shown} if envelope else shown
    return Reply(200, body, _link(request, len(items)))


def _link(request: Request, total: int) -> dict[str, str]:
    last = max(1, -(-total // request.per_page))
    back = {"prev": request.page - 1, "first": 1} if request.page > 1 else {}
    forth = {"next": request.page + 1, "last": last} if request.page < last else {}
    links = [_one_link(request, rel, page) for rel, page in {**back, **forth}.items()]
    return {"Link": ", ".join(links)} if links else {}


def _one_link(request: Request, rel: str, page: int) -> str:
    query = urlencode({**request.query, "page": str(page)})
    return f'<{request.url}?{query}>; rel="{rel}"'


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default
