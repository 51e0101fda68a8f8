"""Give git and GitHub a token, and send it to no other server."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from bot.errors import UsageError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Git configuration that sends a token to one server."""

    # key and value, in git's order
    settings: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that give git these settings.

        Source: git-config(1), GIT_CONFIG_COUNT.
        """
        variables = {"GIT_CONFIG_COUNT": str(len(self.settings))}
        for number, (key, value) in enumerate(self.settings):
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value
        return variables


def safe_address(url: str) -> SplitResult | None:
    """Return the parts of an address that is https, or http on this machine.

    None for any other address, and for one that names a user.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return None
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    if is_safe and host and "@" not in parts.netloc and parts.netloc.isascii():
        return parts
    return None


def credentials(token: str, server_url: str) -> Credentials | None:
    """Return the settings that send the token to this server and to no other.

    None without a token. The first header is empty: it removes those of the clone's
    own configuration, such as the one that actions/checkout leaves. GitHub answers
    400 to two headers. Raises UsageError for an address that `safe_address`
    refuses.
    """
    if not token:
        return None
    if re.search(r"[^!-~]|[\"\\@\[\]]", server_url):
        parts = None
    else:
        parts = safe_address(server_url)
    if parts is None:
        raise UsageError(
            f"no server to send a token to: {server_url[:80]!r}",
            hint="give an https:// address",
        )
    origin = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/"
    secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    header = f"http.{origin}.extraheader"
    return Credentials(((header, ""), (header, f"AUTHORIZATION: basic {secret}")))
