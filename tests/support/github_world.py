"""A fake GitHub with one pull request, and the program's connection to it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from fake_github import FakeGitHub

from bot.core.check_run import Annotation, CheckRun
from bot.errors import NetworkError
from bot.github.checks import Result, publish_check
from bot.github.comments import publish
from bot.system.hub import Hub, connect

OURS = "github-actions[bot]"
HEAD = "a" * 40
LABEL = "code-size-approved"
MARKER = "<!-- code-size: default -->"
BODY = f"{MARKER}\n## Code size\n\nall the same"
COMMENTS = r"/issues/12/comments$"
ONE = r"/issues/comments/\d+$"
PULL = r"/pulls/12$"
CHECK = r"/check-runs$"
MORE_OF_IT = r"/check-runs/\d+$"
DETAILS = "https://github.com/octo/repo/actions/runs/7"


@dataclass(frozen=True)
class World:
    """A server with pull request 12, its token for us, and our connection."""

    github: FakeGitHub
    token: str
    hub: Hub

    def connect(self, token: str = "", **settings: float) -> Hub:
        defaults = {
            "timeout_seconds": 10,
            "retries": 2,
            "max_wait_seconds": 5,
            "backoff_seconds": 0.01,
        }
        return connect(
            self.github.url,
            token or self.token,
            "octo/repo",
            **{**defaults, **settings},  # type: ignore[arg-type]
        )

    def may(self, **permissions: str) -> Hub:
        return self.connect(
            self.github.token(permissions={"contents": "read", **permissions})
        )

    def error(self, action: Callable[[], object]) -> str:
        """The line of the NetworkError that the action ends with.

        The token is in nothing that could be printed.
        """
        with pytest.raises(NetworkError) as caught:
            action()
        error = caught.value
        texts = [
            str(error),
            repr(error),
            repr(error.args),
            repr(vars(error)),
            *traceback.format_exception(error),
        ]
        assert error.__suppress_context__ or error.__context__ is None
        assert error.__cause__ is None and "\n" not in error.line
        assert self.token not in "".join(texts)
        return error.line

    def requests(self, method: str, path_end: str) -> int:
        return sum(
            exchange["method"] == method and exchange["path"].endswith(path_end)
            for exchange in self.github.traffic
        )

    def put(
        self,
        body: str = BODY,
        *,
        create: bool = True,
        current: Callable[[], bool] = lambda: True,
        hub: Hub | None = None,
    ) -> str:
        return publish(
            hub or self.hub, 12, MARKER, body, create=create, still_current=current
        )

    def ours(self, *texts: str) -> list[int]:
        return [
            self.github.add_comment(
                12, OURS, text if "<" in text else f"{MARKER}\n{text}"
            )
            for text in texts
        ]

    @property
    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.github.comments(12)]

    @property
    def lines(self) -> list[int]:
        """Of the annotations of the newest check."""
        return [run["start_line"] for run in self.github.check_runs[-1]["annotations"]]


def check(count: int) -> CheckRun:
    notes = (
        Annotation(
            path="models/a.mlir",
            line=1 + n,
            level="failure",
            title=f"title {n}",
            message=f"message {n}",
        )
        for n in range(count)
    )
    return CheckRun(
        name="Code size",
        conclusion="failure",
        title="2 findings",
        summary="## Summary",
        annotations=tuple(notes),
    )


def write_check(hub: Hub, written: CheckRun) -> None:
    publish_check(
        hub,
        head_sha=HEAD,
        check=written,
        details_url=DETAILS,
        result=Result(12, written.conclusion),
    )
