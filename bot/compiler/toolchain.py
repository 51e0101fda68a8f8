"""The identity of a compiler: one digest over the bytes of all files that a compile, or the reading of its IR, runs.

It is computed, never taken from what a wheel says of itself, and remembered by what the kernel says of every file: a
second run reads nothing but that. The same files give the same digest, wherever they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import sys
import sysconfig
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from packaging.tags import Tag, platform_tags, sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from bot.compiler.storage import filled, hold, read
from bot.core.policy import here
from bot.core.snapshot import CompilerInfo
from bot.core.spec import MOVING, NIGHTLY, PROJECT, RESOLVED, Places, release_of, without_secrets
from bot.errors import CompilerUnavailable, OutputError
from bot.system.files import open_to_others, temporary_directory, write_atomically
from bot.system.processes import Cancel, Outcome, run

UNTHREADED = "--mlir-disable-threading"  # Whole compiles fill the cores, so that threads inside one only cost
LIBRARY = "libIREECompiler.so"
_BESIDE = ("iree-lld", "lib*.so*", "iree_platform_libs/**/*")
"""The linker, the libraries, and the device code that the compiler links in, beside its binary."""
_IN_LIB = (f"{LIBRARY}*", "iree_platform_libs/**/*")
"""What lies in `lib` of a build directory, which has its binaries in `tools`."""
_BINDINGS = ("iree/compiler/**/*.py", "iree/compiler/_mlir_libs/*.so")
_TICK_SECONDS = 0.02  # Longer than the kernel's clock takes to go on: until then a file can change and keep its times


def compiler_digest(binary: Path, bindings: Path | None, cache: Path) -> str:
    """SHA-256 (hex) over the compiler's files and names; raises CompilerUnavailable where they change meanwhile."""
    files = [*dict.fromkeys(_files(binary, bindings))]  # of two places a file of one name each
    identity = _identity(files)
    memo = cache / "digests" / hashlib.sha256(identity.encode()).hexdigest()
    known = read(memo).decode("ascii", "replace")
    if re.fullmatch(r"[0-9a-f]{64}", known):
        return known
    time.sleep(_TICK_SECONDS)
    digest = hashlib.sha256("".join(f"{name}\0{hashed(path)}\n" for name, path in files).encode()).hexdigest()
    if _identity([*dict.fromkeys(_files(binary, bindings))]) != identity:
        hint = "wait until the build is done"
        raise CompilerUnavailable("is being written while it is read", where=binary.name, hint=hint)
    with contextlib.suppress(OutputError):  # only the next run's time is lost
        write_atomically(memo, digest.encode())
    return digest


def _files(binary: Path, bindings: Path | None) -> Iterator[tuple[str, Path]]:
    """Name within the compiler → file, in the same order everywhere."""
    yield "iree-compile", binary
    places = [("", binary.parent, _BESIDE), ("", binary.parent.parent / "lib", _IN_LIB)]
    if bindings is not None:
        places.append(("python/", bindings, _BINDINGS))
    for prefix, root, patterns in places:
        for pattern in patterns:
            files = sorted((path.relative_to(root).as_posix(), path) for path in root.glob(pattern) if path.is_file())
            yield from ((prefix + name, path) for name, path in files)


def _identity(files: Sequence[tuple[str, Path]]) -> str:
    """What tells a file from any other, and from itself before a change."""
    rows = []
    for name, path in files:
        stat = path.stat()
        times = (stat.st_mtime_ns, stat.st_ctime_ns)
        rows.append(f"{name}\0{path}\0{stat.st_dev} {stat.st_ino} {stat.st_size} {times}")
    return "\n".join(rows)


def hashed(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


# Wheels of the compiler and its runtime: fetched from the package index with pip, unpacked once into the cache.


_LARGEST_UNPACKED_BYTES = 4 << 30
NIGHTLIES_HINT = "nightly releases are on a page of their own: name it as compiler.find_links or in PIP_FIND_LINKS"
_INDEX = Places()
RUNTIME = "iree-base-runtime"
_PROGRAMS = {PROJECT: "iree/compiler/_mlir_libs/iree-compile", RUNTIME: "iree/_runtime_libs/iree-run-module"}
"""Project → the program that its wheel is fetched for; those beside it come with it."""
_ANSWER_SECONDS = 3  # How long the index may take to answer somebody who only asks whether it is there


def release_home(version: str, cache: Path, places: Places = _INDEX, project: str = PROJECT) -> Path:
    """Where a release is unpacked: there are other wheels for another Python, machine or libc.

    What came from a page that a pull request may have named is never taken for what the index has.
    """
    kind = "" if project == PROJECT else project
    return cache / "toolchains" / "-".join(filter(None, (kind, version, _abi(), places.key)))


def _abi() -> str:
    python, machine = str(sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag), platform.machine()
    return python if machine in python else f"{python}-{machine}"


def this_python() -> str:
    """This Python's version and what its extensions are built for: the same wherever it is installed."""
    return f"{platform.python_version()}-{_abi()}"


def fetch_release(
    version: str,
    cache: Path,
    cancel: Cancel,
    say: Callable[[str], None],
    places: Places = _INDEX,
    project: str = PROJECT,
) -> Path:
    """The unpacked wheel of a release, from the cache or its places; raises CompilerUnavailable.

    `project`: the compiler, or RUNTIME.
    """
    home = release_home(version, cache, places, project)
    if not places.changeable and hold(home):
        return home
    say(f"fetching {project}=={version}")
    with temporary_directory("wheel-") as scratch:
        is_told = places.find_links or os.environ.get("PIP_FIND_LINKS")
        more = f"; {NIGHTLIES_HINT}" if Version(version).is_prerelease and not is_told else ""
        wheel = download(f"{project}=={version}", places, cancel, scratch, more, "--no-deps")[0]
        return unpack(wheel, cache, project) if places.changeable else _unpack_into(wheel, home, project)


def download(requirement: str, places: Places, cancel: Cancel, scratch: Path, more: str, *options: str) -> list[Path]:
    """The wheels that pip fetched into `scratch`, at least one; raises CompilerUnavailable, with `more` in its hint."""
    outcome = pip("download", *options, *places.argv, requirement, cancel=cancel, scratch=scratch)
    wheels = sorted(scratch.glob("*.whl"))
    if outcome.ok and wheels:
        return wheels
    listed = re.search(r"requirement \S+ \(from versions: ([^)]*)\)", outcome.output)  # not what it needs itself
    if listed is not None and listed[1] not in ("", "none"):
        what, hint = "no such release for this machine and Python", f"newest: {', '.join(listed[1].split(', ')[-4:])}"
    else:
        what, hint = f"could not be fetched: {reason(outcome)}", "check the network and the index"
    raise CompilerUnavailable(what, where=requirement, hint=hint + more)


def pip(*arguments: str, cancel: Cancel, timeout_seconds: float = 1800, scratch: Path | None = None) -> Outcome:
    """Run pip over wheels alone; it sees what of the environment says which index there is, and the way to it.

    `scratch`: where what is downloaded goes, and what pip needs for a while.
    """
    pattern = re.compile("PIP_.*|(?i:.*_proxy)")
    environment = {name: value for name, value in os.environ.items() if pattern.fullmatch(name)}
    always = ("--only-binary=:all:", "--disable-pip-version-check", "--no-input")
    argv = [sys.executable, "-I", "-m", "pip", *arguments, *always]  # -I: nothing of the current directory is run
    if scratch is not None:
        environment["TMPDIR"] = str(scratch)
        argv += ["--progress-bar=off", *(["-d", str(scratch)] if arguments[0] == "download" else [])]
    return run(argv, cancel=cancel, timeout_seconds=timeout_seconds, environment=environment)


def reason(outcome: Outcome) -> str:
    """Why pip gave up, in its own words without anybody's credentials."""
    lines = outcome.output.splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    message = errors[0].removeprefix("ERROR: ") if errors else "pip ended without a message"
    return without_secrets(message)[:200]


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
    fitting = [wheel for wheel in candidates if _fits(wheel)]
    exact = [wheel for wheel in fitting if not _tags(wheel).isdisjoint(sys_tags())] or fitting
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
    with filled(home) as scratch:
        program = scratch / _PROGRAMS[project]
        try:
            with zipfile.ZipFile(wheel) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > _LARGEST_UNPACKED_BYTES:
                    raise CompilerUnavailable("is larger than any compiler wheel", where=wheel.name)
                archive.extractall(scratch)  # refuses absolute names and `..` by itself
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
            raise CompilerUnavailable(f"is no wheel: {error}", where=wheel.name) from None
        except OSError as error:
            raise OutputError(f"cannot be unpacked: {error.strerror or error}", where=wheel.name) from None
        if not program.is_file():
            raise CompilerUnavailable(f"holds no {_PROGRAMS[project]}", where=wheel.name)
        for native in program.parent.glob("iree-*"):
            native.chmod(0o755)  # a zip archive read this way keeps no permissions
        open_to_others(scratch)
    return home


# Which releases of the compiler there are, asked once a run, so that `latest` is the same for all that name it.


@lru_cache(maxsize=32)
def offered(places: Places, cancel: Cancel, *, briefly: bool = False) -> tuple[Version, ...]:
    """All releases for this machine and Python, pre-releases too, the oldest first; raises CompilerUnavailable.

    A run has one `cancel`: the answer to the first question is the answer of all of its run.
    `briefly`: in one short request, for somebody who only asks whether the index is there.
    """
    patience = (f"--timeout={_ANSWER_SECONDS}", "--retries=0") if briefly else ("--retries=2",)
    argv, limit_seconds = ("index", "versions", places.project, "--pre"), 2 * _ANSWER_SECONDS if briefly else 120
    outcome = pip(*argv, *patience, *places.argv, cancel=cancel, timeout_seconds=limit_seconds)
    listed = re.search(r"^Available versions: (.+)$", outcome.output, re.MULTILINE)
    if not outcome.ok or listed is None:
        what = f"{'no answer' if briefly else 'the releases cannot be listed'}: {reason(outcome)}"
        hint = "check the network and the index, or name one release"
        raise CompilerUnavailable(what, where=places.project, hint=hint)
    versions = set()
    for text in listed[1].split(","):
        with contextlib.suppress(InvalidVersion):  # a release of before PEP 440
            versions.add(Version(text))
    return tuple(sorted(versions))


def newest(moving: str, places: Places, cancel: Cancel) -> str:
    """The release that `latest` or `nightly` is in this run; raises CompilerUnavailable.

    `nightly` insists on pre-releases: where none is offered nobody said where they are.
    """
    if moving == NIGHTLY and places.project != PROJECT:
        hint = f"name a release of {places.project}, latest, or a wheel"
        raise CompilerUnavailable("nightly releases are known of IREE alone", where=moving, hint=hint)
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


# From a SPEC to a compiler that can be run: its native binary, its Python bindings, and what it says of itself.
#
# Forms of SPEC: a release (`3.13.0`, `iree-base-compiler==3.13.0`), a wheel file, a directory with one wheel, an `iree-
# compile` binary, a virtual environment or a build directory that holds one.


NATIVE_BINARY = Path("iree/compiler/_mlir_libs/iree-compile")
"""Inside a wheel; the `iree-compile` in `bin/` is a Python script that costs up to a second a call."""

_VERSION = re.compile(r"IREE compiler version (\S+)(?: @ ([0-9a-f]{7,40}))?")
_BINARY_PLACES = (
    "lib/python3*/site-packages/iree/compiler/_mlir_libs/iree-compile",
    "iree/compiler/_mlir_libs/iree-compile",
    "tools/iree-compile",
    "bin/iree-compile",
    "iree-compile",
)
_BINDINGS_PLACES = ("compiler/bindings/python", "python_packages/iree_compiler")
PATIENCE_SECONDS = 120.0  # For the answer to one question, where a compile may take longer
SPEC_HINT = "give a release such as 3.13.0, a wheel, an iree-compile binary, or a directory that holds one"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler of one side, ready to run."""

    binary: Path  # the native `iree-compile`
    info: CompilerInfo
    # directory to put on `sys.path` for its own MLIR bindings; None with the reason in `no_bindings`
    bindings: Path | None
    no_bindings: str = ""
    patience_seconds: float = PATIENCE_SECONDS  # for the answer to one question, such as a trivial module
    python: str = sys.executable  # the interpreter that loads them


_Located = tuple[Path, Path | None, str]
"""A native binary, the directory of its Python bindings, and the SPEC as it is shown."""


def resolve(
    spec: str,
    cache: Path,
    cancel: Cancel,
    say: Callable[[str], None],
    places: Places = _INDEX,
    timeout_seconds: float = PATIENCE_SECONDS,
) -> Toolchain:
    """The compiler that `spec` names; raises CompilerUnavailable.

    `say`: gets a line before anything slow; `timeout_seconds`: how long one compile may take, and so the answer to a
    question.
    """
    cache = cache.absolute()  # compiles run in directories of their own
    (binary, bindings, shown), no_bindings = _locate(spec, cache, cancel, say, places), ""
    patience = min(timeout_seconds, PATIENCE_SECONDS)
    answer = _ask_version(binary, cancel, spec, patience)
    stated = _VERSION.search(answer.output)
    if not answer.ok or stated is None:
        lines = answer.output.strip().splitlines()[:1]
        detail = f" (it said: {lines[0][:120]})" if lines else ""
        raise CompilerUnavailable(f"is no iree-compile: --version does not name an IREE compiler{detail}", where=spec)
    info = CompilerInfo(stated[1], stated[2] or "", compiler_digest(binary, bindings, cache), shown)
    python = interpreter(bindings, cancel) if bindings else None
    if bindings is None or python is None:
        bindings, no_bindings = None, "no MLIR Python bindings beside this compiler"
    elif not python:
        bindings, no_bindings = None, here("no Python on PATH can load this compiler's MLIR bindings")
    return Toolchain(binary, info, bindings, no_bindings, patience, python or sys.executable)


_LOADS = "import sys; sys.path.insert(0, sys.argv[1]); sys.modules['numpy'] = None; import iree.compiler.ir"
_PYTHONS = [f"python3.{minor}" for minor in range(9, 20)]


def interpreter(root: Path, cancel: Cancel) -> str | None:
    """The Python that loads the MLIR bindings below `root`: this one, else one on PATH that is seen to load them.

    Empty where there is none, None where there are no bindings.
    """
    libraries = [path.name for path in (root / NATIVE_BINARY.parent).glob("_mlir.*")]
    if not libraries:
        return None
    if any(name.startswith(f"_mlir.{sys.implementation.cache_tag}-") for name in libraries):
        return sys.executable
    others = (os.path.join(place, name) for name in _PYTHONS for place in os.get_exec_path())
    for python in (sys.executable, *filter(os.path.exists, others)):
        with contextlib.suppress(OSError):
            if run([python, "-I", "-B", "-c", _LOADS, str(root)], cancel=cancel, timeout_seconds=60).ok:
                return python
    return ""


def _locate(spec: str, cache: Path, cancel: Cancel, say: Callable[[str], None], places: Places) -> _Located:
    """What a path names; where there is nothing, a release."""
    try:
        path = Path(spec).expanduser()
        if spec.strip() and path.is_file():
            is_wheel = path.suffix == ".whl"
            return _unpacked(unpack(path, cache), path.name) if is_wheel else _from_binary(path.resolve(), spec[:200])
        if spec.strip() and path.is_dir():
            return _from_directory(path.resolve(), cache, spec[:200])
    except (RuntimeError, ValueError):  # `~nobody`, a null character
        pass
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise CompilerUnavailable(what, where=spec[:200], hint=SPEC_HINT) from None
    moving = spec.strip() if spec.strip() in MOVING else ""
    release = newest(moving, places, cancel) if moving else release_of(spec)
    if release is None:
        where = spec[:200] if spec.strip() else "an empty SPEC"
        raise CompilerUnavailable("is no compiler: no such file, directory or release", where=where, hint=SPEC_HINT)
    shown = f"{PROJECT}=={release}"
    if moving:
        shown = f"{moving}{RESOLVED}{shown}"
        say(shown)
    return _unpacked(fetch_release(release, cache, cancel, say, places), shown)


def _unpacked(root: Path, shown: str) -> _Located:
    return root / NATIVE_BINARY, root, shown


def _from_binary(binary: Path, where: str) -> _Located:
    if _is_script(binary):  # the wrapper of a virtual environment
        try:
            return _from_directory(binary.parent.parent, None, where)
        except CompilerUnavailable:
            what = "is a script, and no native iree-compile is where its virtual environment or build would have it"
            raise CompilerUnavailable(what, where=where, hint=SPEC_HINT) from None
    if binary.match(f"*/{NATIVE_BINARY}"):
        return binary, binary.parents[3], binary.name
    places = (binary.parent.parent / place for place in _BINDINGS_PLACES)
    return binary, next((place for place in places if (place / "iree/compiler").is_dir()), None), binary.name


def _is_script(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def _from_directory(directory: Path, cache: Path | None, where: str) -> _Located:
    if cache is not None and (wheel_files := sorted(directory.glob("iree_base_compiler-*.whl"))):
        return _unpacked(unpack(only_fitting(wheel_files, directory), cache), directory.name)
    binaries = [path for place in _BINARY_PLACES for path in sorted(directory.glob(place)) if path.is_file()]
    if native := next((path for path in binaries if not _is_script(path)), None):
        return *_from_binary(native, where)[:2], directory.name
    what = "holds an iree-compile that is a script" if binaries else "holds no iree-compile"
    raise CompilerUnavailable(f"{what}, and no iree_base_compiler wheel", where=where, hint=SPEC_HINT)


def _ask_version(binary: Path, cancel: Cancel, where: str, patience_seconds: float) -> Outcome:
    try:
        outcome = run([str(binary), "--version"], cancel=cancel, timeout_seconds=patience_seconds)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "it must be an executable for this machine"
        raise CompilerUnavailable(f"cannot be started: {reason}", where=where, hint=hint) from None
    if outcome.timed_out:
        raise CompilerUnavailable(f"does not answer --version within {patience_seconds:g} s", where=where)
    return outcome
