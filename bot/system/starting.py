"""Start a child process. No other module starts one.

So each child leads a session of its own, and has no token in its environment.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from bot.system.environment import scrubbed_environment

Child = subprocess.Popen[bytes]
PIPE = subprocess.PIPE
STDOUT = subprocess.STDOUT
DEVNULL = subprocess.DEVNULL


def start_child(
    argv: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int,
    cwd: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
    umask: int = -1,
    bufsize: int = -1,
) -> Child:
    """Start a program without waiting for it; raises OSError if it cannot be started.

    `environment`: variables besides those that every child has; the other arguments are
    those of `subprocess.Popen`.
    """
    return subprocess.Popen(
        list(argv),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env=scrubbed_environment(environment),
        umask=umask,
        bufsize=bufsize,
        start_new_session=True,
    )
