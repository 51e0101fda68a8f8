"""A git server over real HTTP: git's own backend behind a small gateway, which can refuse and can ask for a token."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


@dataclass
class GitServer:
    """The repositories below `root`, at `url`.

    `refusals`: service (`git-upload-pack` reads, `git-receive-pack` writes) → the HTTP status of every answer;
    `tokens`: repository → the one token that may use it. A repository that is not named is open to all.
    """

    root: Path
    url: str
    refusals: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)  # path and Authorization of every request

    def status_of(self, path: str, query: str, authorization: str) -> int:
        """The HTTP status that this request meets before git sees it; 200 where git answers."""
        for service, status in self.refusals.items():
            if path.endswith(f"/{service}") or f"service={service}" in query:
                return status
        repository = path.lstrip("/").partition("/")[0]
        token = self.tokens.get(repository)
        if token is None:
            return 200
        wanted = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        if not authorization:
            return 401
        return 200 if authorization.lower() == f"basic {wanted}".lower() else 403


@contextmanager
def serving_git(root: Path) -> Iterator[GitServer]:
    """Serve the bare repositories of a directory until the context ends; all of them can be pushed to."""

    class Gateway(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def answer(self) -> None:
            parts = urlsplit(self.path)
            authorization = self.headers.get("Authorization", "")
            server.sent.append((parts.path, authorization))
            body = self.body()
            status = server.status_of(parts.path, parts.query, authorization)
            if status == 200:
                self.reply_of_git(parts.path, parts.query, body)
                return
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def reply_of_git(self, path: str, query: str, body: bytes) -> None:
            environment = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "http.receivepack",
                "GIT_CONFIG_VALUE_0": "true",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": "tester",
                "REMOTE_ADDR": "127.0.0.1",
            }
            argv = ["git", "http-backend"]
            done = subprocess.run(argv, input=body, env=environment, capture_output=True, check=True)
            head, _, data = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer  # noqa: N815 - the base class looks for these names

    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as http:
        server = GitServer(root, f"http://127.0.0.1:{http.server_port}")
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield server
        http.shutdown()
