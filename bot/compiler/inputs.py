"""Find the files that a build reads beside its model.

Flags name some, and a model may name others. Their bytes are part of the key of a
build. A build whose files are not all known has no key.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from bot.compiler.file_options import kind_of, paths_in, with_paths
from bot.core.planned import Model, PlannedCell
from bot.errors import InputError
from bot.system.files import hashed, read_bounded

_MOST_FILES = 10_000
_MOST_BYTES = 2 << 30
_PLUGINS = "IREE_LOAD_PLUGINS"
_TOOLS = (
    "IREE_LLVM_EMBEDDED_LINKER_PATH",
    "IREE_LLVM_SYSTEM_LINKER_PATH",
    "IREE_LLVM_WASM_LINKER_PATH",
)
"""Variables by which `iree-compile` finds plugins and linkers."""
_OBJECT = b"executable.object"
_SUBSTITUTE = "--iree-hal-substitute-executable-"
_BYTECODE = b"ML\xefR"
_READING = {
    b"preprocessing_pipeline": "a pipeline of passes",
    b"apply_registered_pass": "a pass",
}
"""Text in a model or a spec that may name further files → what it is called.

The bot does not read such names.
"""
_CHUNK_BYTES = 1 << 20
_STRING = re.compile(rb'"((?:[^"\\\n]|\\.){1,4096})"')
_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))")
_LETTERS = {b"n": b"\n", b"t": b"\t"}
_LOCATION = b"\x0a\x08location"
_EXTERNAL = re.compile(
    re.escape(_LOCATION) + rb"\x12([\x00-\x7f]|[\x80-\xff][\x01-\x7f])", re.DOTALL
)
"""`key: "location"` of an entry of ONNX' `external_data`.

The length of its value follows it.
"""


class NotListed(InputError):
    """The files that a build reads are not all known."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a build reads beside its model."""

    # SHA-256 (hex) over names and bytes; empty where it reads nothing else
    digest: str = ""
    unlisted: str = ""  # why not all of it is known; empty where it is


@dataclass(frozen=True, slots=True)
class Reader:
    """Digests files and folders, each once.

    Attributes:
        folder: What relative paths are relative to.
    """

    folder: Path
    _digests: dict[str, str] = field(default_factory=dict)
    _without_reader: set[Path] = field(default_factory=set)
    _contents: dict[tuple[str, tuple[str, ...]], dict[str, str]] = field(
        default_factory=dict
    )

    def path(self, text: str) -> Path:
        """Return a path as it can be opened from anywhere."""
        return self.folder / text

    def digest(self, text: str) -> str:
        """Return the digest of a file or a folder.

        Raises NotListed for any other kind.
        """
        path = str(self.path(text))
        if path not in self._digests:
            self._digests[path] = _digest(Path(path), text)
        return self._digests[path]

    def of_iree(self, cell: PlannedCell) -> Inputs:
        """Return what `iree-compile` and the importer read beside a build's model."""
        try:
            digests = self._digests_of(cell)
        except NotListed as error:
            return Inputs(unlisted=error.what)
        except OSError as error:
            return Inputs(unlisted=f"{error.strerror}")
        return Inputs(digest=_digest_of(digests) if digests else "")

    def _digests_of(self, cell: PlannedCell) -> dict[str, str]:
        """Return the digests of all files that a build reads.

        Raises:
            NotListed: not all of its files can be known.
            OSError: a file cannot be read.
        """
        flags = (*cell.target.flags, *cell.user_flags, *cell.model.import_flags)
        digests = dict[str, str]()
        for name in (_PLUGINS, *_TOOLS):
            if os.environ.get(name):
                raise NotListed(f"the variable {name} is set")
        other_flags = [flag for flag in flags if not _is_search(flag)]
        for flag in other_flags:
            digests |= self._of_flag(flag)
        if any(kind_of(flag) == "paths" for flag in other_flags):
            # A file that another option names may name object files, too.
            for flag in flags:
                digests |= self._of_flag(flag)
        search_paths = list[str]()
        for flag in flags:
            if _is_search(flag):
                search_paths += paths_in(flag)
        searched = tuple(search_paths)
        for flag in flags:
            if flag.startswith(_SUBSTITUTE):
                digests |= self._found(paths_in(flag), searched)
        return digests | self._of_model(cell.model, searched)

    def _of_flag(self, flag: str) -> dict[str, str]:
        kind = kind_of(flag)
        option = flag.partition("=")[0]
        if kind == "unknown":
            raise NotListed(f"{option} may read any file")
        if kind == "nothing":
            return {}
        paths = paths_in(flag)
        digests = {f"{option} {path}": self.digest(path) for path in paths}
        for path in paths:
            self._require_no_reader(path)
        return digests

    def _require_no_reader(self, text: str) -> None:
        """Raise NotListed for a file that makes the compiler read others, as specs can.

        Raise it as well for a folder with such a file.
        """
        path = self.path(text)
        if path in self._without_reader:
            return
        files = _files_below(path) if path.is_dir() else [path]
        for file in files:
            if description := _reading_in(file):
                raise NotListed(f"{description} that {text} names may read any file")
        self._without_reader.add(path)

    def _of_model(self, model: Model, searched: tuple[str, ...]) -> dict[str, str]:
        key = model.path, searched
        if key not in self._contents:
            data = read_bounded(Path(model.path), model.name)
            if model.path.endswith(".onnx"):
                self._contents[key] = self._of_onnx(model, data)
            else:
                self._contents[key] = self._of_mlir(data, searched)
        return self._contents[key]

    def _of_onnx(self, model: Model, data: bytes) -> dict[str, str]:
        parent = Path(model.path).parent
        digests = dict[str, str]()
        matches = list(_EXTERNAL.finditer(data))
        if len(matches) != data.count(_LOCATION):
            raise NotListed(
                "the bot does not know how the model names its external data"
            )
        for match in matches:
            low, *high = match[1]
            length = low + sum((digit - 1) << 7 for digit in high)
            name = data[match.end() : match.end() + length].decode(
                "utf-8", "surrogateescape"
            )
            if "\0" in name:
                raise NotListed(
                    "the bot does not know how the model names its external data"
                )
            digests[f"data {name!a}"] = self.digest(str(parent / name))
        return digests

    def _of_mlir(self, data: bytes, searched: tuple[str, ...]) -> dict[str, str]:
        for mark, description in _READING.items():
            if mark in data:
                raise NotListed(
                    f"{description}, which the model names, may read any file"
                )
        if _OBJECT not in data:
            return {}
        if data.startswith(_BYTECODE):
            raise NotListed("the model is bytecode that names object files")
        digests = dict[str, str]()
        for name in dict.fromkeys(match[1] for match in _STRING.finditer(data)):
            text = _ESCAPE.sub(_unescaped, name).decode("utf-8", "surrogateescape")
            if "\0" not in text:
                digests |= self._found((text,), searched)
        return digests

    def _found(self, names: Sequence[str], searched: tuple[str, ...]) -> dict[str, str]:
        """Return the digests of object files that the compiler finds by their names."""
        digests = dict[str, str]()
        for name in names:
            for place in ("", *searched):
                path = os.path.join(place, name)
                if os.path.isfile(self.path(path)):
                    digests[f"object {place} {name!a}"] = self.digest(path)
        return digests


def _is_search(flag: str) -> bool:
    return flag.startswith("--iree-hal-executable-object-search-path=")


def _unescaped(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes.fromhex(match[1].decode("ascii"))
    letter: bytes = match[2]
    return _LETTERS.get(letter, letter)


def _digest_of(digests: dict[str, str]) -> str:
    text = "\n".join(f"{name!a} {digest}" for name, digest in sorted(digests.items()))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _digest(path: Path, shown_path: str) -> str:
    """Digest a file, or all files of a folder with their names.

    The digest of a missing file is `missing`.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "missing"
    except (OSError, ValueError):
        raise NotListed(f"{shown_path} cannot be read") from None
    if stat.S_ISREG(mode):
        return hashed(path)
    if not stat.S_ISDIR(mode):
        raise NotListed(f"{shown_path} is neither a file nor a folder")
    digests = dict[str, str]()
    total_bytes = 0
    for file in _files_below(path):
        total_bytes += file.stat().st_size
        if len(digests) >= _MOST_FILES or total_bytes > _MOST_BYTES:
            raise NotListed(f"the folder {shown_path} has too many files")
        digests[file.relative_to(path).as_posix()] = hashed(file)
    return _digest_of(digests)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the regular files of a folder.

    Links to folders are followed, each folder once.
    """
    visited = set[str]()
    for directory, names, files in os.walk(folder, followlinks=True, onerror=_refuse):
        real = os.path.realpath(directory)
        if real in visited:
            names.clear()
            continue
        visited.add(real)
        if ".git" in names:
            names.remove(".git")
        for name in sorted(files):
            path = Path(directory, name)
            if name != ".git" and path.is_file():
                yield path


def _reading_in(path: Path) -> str:
    """Return what in a file may name files in a way that the bot does not read.

    Empty if there is nothing of that kind, or no such file.
    """
    if not path.is_file():
        return ""
    longest = max(map(len, _READING))
    end = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            data = end + chunk
            for mark, description in _READING.items():
                if mark in data:
                    return description
            end = data[-longest:]
    return ""


def _refuse(error: OSError) -> None:
    raise NotListed(f"{error.filename} cannot be read")


def with_inputs(
    cells: Iterable[PlannedCell], folder: Path, top: Path | None
) -> tuple[PlannedCell, ...]:
    """Return the builds of IREE with the files that each reads beside its model.

    A relative path in a flag is relative to `folder`, that of the configuration. In
    the printed command it is relative to `top`, like the model's path. If `top` is
    None, it is relative to `folder` there, too.
    """
    reader = Reader(folder.resolve())
    result = []
    for cell in cells:
        inputs = reader.of_iree(cell)
        shown_cell, absolute_flags = _with_shown_flags(cell, reader, top)
        result.append(
            structs.replace(
                shown_cell,
                inputs=inputs.digest,
                unlisted=inputs.unlisted,
                places=absolute_flags,
            )
        )
    return tuple(result)


def _with_shown_flags(
    cell: PlannedCell, reader: Reader, top: Path | None
) -> tuple[PlannedCell, tuple[tuple[str, str], ...]]:
    """Return the build with its flags as they are printed.

    The second value has each printed flag beside the flag with absolute paths.
    """
    places = dict[str, str]()

    def shown(flags: Sequence[str]) -> tuple[str, ...]:
        result = []
        for flag in flags:
            printed = flag
            if kind_of(flag) == "paths":
                absolute = dict[str, str]()
                from_top = dict[str, str]()
                for path in paths_in(flag):
                    place = reader.path(path)
                    if os.path.exists(place) and not os.path.isabs(path):
                        absolute[path] = os.path.normpath(place)
                        from_top[path] = _from(absolute[path], top) or path
                printed = with_paths(flag, from_top)
                places[printed] = with_paths(flag, absolute)
            result.append(printed)
        return tuple(result)

    target = structs.replace(cell.target, flags=shown(cell.target.flags))
    model = structs.replace(cell.model, import_flags=shown(cell.model.import_flags))
    named = structs.replace(
        cell, target=target, model=model, user_flags=shown(cell.user_flags)
    )
    return named, tuple(places.items())


def _from(place: str, top: Path | None) -> str:
    """Return a path relative to the top of the repository; empty for a path outside."""
    if top is None or not Path(place).is_relative_to(top.resolve()):
        return ""
    return os.path.relpath(place, top.resolve())


def not_cached(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield a line for each reason why builds are not cached."""
    counts = dict[str, int]()
    for cell in cells:
        if cell.unlisted:
            counts[cell.unlisted] = counts.get(cell.unlisted, 0) + 1
    for reason, count in counts.items():
        if count == 1:
            builds = "1 build is"
        else:
            builds = f"{count} builds are"
        yield f"{builds} not cached: {reason}"
