"""The program as a process of its own, and real compilers from everybody's cache for caches of a test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from fake_wheels import wheel_name
from places import ROOT

from bot.compiler.toolchain import resolve
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache


def binary(release: str) -> Path:
    """The native program of a release, fetched where it is not there yet."""
    return resolve(release, default_cache(), Cancel(), print).binary


def own_cache(directory: Path, *releases: str) -> Path:
    """An empty cell cache that shares the fetched compilers with everybody.

    These releases are among them.
    """
    for release in releases:
        binary(release)
    directory.mkdir(parents=True, exist_ok=True)
    # "options" has what each compiler said of its options, and "digests" that of the
    # measuring code: each takes a second
    for name in ("toolchains", "options", "digests"):
        everybodys = default_cache() / name
        everybodys.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            (directory / name).symlink_to(everybodys)
    return directory


def session_cache(basetemp: Path) -> Path:
    """The cell cache that tests of a session share, where a build may come from another test.

    What is in a cache changes no report and no exit code.

    Args:
        basetemp: the base directory of the session's temporary files, or that of one of its workers.
    """
    session = basetemp.parent if basetemp.name.startswith("popen-") else basetemp
    return own_cache(session / "session-cache")


def offered(directory: Path, *releases: str) -> dict[str, str]:
    """Variables with which pip is offered these releases and nothing else.

    Their compilers are in the cache.
    """
    directory.mkdir()
    for release in releases:
        (directory / wheel_name(release)).touch()
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(directory)}


def bot(
    *arguments: str | Path,
    cwd: Path = ROOT,
    codes: Collection[int] = (0, 1),
    env: Mapping[str, str] = {},
) -> subprocess.CompletedProcess[str]:
    """The program as its users run it, with these environment variables besides.

    Its exit code is one of `codes`.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    argv = [sys.executable, "-m", "bot", *map(str, arguments)]
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done
