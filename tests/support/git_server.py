"""Serve repositories over HTTP with git's own server.

A private one refuses readers without a token.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from background_server import running


def header_of(token: str) -> str:
    """The header that actions/checkout and the bot send."""
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return f"AUTHORIZATION: basic {secret}"


@dataclass
class Access:
    """Who may use one repository.

    `tokens`: token → whether it may push; `public`: everybody may read without a token.
    """

    tokens: Mapping[str, bool]
    public: bool = False

    def status_of(self, token: str | None, *, is_push: bool) -> int:
        """The HTTP status for a request with this token; 200 where git answers."""
        may_push = self.tokens.get(token or "", False)
        may_read = self.public or token in self.tokens
        if may_push if is_push else may_read:
            return 200
        return 401 if token is None else 403


@dataclass
class GitServer:
    """The repositories below `root`, at `url`.

    `access`: path of a repository, such as `origin.git` → who may use it. All others
    are open to everybody. `refusals`: service (`git-upload-pack` reads,
    `git-receive-pack` writes) → the HTTP status of every answer.
    """

    root: Path
    url: str = ""
    access: dict[str, Access] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    # paths of the requests that were refused
    refused: list[str] = field(default_factory=list)
    pushed_by: list[str] = field(default_factory=list)  # the tokens that pushed
    # repository → the tokens that were sent to it
    tokens_of: dict[str, set[str]] = field(default_factory=dict)

    def repository_of(self, path: str) -> str:
        """The path of the repository that a request is for."""
        parts = path.strip("/").split("/")
        names = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return next(
            (name for name in names if (self.root / name / "HEAD").is_file()), names[0]
        )

    def status_of(self, path: str, query: str, authorization: str) -> int:
        """The HTTP status that a request meets before git sees it; 200 where git answers."""
        for service, status in self.refusals.items():
            if path.endswith(f"/{service}") or f"service={service}" in query:
                return status
        repository = self.repository_of(path)
        token = _token_in(authorization)
        if token is not None:
            self.tokens_of.setdefault(repository, set()).add(token)
        access = self.access.get(repository)
        is_push = "git-receive-pack" in path or "git-receive-pack" in query
        status = 200 if access is None else access.status_of(token, is_push=is_push)
        if status != 200:
            self.refused.append(path)
        elif path.endswith("/git-receive-pack") and token is not None:
            self.pushed_by.append(token)
        return status


def _token_in(authorization: str) -> str | None:
    secret = authorization.partition(" ")[2]
    return base64.b64decode(secret).decode().partition(":")[2] if secret else None


@contextmanager
def serving(root: Path, access: Mapping[str, Access] = {}) -> Iterator[GitServer]:
    """Serve the bare repositories of a directory until the context ends."""
    server = GitServer(root, access=dict(access))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.body()
            status = server.status_of(
                path, query, self.headers.get("Authorization") or ""
            )
            if status == 200:
                self.reply(*self.answer_of_git(path, query, body))
            else:
                self.reply(status, [("WWW-Authenticate", 'Basic realm="git"')], b"")

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def answer_of_git(
            self, path: str, query: str, body: bytes
        ) -> tuple[int, list[tuple[str, str]], bytes]:
            environment = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "http.receivepack",
                "GIT_CONFIG_VALUE_0": "true",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "REMOTE_USER": "tester",
                "REMOTE_ADDR": "127.0.0.1",
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            }
            argv = ["git", "http-backend"]
            done = subprocess.run(
                argv, input=body, env=environment, capture_output=True, check=True
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = [line.decode().partition(": ") for line in head.split(b"\r\n")]
            fields = {name: value for name, _, value in lines}
            status = int(fields.pop("Status", "200").split()[0])
            return status, list(fields.items()), content

        def reply(
            self, status: int, fields: list[tuple[str, str]], content: bytes
        ) -> None:
            self.send_response(status)
            for name, value in fields:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

        do_GET = do_POST = answer  # noqa: N815 - the base class looks for these names

    with running(Handler) as address:
        server.url = address
        yield server
