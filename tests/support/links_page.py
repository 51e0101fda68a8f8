"""A page for `pip --find-links` over a real HTTP server: the list of a directory's wheels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from background_server import running

PAGE = "/pip-release-links.html"


@dataclass
class LinksPage:
    """A page that names every wheel of a directory."""

    url: str
    wheels: Path
    # the paths of all requests, in order
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving(wheels: Path) -> Iterator[LinksPage]:
    """Serve the wheels of a directory until the context ends."""

    class Site(SimpleHTTPRequestHandler):
        def send_head(self) -> Any:
            page.asked.append(self.path)
            if self.path == PAGE:
                self.path = "/"
            return super().send_head()

        def log_message(self, *_: object) -> None:
            pass

    with running(partial(Site, directory=str(wheels))) as address:
        page = LinksPage(f"{address}{PAGE}", wheels)
        yield page


def no_other_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this machine's own index and pages out of pip's sight."""
    for name in [
        name
        for name in os.environ
        if name.startswith("PIP_") or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
