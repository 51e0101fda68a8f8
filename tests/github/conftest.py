"""A repository on a fake GitHub, whose compiler is a fake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from action_stage import Stage
from fake_github import FakeGitHub


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with FakeGitHub("octo/repo") as hub:
        stage = Stage.create(tmp_path, hub)
        stage.compiler("one")
        yield stage
        hub.assert_contract()
