"""Make the environment of a child process, which has no token."""

from __future__ import annotations

import os
from collections.abc import Mapping

from bot.system.tokens import is_token

_KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)


def scrubbed_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child: where programs are, and `extra`.

    It never has a token of GitHub.
    """
    environment = {}
    for name in _KEPT_VARIABLES:
        if name in os.environ:
            environment[name] = os.environ[name]
    environment["LC_ALL"] = "C"
    for name, value in (extra or {}).items():
        if not is_token(name):
            environment[name] = value
    return environment
