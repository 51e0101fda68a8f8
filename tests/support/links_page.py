"""A page for `pip --find-links` over a real HTTP server, written as IREE's own page of its nightly releases is."""

from __future__ import annotations

import html
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PAGE = "/pip-release-links.html"


@dataclass
class LinksPage:
    """A page that names every wheel of a directory, and other files of releases, which pip passes over."""

    url: str
    wheels: Path
    asked: list[str] = field(default_factory=list)  # the paths of all requests, in order

    def text(self) -> str:
        names = [*sorted(path.name for path in self.wheels.glob("*.whl")), "iree-dist-linux-x86_64.tar.xz"]
        site = self.url.removesuffix(PAGE)
        links = (
            f"    <a href={html.escape(f'{site}/download/{name}')}>{html.escape(name)}</a><br />" for name in names
        )
        return "\n".join(["<!DOCTYPE html>", "<html>", "  <body>", *links, "  </body>", "</html>", ""])


@contextmanager
def serving(wheels: Path) -> Iterator[LinksPage]:
    """Serve the wheels of a directory until the context ends."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page.asked.append(self.path)
            file = wheels / self.path.rpartition("/")[2]
            is_page = self.path == PAGE
            if not is_page and not file.is_file():
                self.send_error(404)
                return
            data = page.text().encode() if is_page else file.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if is_page else "application/octet-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_HEAD = do_GET  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        page = LinksPage(f"http://127.0.0.1:{server.server_port}{PAGE}", wheels)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield page
        server.shutdown()


def no_other_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this machine's own index and pages out of pip's sight."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
