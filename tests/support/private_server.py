"""Serve a repository over HTTP with git's own server; a private one refuses readers without a token."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def header_of(token: str) -> str:
    """The header that actions/checkout and the bot send."""
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return f"AUTHORIZATION: basic {secret}"


@dataclass
class GitServer:
    """Where the repository is, and who asked for it."""

    url: str  # of the server
    refused: list[str] = field(default_factory=list)  # paths that somebody without a token asked for
    pushed_by: list[str] = field(default_factory=list)  # the tokens that pushed


@contextmanager
def serving(root: Path, tokens: Mapping[str, bool], *, public: bool = False) -> Iterator[GitServer]:
    """Serve the bare repositories below `root`; `tokens`: token → whether it may push.

    `public`: everybody may read without a token.
    """
    known = {header_of(token).partition(": ")[2]: token for token in tokens}
    made = GitServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(b"")

        def do_POST(self) -> None:
            self.answer(self.body())

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            token = known.get(self.headers.get("Authorization") or "")
            is_push = "git-receive-pack" in self.path
            may_read = public or token is not None
            may_push = token is not None and tokens[token]
            is_allowed = may_push if is_push else may_read
            if not is_allowed:
                made.refused.append(path)
                self.reply(403 if token else 401, [("WWW-Authenticate", 'Basic realm="x"')], b"")
                return
            if is_push and token is not None and self.command == "POST":
                made.pushed_by.append(token)
            environment = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "REMOTE_USER": "tester",
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            }
            argv = ["git", "http-backend"]
            said = subprocess.run(argv, input=body, env=environment, capture_output=True, check=True).stdout
            head, _, content = said.partition(b"\r\n\r\n")
            fields = [line.decode().partition(": ") for line in head.split(b"\r\n")]
            status = next((int(value.split()[0]) for name, _, value in fields if name == "Status"), 200)
            self.reply(status, [(name, value) for name, _, value in fields if name != "Status"], content)

        def reply(self, status: int, fields: list[tuple[str, str]], content: bytes) -> None:
            self.send_response(status)
            for name, value in fields:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        made.url = f"http://127.0.0.1:{http.server_address[1]}"
        yield made
        http.shutdown()
