"""A repository on a fake GitHub, whose compiler is a fake."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import Stage
from fake_github import FakeGitHub
from github_world import HEAD, World
from replacing import replace

from bot.system.hub import connect


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        stage.compiler("one")
        yield stage
        hub.assert_contract()


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> Iterator[World]:
    """At its end the traffic is checked against GitHub's own description, and the log searched for the token."""
    caplog.set_level(logging.DEBUG)
    with FakeGitHub("octo/repo") as github:
        github.add_pull(12, HEAD)
        token = github.token()
        opened_world = World(github, token, connect(github.url, token, "octo/repo"))
        opened_world = replace(opened_world, hub=opened_world.connect())
        yield opened_world
        opened_world.hub.close()
        assert token not in repr(opened_world.hub) and token not in caplog.text
        github.assert_contract()
