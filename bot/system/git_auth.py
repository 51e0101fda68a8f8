"""A token for git: in memory that a child is handed, never in an argument, an environment or a file that has a name."""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bot.errors import UsageError

_LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Git configuration that sends a token to one server."""

    text: str = field(repr=False)

    @contextmanager
    def handed(self) -> Iterator[int]:
        """A file descriptor for one child, which reads the configuration as `/dev/fd/<number>`.

        It has no name, so that nothing is left behind by a process that is killed.
        """
        in_memory = hasattr(os, "memfd_create")
        with open(os.memfd_create("git-credentials"), "wb") if in_memory else tempfile.TemporaryFile() as file:
            file.write(self.text.encode("ascii"))
            file.flush()
            yield file.fileno()


def credentials(token: str, server_url: str) -> Credentials | None:
    """What sends the token to this server and to no other; None without a token.

    The first, empty header takes back those that the clone's own configuration has (actions/checkout leaves one):
    GitHub answers 400 to two. Raises UsageError for an address that is not `https://`.
    """
    if not token:
        return None
    parts = urlsplit("") if re.search(r"[^!-~]|[\"\\@\[\]]", server_url) else urlsplit(server_url)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.netloc:
        raise UsageError(f"no server to send a token to: {server_url[:80]!r}", hint="give an https:// address")
    origin = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    lines = (
        f'[http "{origin}"]',
        "\textraheader =",
        f'\textraheader = "AUTHORIZATION: basic {secret}"',
    )
    return Credentials("\n".join(lines) + "\n")
