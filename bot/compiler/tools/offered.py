"""Which releases of the compiler there are, asked once a run, so that `latest` is the same for all that name it."""

from __future__ import annotations

import contextlib
import re
import sys
from functools import lru_cache

from packaging.version import InvalidVersion, Version

from bot.compiler.tools.wheels import NIGHTLIES_HINT, for_pip, reason
from bot.core.rules.spec import NIGHTLY, PROJECT, Places
from bot.errors import CompilerUnavailable
from bot.system.processes import Cancel, run


@lru_cache(maxsize=32)
def offered(places: Places, cancel: Cancel) -> tuple[Version, ...]:
    """All releases for this machine and Python, pre-releases too, the oldest first; raises CompilerUnavailable.

    A run has one `cancel`: the answer to the first question is the answer of all of its run.
    """
    argv = [sys.executable, "-m", "pip", "index", "versions", PROJECT, "--pre", "--only-binary=:all:"]
    argv += ["--disable-pip-version-check", "--no-input", "--retries=2", *places.argv]
    outcome = run(argv, cancel=cancel, timeout_seconds=120, environment=for_pip())
    listed = re.search(r"^Available versions: (.+)$", outcome.output, re.MULTILINE)
    if not outcome.ok or listed is None:
        what = f"the releases cannot be listed: {reason(outcome)}"
        raise CompilerUnavailable(what, where=PROJECT, hint="check the network and the index, or name one release")
    versions = set()
    for text in listed[1].split(","):
        with contextlib.suppress(InvalidVersion):  # a release of before PEP 440
            versions.add(Version(text))
    return tuple(sorted(versions))


def newest(moving: str, places: Places, cancel: Cancel) -> str:
    """The release that `latest` or `nightly` is in this run; raises CompilerUnavailable.

    `nightly` insists on pre-releases: where none is offered nobody said where they are.
    """
    versions = offered(places, cancel)
    stable = [version for version in versions if not version.is_prerelease]
    if moving == NIGHTLY and len(stable) == len(versions):
        raise CompilerUnavailable("no pre-release is offered", where=moving, hint=NIGHTLIES_HINT)
    if moving != NIGHTLY and not stable:
        raise CompilerUnavailable("only pre-releases are offered", where=moving, hint="name nightly, or one of them")
    return str(max(versions if moving == NIGHTLY else stable))


def between(old: str, new: str, places: Places, cancel: Cancel) -> tuple[str, ...]:
    """The releases strictly between two, on the way from the one; pre-releases only where one of the two is one."""
    first, last = sorted(ends := (Version(old), Version(new)))
    dated = first.is_prerelease or last.is_prerelease
    inside = [version for version in offered(places, cancel) if first < version < last]
    ordered = inside if ends[0] == first else inside[::-1]
    return tuple(str(version) for version in ordered if dated or not version.is_prerelease)
