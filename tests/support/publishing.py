"""A fake GitHub and a connection to it, as the tests of `bot.github` need them; the token is looked for everywhere."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from fake_github import FakeGitHub

from bot.errors import NetworkError
from bot.system.hub import Hub, connect

OURS = "github-actions[bot]"
HEAD = "a" * 40


@dataclass(frozen=True)
class World:
    """A server, its token for us, and our connection."""

    github: FakeGitHub
    token: str
    hub: Hub

    def connect(
        self,
        *,
        token: str | None = None,
        timeout_seconds: int = 10,
        retries: int = 2,
        max_wait_seconds: float = 5,
        backoff_seconds: float = 0.01,
    ) -> Hub:
        """A further connection."""
        return connect(
            self.github.url,
            self.token if token is None else token,
            "octo/repo",
            timeout_seconds=timeout_seconds,
            retries=retries,
            max_wait_seconds=max_wait_seconds,
            backoff_seconds=backoff_seconds,
        )

    def error(self, action: Callable[[], object]) -> str:
        """The line of the NetworkError that the action ends with; the token is in nothing that could be printed."""
        with pytest.raises(NetworkError) as caught:
            action()
        error = caught.value
        shown = [str(error), repr(error), repr(error.args), repr(vars(error)), *traceback.format_exception(error)]
        assert error.__suppress_context__ and error.__cause__ is None
        assert self.token not in "".join(shown)
        assert "\n" not in error.line
        return error.line

    def requests(self, method: str, path_end: str) -> int:
        """How many requests of this kind reached the server."""
        return sum(one["method"] == method and one["path"].endswith(path_end) for one in self.github.traffic)


@contextmanager
def opened(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    """A world with pull request 12; at its end its traffic is checked, and the log searched for the token."""
    caplog.set_level(logging.DEBUG)
    with FakeGitHub("octo/repo") as github:
        github.add_pull(12, HEAD)
        token = github.token()
        hub = connect(
            github.url, token, "octo/repo", timeout_seconds=10, retries=2, max_wait_seconds=5, backoff_seconds=0.01
        )
        yield World(github, token, hub)
        hub.close()
        assert token not in repr(hub) and token not in caplog.text
        github.assert_contract()
