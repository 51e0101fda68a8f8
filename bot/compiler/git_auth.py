"""A token for git: in a file that only its owner reads, never in an argument or in an environment."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bot.compiler.files import temporary_directory
from bot.errors import OutputError, UsageError

_LOOPBACK = ("127.0.0.1", "localhost")


def _origin(server_url: str) -> str:
    parts = urlsplit("") if re.search(r"[^!-~]|[\"\\@\[\]]", server_url) else urlsplit(server_url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not safe or not parts.netloc:
        raise UsageError(f"no server to send a token to: {server_url[:80]!r}", mend="give an https:// address")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"


def auth_file(token: str, server_url: str, directory: Path) -> Path:
    """Write git configuration that sends the token to this server (and to no other), readable by its owner only.

    The first, empty header takes back those that the clone's own configuration has (actions/checkout leaves one):
    GitHub answers 400 to two. Raises UsageError for an address that is not `https://`, OutputError.
    """
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    lines = (
        f'[http "{_origin(server_url)}"]',
        "\textraheader =",
        f'\textraheader = "AUTHORIZATION: basic {secret}"',
    )
    path = directory / "auth.gitconfig"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        raise OutputError(f"cannot be written: {error.strerror}", where=str(path)) from None
    return path


@contextmanager
def authenticated(token: str, server_url: str) -> Iterator[Path | None]:
    """The file for `Git(auth=…)`, in a private directory that is gone afterwards; None without a token."""
    if not token:
        yield None
        return
    with temporary_directory("auth-") as directory:
        yield auth_file(token, server_url, directory)
