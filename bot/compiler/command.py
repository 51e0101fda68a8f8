"""Run a compiler of which only its command is known.

The command is a package's, a program of this machine, or a script of the repository. It
runs in a folder that has the sources and the model, at the same paths as beside the
configuration. An empty folder is there for its output. The configuration says which
files are measured. The files themselves show what they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from glob import iglob
from itertools import filterfalse
from pathlib import Path
from shlex import split

import msgspec
from msgspec import structs

from bot.compiler.cell_cache import digest_of
from bot.compiler.compiler import Compile, Compiled, Result, Session
from bot.compiler.diagnostics import failure
from bot.compiler.importing import lfs_pointer
from bot.compiler.machine_limits import require_room
from bot.compiler.outside import outside_of, packages_digest
from bot.compiler.storage import COMPLETE, filled
from bot.compiler.unpacked import digests_of, held, write_list
from bot.compiler.wheels import (
    download,
    is_wheel_of,
    newest,
    pip,
    reason,
    require_hash,
    this_python,
)
from bot.core.json_text import require_single_keys
from bot.core.metrics import METRIC_BY_ID
from bot.core.planned import PlannedCell
from bot.core.snapshot import CompilerInfo, Failure
from bot.core.spec import (
    COMMIT,
    MOVING,
    RESOLVED,
    Command,
    Places,
    meant_spec,
    names_commit,
)
from bot.errors import CompilerUnavailable, InputError
from bot.system.cancel import Cancel
from bot.system.confined import PLACE, confined, has_namespaces, isolation
from bot.system.files import (
    MOST_READ_BYTES,
    hashed,
    read_bounded,
    require_bounded,
    temporary_directory,
)
from bot.system.processes import run
from bot.system.trees import files_below, printable, require_utf8

OUT = "out"
FACTS = "facts.json"
STACK_USAGE = "*.su"
_PYTHON = "python"
_MOST_FILES = 10_000
_MOST_FACTS_BYTES = 1 << 20
# Access and modification time of all files that a command reads, as debug information
# has them
_TIMES = (
    1_000_000_000,
    1_000_000_000,
)
_ENVIRONMENT = {
    "HOME": str(PLACE),
    "TMPDIR": str(PLACE / "tmp"),
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": "0",
}
_PLACEHOLDER = re.compile(r"\{(model|target|out|side)\}")


@dataclass(frozen=True, slots=True)
class CommandCompiler:
    """One side's command."""

    command: Command
    info: CompilerInfo
    side: tuple[str, ...]  # the words that stand for `{side}` in the command
    environment: Path | None  # where the package is installed; None without one
    # path beside the configuration → file with those bytes
    sources: Mapping[str, bytes]
    is_traced: bool = False

    def in_its_words(
        self, _side: str, cells: Sequence[PlannedCell], _cancel: Cancel
    ) -> tuple[PlannedCell, ...]:
        """Return the cells with the words of their command.

        They also have the files that they read beside their model.
        """
        lines = _digest_lines(self.sources)
        result = []
        for cell in cells:
            other_lines = dict(lines)
            other_lines.pop(self.path_of(cell.model.path), None)
            inputs = digest_of(list(other_lines.values())) if other_lines else ""
            worded = structs.replace(cell, run=self._words(cell), inputs=inputs)
            result.append(structs.replace(worded, unlisted=self._unlisted(worded)))
        return tuple(result)

    def _unlisted(self, cell: PlannedCell) -> str:
        """Return why not all files that the command reads are known.

        Empty where they are known.
        """
        model = read_bounded(Path(cell.model.path), cell.model.name)
        command_text = "\n".join(cell.printed).encode("utf-8", "surrogateescape")
        texts = ("", command_text), (cell.model.path, model), *self.sources.items()
        outside = outside_of(texts, self.environment)
        if outside:
            return f"the command names {outside}, which is not a file in its folder"
        return ""

    def _words(self, cell: PlannedCell) -> tuple[str, ...]:
        values = {
            "model": self.path_of(cell.model.path),
            "target": cell.target.name,
            "out": OUT,
        }
        values["side"] = " ".join(self.side)
        arguments = list[str]()
        for word in self.command.run:
            if word == "{side}":
                arguments += self.side
            else:
                arguments.append(word)
        return tuple(
            [_PLACEHOLDER.sub(lambda name: values[name[1]], text) for text in arguments]
        )

    def path_of(self, model: str) -> str:
        """Return a model's path beside the configuration.

        It is the model's name if the model is not below the configuration.
        """
        path = os.path.relpath(model, self.command.root)
        if path.startswith(".."):
            return Path(model).name
        return path

    def at_work(self, session: Session) -> AbstractContextManager[Compile]:
        """Make ready for compiles; each has a folder of its own."""
        return nullcontext(partial(self._compile, session))

    def _compile(self, session: Session, cell: PlannedCell, _layout: int) -> Result:
        """Return what the command made of one cell.

        Its files are read when no process of it is alive any more.
        """
        if pointer := lfs_pointer(Path(cell.model.path)):
            return pointer
        with temporary_directory("cell-", session.scratch) as parent:
            folder = parent / "cell"
            files = {
                **self.sources,
                self.path_of(cell.model.path): Path(cell.model.path).read_bytes(),
            }
            reserved = {OUT, "tmp"}
            if self.environment is not None:
                reserved.add(_PYTHON)
            for name, data in files.items():
                if os.path.normpath(name).partition(os.sep)[0] in reserved:
                    return Failure(
                        "compile",
                        f"{name} has the name of a folder that the command needs:"
                        " rename it",
                    )
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
                os.utime(folder / name, _TIMES)
            (folder / OUT).mkdir()
            (folder / "tmp").mkdir()
            path = os.environ.get("PATH", os.defpath)
            if self.environment is not None:
                (folder / _PYTHON).symlink_to(self.environment)
                path = f"{PLACE / _PYTHON / 'bin'}:{path}"
            environment = {**_ENVIRONMENT, "PATH": path}  # nothing of the user's
            cancel = session.cancel
            limit_seconds = session.timeout_seconds
            try:
                outcome = confined(
                    cell.argv,
                    folder,
                    cancel=cancel,
                    environment=environment,
                    timeout_seconds=limit_seconds,
                )
            except InputError as error:
                return Failure("compile", error.what)
            session.meter.add(cell.model.name, outcome.cpu_ms)
            require_room(outcome, parent)
            if not outcome.ok:
                output = outcome.output.replace(f"{PLACE}/", "")
                # Python prints the exception in the last line.
                if "Traceback (most recent call last)" in output:
                    output = output.rstrip().rpartition("\n")[2]
                return failure(replace(outcome, output=output), limit_seconds)
            try:
                result = self._collected(
                    folder / OUT, outcome.cpu_ms, outcome.peak_rss_kib
                )
                if isinstance(result, Compiled):
                    return replace(result, sources_digest=_digest(files))
                return result
            except InputError as error:
                return Failure("read", error.what)
            except OSError as error:
                return Failure("read", f"{error.strerror}")

    def _collected(self, out: Path, cpu_ms: int, peak_rss_kib: int | None) -> Result:
        """Return what the command wrote.

        Raises InputError for files beyond the limits.
        """
        paths = {}
        for entry in files_below(out):
            path = Path(entry.path)
            paths[path.relative_to(out).as_posix()] = path
        if len(paths) > _MOST_FILES:
            raise InputError(
                f"the command wrote {len(paths):,} files, and the limit is {_MOST_FILES:,}"
            )
        names = sorted(paths)
        command = self.command
        artifacts = [name for name in names if any_of(command.artifacts, name)]
        if not artifacts:
            written = ", ".join(map(printable, names[:3])) or "nothing"
            return Failure(
                "compile",
                f"wrote no file that is {' or '.join(command.artifacts)}, but {written}",
            )
        stages = [f"*.{stage}" for stage in command.stages]
        patterns = (*command.artifacts, STACK_USAGE, *stages)
        measured = {}
        for name in names:
            if any_of(patterns, name):
                measured[name] = paths[name]
        _require_readable(measured, out)
        return Compiled(
            {name: read_bounded(path, name) for name, path in measured.items()},
            cpu_ms,
            peak_rss_kib,
            facts=self._facts(out / FACTS),
            artifacts=tuple(artifacts),
            stages=command.stages,
        )

    def _facts(self, path: Path) -> dict[str, int | None]:
        """Return metric id → its value in the command's file of facts, or None.

        All metrics that the configuration declares are there. Raises
        InputError.
        """
        text = b"{}"
        if path.is_file():
            text = read_bounded(path, FACTS, _MOST_FACTS_BYTES)
        try:
            figures = msgspec.json.decode(text, type=dict[str, int])
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(
                f"{FACTS} is not a mapping of metric ids to whole numbers:"
                f" {str(error)[:120]}"
            ) from None
        try:
            require_single_keys(text, FACTS)
        except InputError as error:
            raise InputError(f"{FACTS} {error.what}") from None
        declared = [metric.id for metric in self.command.metrics]
        unknown = figures.keys() - METRIC_BY_ID.keys() - set(declared)
        if unknown:
            raise InputError(
                f"{FACTS} names an unknown metric: {min(unknown)[:60]!r};"
                " compiler.metrics declares additional metrics"
            )
        return {**dict.fromkeys(declared), **figures}


def _digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 (hex) of files and their paths."""
    return digest_of([*_digest_lines(files).values()])


def _digest_lines(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return path → the path with the file's SHA-256 (hex), in the paths' order."""
    lines = dict[str, str]()
    for name in sorted(files):
        lines[name] = f"{name}\n{hashlib.sha256(files[name]).hexdigest()}"
    return lines


def any_of(globs: Sequence[str], name: str) -> bool:
    """Return True if a glob matches a file's path, or its name alone."""
    file_name = name.rpartition("/")[2]
    return any(
        fnmatchcase(name, glob) or fnmatchcase(file_name, glob) for glob in globs
    )


def _require_readable(measured: Mapping[str, Path], out: Path) -> None:
    """Check the files that are measured.

    Raises InputError for links and large files.
    """
    for name in measured:
        require_utf8(name)
    if (out / FACTS).is_symlink():
        raise InputError(f"{FACTS} is a link")
    for name, path in measured.items():
        if path.is_symlink():
            raise InputError(f"{name} is a link")
    whole_bytes = sum(require_bounded(path, name) for name, path in measured.items())
    if whole_bytes > MOST_READ_BYTES:
        raise InputError(
            f"the files have {whole_bytes:,} bytes, and the limit is"
            f" {MOST_READ_BYTES:,}"
        )


def command_compiler(
    command: Command,
    spec: str,
    cache: Path,
    places: Places,
    say: Callable[[str], None],
    cancel: Cancel,
    moving: str = "",
    commit: str = "",
) -> CommandCompiler:
    """Return the compiler that `spec` names.

    It names a release or wheel of the package, else a ref of the repository, else
    words for `{side}`.

    `moving`: the name of the SPEC if it stands for another release from time to
    time. `commit`: the SHA of the commit whose files are in the command's folder;
    empty for none.

    Raises CompilerUnavailable.
    """
    if command.package and spec.strip() in MOVING:
        moving = spec.strip()
        spec = newest(moving, places, cancel)
    if not has_namespaces():
        say(f"commands {isolation()}")
    environment = None
    key = ""
    side = tuple[str, ...]()
    version = spec
    revision = ""
    root = Path(command.root)
    if names_commit(spec):
        if command.package or not commit:
            hint = (
                "compare two releases of it, or use --config and --head-config for the"
                " two commits"
            )
            raise CompilerUnavailable(
                f"does not say which {command.package}", where=spec, hint=hint
            )
        version = f"{spec.removeprefix(COMMIT)} {commit[:10]}"
        revision = commit
    elif command.package:
        environment, key, version = _installed(
            command.package,
            spec=spec,
            cache=cache.absolute(),
            places=places,
            say=say,
            cancel=cancel,
        )
    else:
        try:
            side = tuple(split(spec))
        except ValueError as error:
            raise CompilerUnavailable(
                f"is not a command: {error}", where=spec
            ) from None
    sources = _sources(command, root)
    files = list(_digest_lines(sources).values())
    programs = _programs_of(command, side, environment)
    digest = digest_of(
        key,
        command.run,
        command.artifacts,
        command.stages,
        side,
        files,
        programs,
        [metric.id for metric in command.metrics],
    )
    if not revision:
        version = f"{command.package or 'command'} {version}"
    shown_spec = version.replace(" ", "==") if environment else spec
    if moving:
        shown_spec = f"{moving}{RESOLVED}{shown_spec}"
    info = CompilerInfo(
        version=version,
        revision=revision,
        digest=digest,
        spec=shown_spec,
        metrics=command.metrics,
    )
    return CommandCompiler(
        command=command, info=info, side=side, environment=environment, sources=sources
    )


def _programs_of(
    command: Command, side: Sequence[str], environment: Path | None
) -> list[str]:
    """Return name and digest of the programs of this machine that the command names.

    Their bytes are part of what the compiler is.
    """
    names = set[str]()
    for word in (*command.run, *side):
        names.update(filter(None, re.split(r"[\s;&|()]+", word)))
    installed = set[str]()
    if environment:
        installed = {path.name for path in (environment / "bin").iterdir()}
    programs = list[str]()
    for name in sorted(names):
        path = shutil.which(name)
        if path and name not in installed:
            programs.append(f"{name} {hashed(Path(path))}")
    if programs:
        programs.append(packages_digest())
    return programs


def _sources(command: Command, root: Path) -> dict[str, bytes]:
    """Return the files that the folder gets, and those that the command names."""
    names = set(filterfalse(os.path.isabs, command.run))
    for glob in command.sources:
        names.update(iglob(glob, root_dir=root, recursive=True))
    files = dict[str, Path]()
    outside = list[str]()
    for name in names:
        path = root / name
        if ".." in Path(name).parts or not os.path.isfile(path):
            continue
        files[name] = path
        if not path.resolve().is_relative_to(root.resolve()):
            outside.append(name)
    if outside:
        raise CompilerUnavailable(
            "is outside of the configuration's folder", where=min(outside)
        )
    for name in files:
        require_utf8(name)
    return {name: read_bounded(path, name) for name, path in files.items()}


def _installed(
    package: str,
    spec: str,
    cache: Path,
    places: Places,
    say: Callable[[str], None],
    cancel: Cancel,
) -> tuple[Path, str, str]:
    """Install the package with what it needs.

    Returns its folder, the digest of all wheels, and its version.
    """
    wheel = Path(spec)
    is_file = spec.endswith(".whl") and wheel.is_file()
    version = places.release(spec) or ""
    if not is_file and not version:
        meant = meant_spec(spec)
        hint = "such as 3.9.0, or latest"
        if meant:
            hint = f"did you mean {meant}?"
        raise CompilerUnavailable(
            f"is neither a release of {package} nor a wheel",
            where=spec[:200],
            hint=hint,
        )
    if is_file:
        identity = f"wheel-{hashed(wheel)[:32]}"
    else:
        identity = version
    name = f"env-{package}-"
    home = (
        cache
        / "toolchains"
        / "-".join(filter(None, (name + identity, this_python(), places.key)))
    )
    hashes = () if is_file else places.hashes_of(version)
    if places.changeable or not held(home, say, hashes=hashes, byte_code=False):
        say(f"fetching {package} {version if not is_file else wheel.name}")
        if is_file:
            requirement = str(wheel.resolve())
        else:
            requirement = f"{package}=={version}"
        home = _install(
            requirement,
            home=home.parent / name if places.changeable else home,
            places=places,
            cancel=cancel,
            say=say,
        )
    key = (home / COMPLETE).read_text(encoding="ascii")
    return home, key, wheel.name.split("-")[1] if is_file else version


def _install(
    requirement: str,
    home: Path,
    places: Places,
    cancel: Cancel,
    say: Callable[[str], None],
) -> Path:
    """Make a virtual environment with this Python.

    If the places may hold other wheels tomorrow, the folder's name is `home` with
    the digest of the wheels.
    """
    python = str(getattr(sys, "_base_executable", sys.executable))
    name = "python{}.{}".format(*sys.version_info)
    with temporary_directory("wheel-") as wheels:
        files = download(
            requirement,
            places=places,
            cancel=cancel,
            scratch=wheels,
            more_hint="; or run code-size-bot with a Python that fits its wheels",
        )
        digest = digest_of(
            this_python(), [f"{path.name} {hashed(path)}" for path in files]
        )
        compiler_wheel = next(
            (path for path in files if is_wheel_of(path, places.project)), None
        )
        if compiler_wheel is not None:
            require_hash(
                compiler_wheel, places.hashes_of(places.release(requirement) or "")
            )
        if places.changeable:
            home = home.with_name(home.name + digest[:32])
            if held(home, say, byte_code=False):
                return home
        with filled(home, digest) as scratch:
            target = str(scratch / "lib" / name / "site-packages")
            options = (
                "--no-deps",
                "--no-index",
                "--no-compile",
                "--quiet",
                "--target",
                target,
                *map(str, files),
            )
            outcome = run(
                [
                    python,
                    "-I",
                    "-m",
                    "venv",
                    "--without-pip",
                    "--symlinks",
                    str(scratch),
                ],
                cancel=cancel,
            )
            if outcome.ok:
                outcome = pip("install", *options, cancel=cancel, scratch=wheels)
            if not outcome.ok:
                raise CompilerUnavailable(
                    f"could not be installed: {reason(outcome)}", where=requirement
                )
            for path in scratch.rglob("*"):
                if path.name != COMPLETE:  # its time says when the compiler was used
                    os.utime(path, _TIMES, follow_symlinks=False)
            write_list(
                scratch, () if compiler_wheel is None else digests_of(compiler_wheel)
            )
    return home
