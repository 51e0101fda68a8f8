"""Wheels of the compiler and its runtime: fetched from the package index with pip, unpacked once into the cache."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from packaging.tags import Tag, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from bot.compiler.caches.storage import COMPLETE, hold
from bot.compiler.tools.identity import hashed
from bot.core.rules.spec import PROJECT, Places, without_secrets
from bot.errors import CompilerUnavailable, OutputError
from bot.system.files import PART_PREFIX, make_directory, open_to_others, temporary_directory
from bot.system.processes import Cancel, Outcome, run

_LARGEST_UNPACKED_BYTES = 4 << 30
NIGHTLIES_HINT = "nightly releases are on a page of their own: name it as compiler.find_links or in PIP_FIND_LINKS"
_INDEX = Places()
RUNTIME = "iree-base-runtime"
_PROGRAMS = {PROJECT: "iree/compiler/_mlir_libs/iree-compile", RUNTIME: "iree/_runtime_libs/iree-run-module"}
"""Project → the program that its wheel is fetched for; those beside it come with it."""
_ANSWER_SECONDS = 3
"""How long the index may take to answer somebody who only asks whether it is there."""


def release_home(version: str, cache: Path, places: Places = _INDEX, project: str = PROJECT) -> Path:
    """Where a release is unpacked: there are other wheels for another Python, machine or libc.

    What came from a page that a pull request may have named is never taken for what the index has.
    """
    python, machine = str(sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag), platform.machine()
    here = python if machine in python else f"{python}-{machine}"
    kind = "" if project == PROJECT else project
    return cache / "toolchains" / "-".join(filter(None, (kind, version, here, places.key)))


def fetch_release(
    version: str,
    cache: Path,
    cancel: Cancel,
    say: Callable[[str], None],
    places: Places = _INDEX,
    project: str = PROJECT,
) -> Path:
    """The unpacked wheel of a release, from the cache or its places; raises CompilerUnavailable.

    Args:
        project: the compiler, or RUNTIME.
    """
    home = release_home(version, cache, places, project)
    if not places.changeable and hold(home):
        return home
    say(f"fetching {project}=={version}")
    with temporary_directory("wheel-") as scratch:
        argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--progress-bar=off"]
        argv += ["--disable-pip-version-check", "--no-input", *places.argv, "-d", str(scratch), f"{project}=={version}"]
        outcome = run(argv, cancel=cancel, timeout_seconds=900, environment={**for_pip(), "TMPDIR": str(scratch)})
        fetched = sorted(scratch.glob("*.whl"))
        if not outcome.ok or not fetched:
            raise _unavailable(f"{project}=={version}", outcome, places)
        return unpack(fetched[0], cache, project) if places.changeable else _unpack_into(fetched[0], home, project)


def for_pip() -> dict[str, str]:
    """What of the environment says which index there is, and the way to it."""
    wanted = re.compile("PIP_.*|(?i:.*_proxy)")
    return {name: value for name, value in os.environ.items() if wanted.fullmatch(name)}


def newest_release(cancel: Cancel) -> str:
    """The newest release on the package index, in one short request; raises CompilerUnavailable."""
    argv = [sys.executable, "-m", "pip", "index", "versions", PROJECT, "--disable-pip-version-check", "--no-input"]
    argv += ["--only-binary=:all:", f"--timeout={_ANSWER_SECONDS}", "--retries=0"]
    outcome = run(argv, cancel=cancel, timeout_seconds=2 * _ANSWER_SECONDS, environment=for_pip())
    match = re.search(rf"^{PROJECT} \(([^)\s]+)\)", outcome.output, re.MULTILINE)
    if not outcome.ok or match is None:
        raise CompilerUnavailable(f"no answer: {reason(outcome)}", where="the package index")
    return match[1]


def _unavailable(where: str, outcome: Outcome, places: Places) -> CompilerUnavailable:
    listed = re.search(r"from versions: ([^)]*)\)", outcome.output)
    dated = (
        Version(where.partition("==")[2]).is_prerelease
        and not places.find_links
        and not os.environ.get("PIP_FIND_LINKS")
    )
    more = f"; {NIGHTLIES_HINT}" if dated else ""
    if listed is not None and listed[1] not in ("", "none"):
        newest = ", ".join(listed[1].split(", ")[-4:])
        hint = f"newest: {newest}{more}"
        return CompilerUnavailable("no such release for this machine and Python", where=where, hint=hint)
    what = f"could not be fetched: {reason(outcome)}"
    return CompilerUnavailable(what, where=where, hint=f"check the network and the index{more}")


def reason(outcome: Outcome) -> str:
    """Why pip gave up, in its own words without anybody's credentials."""
    lines = outcome.output.splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    said = errors[0].removeprefix("ERROR: ") if errors else "pip ended without a message"
    return without_secrets(said)[:200]


def _tags(wheel: Path) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(wheel.name)[3]
    except InvalidWheelFilename:
        raise CompilerUnavailable("is not named as a wheel is", where=wheel.name) from None


def _fits(wheel: Path) -> bool:
    """True where the wheel's native binary runs on this platform; its Python tag only matters for the bindings."""
    return not {tag.platform for tag in _tags(wheel)}.isdisjoint({"any", *platform_tags()})


def only_fitting(candidates: Sequence[Path], directory: Path) -> Path:
    """The one wheel of several that is for this machine and, if there is a choice, this Python."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    fitting = [wheel for wheel in candidates if _fits(wheel)]
    exact = [wheel for wheel in fitting if python in {tag.interpreter for tag in _tags(wheel)}] or fitting
    if len(exact) == 1:
        return exact[0]
    names = ", ".join(wheel.name for wheel in exact or candidates)
    what = "several wheels fit this machine" if exact else "no wheel is for this platform"
    raise CompilerUnavailable(f"{what}: {names}", where=directory.name, hint="name one wheel")


def unpack(wheel: Path, cache: Path, project: str = PROJECT) -> Path:
    """The unpacked tree of a wheel file, in the cache under its digest; raises CompilerUnavailable."""
    if not _fits(wheel):
        raise CompilerUnavailable("is a wheel for another platform", where=wheel.name, hint="use one for this machine")
    home = cache / "toolchains" / f"wheel-{hashed(wheel)[:32]}"
    return home if hold(home) else _unpack_into(wheel, home, project)


def _unpack_into(wheel: Path, home: Path, project: str = PROJECT) -> Path:
    """Unpack beside `home`, then rename: a half unpacked compiler is never seen."""
    try:
        make_directory(home.parent)
    except OSError as error:
        hint = "free some space, or choose another cache"
        raise OutputError(f"cannot be written: {error.strerror}", where=str(home.parent), hint=hint) from None
    try:
        with temporary_directory(PART_PREFIX, home.parent) as scratch:
            _extract(wheel, scratch, _PROGRAMS[project])
            (scratch / COMPLETE).touch()
            open_to_others(scratch)
            if not (home / COMPLETE).is_file():  # what is left of one that was partly removed
                shutil.rmtree(home, ignore_errors=True)
            try:
                scratch.rename(home)
            except OSError:
                if not (home / COMPLETE).is_file():  # not another run that was faster
                    raise
    except OSError as error:
        raise OutputError(f"cannot be unpacked: {error.strerror or error}", where=wheel.name) from None
    hold(home)
    return home


def _extract(wheel: Path, into: Path, program: str) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _LARGEST_UNPACKED_BYTES:
                raise CompilerUnavailable("is larger than any compiler wheel", where=wheel.name)
            archive.extractall(into)  # refuses absolute names and `..` by itself
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise CompilerUnavailable(f"is no wheel: {error}", where=wheel.name) from None
    if not (into / program).is_file():
        raise CompilerUnavailable(f"holds no {program}", where=wheel.name)
    for native in (into / program).parent.glob("iree-*"):
        native.chmod(0o755)  # a zip archive read this way keeps no permissions
