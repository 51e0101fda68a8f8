"""A token for git: in memory that a child is handed, never in an argument, an environment or a file that has a name."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import urlsplit

from bot.errors import UsageError

_LOOPBACK = ("127.0.0.1", "localhost")


def _origin(server_url: str) -> str:
    parts = urlsplit("") if re.search(r"[^!-~]|[\"\\@\[\]]", server_url) else urlsplit(server_url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not safe or not parts.netloc:
        raise UsageError(f"no server to send a token to: {server_url[:80]!r}", hint="give an https:// address")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Git configuration that sends a token to one server."""

    text: str = field(repr=False)

    @contextmanager
    def handed(self) -> Iterator[int]:
        """A file descriptor for one child, which reads the configuration as `/dev/fd/<number>`.

        It has no name, so that nothing is left behind by a process that is killed.
        """
        with _nameless() as file:
            file.write(self.text.encode("ascii"))
            file.flush()
            yield file.fileno()


def _nameless() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("git-credentials"), "wb")
    return tempfile.TemporaryFile()


def credentials(token: str, server_url: str) -> Credentials | None:
    """What sends the token to this server and to no other; None without a token.

    The first, empty header takes back those that the clone's own configuration has (actions/checkout leaves one):
    GitHub answers 400 to two. Raises UsageError for an address that is not `https://`.
    """
    if not token:
        return None
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    lines = (
        f'[http "{_origin(server_url)}"]',
        "\textraheader =",
        f'\textraheader = "AUTHORIZATION: basic {secret}"',
    )
    return Credentials("\n".join(lines) + "\n")
