"""Fetch wheels of the compiler and its runtime from the package index.

pip fetches them, and each is unpacked once into the cache.

The index is asked for its releases once a run, so that `latest` is the same everywhere.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
import sysconfig
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from packaging.tags import Tag, platform_tags, sys_tags
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from bot.compiler.storage import filled
from bot.compiler.unpacked import digests_of, held, write_list
from bot.core.spec import NIGHTLY, PROJECT, Places, full_version, without_secrets
from bot.errors import CompilerUnavailable, OutputError
from bot.system.cancel import Cancel
from bot.system.files import hashed, open_to_others, temporary_directory
from bot.system.processes import Outcome, run

_LARGEST_UNPACKED_BYTES = 4 << 30
NIGHTLIES_HINT = (
    "nightly releases are on a separate page: name it in compiler.find_links or"
    " PIP_FIND_LINKS"
)
INDEX = Places()
RUNTIME = "iree-base-runtime"
_PROGRAMS = {
    PROJECT: "iree/compiler/_mlir_libs/iree-compile",
    RUNTIME: "iree/_runtime_libs/iree-run-module",
}
"""Project → the program for which its wheel is fetched.

Programs beside it come with it.
"""
# The time limit of a request that only checks whether the index answers
_ANSWER_SECONDS = 3


def release_home(
    version: str, cache: Path, places: Places = INDEX, project: str = PROJECT
) -> Path:
    """Return the folder into which a release is unpacked.

    There are other wheels for another Python, machine or libc. A wheel from a page
    that a pull request may have named is never used as the index's.
    """
    kind = "" if project == PROJECT else project
    return (
        cache
        / "toolchains"
        / "-".join(filter(None, (kind, version, _abi(), places.key)))
    )


def _abi() -> str:
    python = str(sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag)
    machine = platform.machine()
    if machine in python:
        return python
    return f"{python}-{machine}"


def this_python() -> str:
    """Return this Python's version and what its extensions are built for.

    It is the same wherever Python is installed.
    """
    return f"{platform.python_version()}-{_abi()}"


def fetch_release(
    version: str,
    cache: Path,
    cancel: Cancel,
    say: Callable[[str], None],
    places: Places = INDEX,
    project: str = PROJECT,
) -> Path:
    """Return the unpacked wheel of a release, from the cache or its places.

    `project`: the compiler, or RUNTIME. Raises CompilerUnavailable.
    """
    home = release_home(version, cache=cache, places=places, project=project)
    if project == PROJECT:
        hashes = places.hashes_of(version)
    else:
        hashes = ()
    if not places.changeable and held(home, say, hashes=hashes):
        return home
    say(f"fetching {project}=={version}")
    with temporary_directory("wheel-") as scratch:
        pages = places.find_links or os.environ.get("PIP_FIND_LINKS")
        more_hint = ""
        if Version(version).is_prerelease and not pages:
            more_hint = f"; {NIGHTLIES_HINT}"
        wheel = download(
            f"{project}=={version}", places, cancel, scratch, more_hint, "--no-deps"
        )[0]
        require_hash(wheel, hashes)
        if places.changeable:
            return unpack(wheel, cache=cache, project=project, say=say)
        return _unpack_into(wheel, home, project)


def require_hash(wheel: Path, hashes: tuple[str, ...]) -> None:
    """Refuse a wheel with another digest than the requirements file allows.

    Raises CompilerUnavailable.

    `hashes`: such as `sha256:…`; empty where the file allows any.
    """
    digests = digests_of(wheel) if hashes else ()
    if not hashes or set(hashes) & set(digests):
        return
    problem = (
        f"the wheel has the digest {digests[0]}, which no --hash of the requirements"
        " file allows"
    )
    raise CompilerUnavailable(
        problem,
        where=wheel.name,
        hint="correct the --hash, or find out who changed the wheel",
    )


def download(
    requirement: str,
    places: Places,
    cancel: Cancel,
    scratch: Path,
    more_hint: str,
    *options: str,
) -> list[Path]:
    """Fetch one or more wheels with pip into `scratch`.

    Raises CompilerUnavailable, with `more_hint` in its hint.
    """
    outcome = pip(
        "download", *options, *places.argv, requirement, cancel=cancel, scratch=scratch
    )
    wheels = sorted(scratch.glob("*.whl"))
    if outcome.ok and wheels:
        return wheels
    # The pattern is of the requirement itself, not of a package that it needs.
    listed = re.search(r"requirement \S+ \(from versions: ([^)]*)\)", outcome.output)
    if listed is not None and listed[1] not in ("", "none"):
        problem = "no such release for this machine and Python"
        hint = f"newest: {', '.join(listed[1].split(', ')[-4:])}"
    else:
        problem = f"could not be fetched: {reason(outcome)}"
        hint = "check the network and the index"
    raise CompilerUnavailable(problem, where=requirement, hint=hint + more_hint)


def pip(
    *arguments: str,
    cancel: Cancel,
    timeout_seconds: float = 1800,
    scratch: Path | None = None,
) -> Outcome:
    """Run pip, which takes wheels only.

    It sees only the variables of the environment that name the index and the way to
    it.

    `scratch`: the place for downloads and for pip's temporary files.
    """
    passed = filter(re.compile("PIP_.*|(?i:.*_proxy)").fullmatch, os.environ)
    environment = {name: os.environ[name] for name in passed}
    always = ("--only-binary=:all:", "--disable-pip-version-check", "--no-input")
    # -I: nothing of the current directory is run
    argv = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        *arguments,
        *always,
    ]
    if scratch is not None:
        environment["TMPDIR"] = str(scratch)
        argv += [
            "--progress-bar=off",
            *(["-d", str(scratch)] if arguments[0] == "download" else []),
        ]
    return run(
        argv, cancel=cancel, timeout_seconds=timeout_seconds, environment=environment
    )


def reason(outcome: Outcome) -> str:
    """Return why pip gave up, in its own words without any credentials."""
    lines = outcome.output.splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    message = "pip ended without a message"
    if errors:
        message = errors[0].removeprefix("ERROR: ")
    return without_secrets(message)[:200]


def _tags(wheel: Path) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(wheel.name)[3]
    except InvalidWheelFilename:
        raise CompilerUnavailable(
            "does not have a wheel's file name", where=wheel.name
        ) from None


def is_wheel_of(wheel: Path, project: str) -> bool:
    """Return True where a wheel file is the project's own, by its name."""
    _tags(wheel)  # raises for a name that is not a wheel's
    name = parse_wheel_filename(wheel.name)[0]
    return name == canonicalize_name(project)


def _fits(wheel: Path) -> bool:
    """Return True where the wheel's native binary runs on this platform.

    Its Python tag only matters for the bindings.
    """
    return not {tag.platform for tag in _tags(wheel)}.isdisjoint(
        {"any", *platform_tags()}
    )


def only_fitting(candidates: Sequence[Path], directory: Path) -> Path:
    """Return the one wheel of several that is for this machine.

    If there is a choice, it is for this Python.
    """
    fitting = [wheel for wheel in candidates if _fits(wheel)]
    own_tags = set(sys_tags())
    exact = [wheel for wheel in fitting if _tags(wheel) & own_tags] or fitting
    if len(exact) == 1:
        return exact[0]
    names = ", ".join(wheel.name for wheel in exact or candidates)
    problem = "no wheel fits this platform"
    if exact:
        problem = "several wheels fit this machine"
    raise CompilerUnavailable(
        f"{problem}: {names}", where=directory.name, hint="name one wheel"
    )


def _unheard(_line: str) -> None:
    """Ignore a line."""


def unpack(
    wheel: Path,
    cache: Path,
    project: str = PROJECT,
    say: Callable[[str], None] = _unheard,
) -> Path:
    """Return the unpacked tree of a wheel file, in the cache under its digest.

    Raises CompilerUnavailable.
    """
    if not _fits(wheel):
        raise CompilerUnavailable(
            "is a wheel for another platform",
            where=wheel.name,
            hint="use one for this machine",
        )
    home = cache / "toolchains" / f"wheel-{hashed(wheel)[:32]}"
    if held(home, say):
        return home
    return _unpack_into(wheel, home, project)


def _unpack_into(wheel: Path, home: Path, project: str = PROJECT) -> Path:
    with filled(home) as scratch:
        program = scratch / _PROGRAMS[project]
        try:
            with zipfile.ZipFile(wheel) as archive:
                if (
                    sum(entry.file_size for entry in archive.infolist())
                    > _LARGEST_UNPACKED_BYTES
                ):
                    raise CompilerUnavailable(
                        "is larger than any compiler wheel", where=wheel.name
                    )
                archive.extractall(scratch)  # refuses absolute names and `..` by itself
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            ValueError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise CompilerUnavailable(
                f"is not a wheel: {error}", where=wheel.name
            ) from None
        except OSError as error:
            raise OutputError(
                f"cannot be unpacked: {error.strerror or error}", where=wheel.name
            ) from None
        if not program.is_file():
            raise CompilerUnavailable(
                f"holds no {_PROGRAMS[project]}", where=wheel.name
            )
        for native in program.parent.glob("iree-*"):
            native.chmod(0o755)  # a zip archive read this way keeps no permissions
        open_to_others(scratch)
        write_list(scratch, digests_of(wheel))
    return home


@lru_cache(maxsize=32)
def offered(
    places: Places, cancel: Cancel, *, briefly: bool = False
) -> tuple[Version, ...]:
    """Return all releases for this machine and Python, the oldest first.

    Pre-releases are among them. The answer is kept for each `cancel`, so for a whole
    run. Raises CompilerUnavailable.

    `briefly`: ask in one short request, to find out whether the index is there.
    """
    patience = ["--retries=2"]
    limit_seconds: float = 120
    failing = "the releases cannot be listed"
    if briefly:
        patience = [f"--timeout={_ANSWER_SECONDS}", "--retries=0"]
        limit_seconds = 2 * _ANSWER_SECONDS
        failing = "no answer"
    argv = ("index", "versions", places.project, "--pre")
    outcome = pip(
        *argv, *patience, *places.argv, cancel=cancel, timeout_seconds=limit_seconds
    )
    listed = re.search(r"^Available versions: (.+)$", outcome.output, re.MULTILINE)
    if not outcome.ok or listed is None:
        problem = f"{failing}: {reason(outcome)}"
        hint = "check the network and the index, or name one release"
        raise CompilerUnavailable(problem, where=places.project, hint=hint)
    versions = set()
    for text in listed[1].split(","):
        with contextlib.suppress(InvalidVersion):  # a release of before PEP 440
            versions.add(Version(text))
    return tuple(sorted(versions))


def newest(moving: str, places: Places, cancel: Cancel) -> str:
    """Return the release that `latest` or `nightly` is in this run.

    `nightly` insists on pre-releases. If none is offered, the place of the nightly
    wheels was not named. Raises CompilerUnavailable.
    """
    if moving == NIGHTLY and places.project != PROJECT:
        hint = f"name a release of {places.project}, latest, or a wheel"
        raise CompilerUnavailable(
            "only IREE has nightly releases", where=moving, hint=hint
        )
    versions = offered(places, cancel)
    stable = [version for version in versions if not version.is_prerelease]
    if moving == NIGHTLY and len(stable) == len(versions):
        raise CompilerUnavailable(
            "the index has no pre-release", where=moving, hint=NIGHTLIES_HINT
        )
    if moving != NIGHTLY and not stable:
        raise CompilerUnavailable(
            "the index has only pre-releases",
            where=moving,
            hint="name nightly, or one pre-release",
        )
    return full_version(max(versions if moving == NIGHTLY else stable))


def between(old: str, new: str, places: Places, cancel: Cancel) -> tuple[str, ...]:
    """Return the releases strictly between two, on the way from the first.

    Pre-releases are among them only if one of the two is a pre-release.
    """
    first, last = sorted([Version(old), Version(new)])
    dated = first.is_prerelease or last.is_prerelease
    releases = list[str]()
    for version in offered(places, cancel):
        if first < version < last and (dated or not version.is_prerelease):
            releases.append(full_version(version))
    if Version(old) != first:
        releases.reverse()
    return tuple(releases)
