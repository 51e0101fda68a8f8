"""What a repository has that can be measured: its models, and the file that pins its compiler.

Names are relative to the directory that is looked through, with slashes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.config.configuration import MODEL_SUFFIXES
from bot.config.requirements import asks_for_compiler, pinned_compiler
from bot.errors import ConfigError
from bot.system.git import Git

MOST_MODELS = 20
"""A pull request waits for each of them; who wants more writes them down."""
MOST_BYTES = 32 << 20
"""Of a model: a larger one holds weights, which no dispatch is made of."""
_LOOKED_FOR = (*(f"*{suffix}" for suffix in MODEL_SUFFIXES), "*requirements*", "*constraints*", "*pyproject.toml")

_FOREIGN = re.compile(
    r"\..+|(?:build|bazel|cmake-build|dist|out|venv|env)(?:[-_.].*)?|third[-_]?party|externals?|vendor(?:ed)?"
    r"|node_modules|site-packages|__pycache__",
    re.IGNORECASE,
)
_TESTS = re.compile(r"(?:unit)?tests?|test[-_]?data|lit", re.IGNORECASE)
_LIT_TEST = re.compile(rb"^[ \t]*//[ \t]*RUN:", re.MULTILINE)
_HEAD_BYTES = 8192
_BYTECODE, _LFS = b"ML\xefR", b"version https://git-lfs."
# The better file for a pin comes first.
_PIN_FILES = (
    re.compile(r"requirements\.txt"),
    re.compile(r"[\w.-]*requirements[\w.-]*(?:/[\w.-]+)?\.txt"),
    re.compile(r"[\w.-]*constraints[\w.-]*\.txt"),
    re.compile(r"pyproject\.toml"),
    re.compile(r"[\w.-]*(?:requirements|constraints)[\w.-]*\.in"),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What a repository offers.

    Attributes:
        models: those to measure, sorted; their stems are unique.
        left_out: file that could be taken for a model → why it is not one of them.
        pin: the file that pins the compiler; empty where there is none.
        compiler: the SPEC that it pins.
        unpinned: one line for every better file that names the compiler without pinning one release.
    """

    models: tuple[str, ...]
    left_out: Mapping[str, str]
    pin: str
    compiler: str
    unpinned: tuple[str, ...]


def discover(top: Path, git: Git | None) -> Found:
    """Look through a directory: through what git tracks or would track, else through all that is not hidden."""
    names = [name for name in (_of_git(git) if git else _of_folder(top)) if (top / name).is_file()]
    models, left_out = _models(top, [name for name in names if name.endswith(MODEL_SUFFIXES)])
    return Found(models, left_out, *_pin(top, names))


def _of_git(git: Git) -> list[str]:
    listed = git.text("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_LOOKED_FOR)
    return sorted({name for name in listed.split("\0") if name})


def _of_folder(top: Path) -> Iterator[str]:
    for directory, folders, files in os.walk(top):
        folders[:] = sorted(folder for folder in folders if not _FOREIGN.fullmatch(folder))
        yield from (Path(directory, file).relative_to(top).as_posix() for file in sorted(files))


def _folders(name: str) -> list[str]:
    return name.split("/")[:-1]


def _models(top: Path, names: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    left_out = {name: why for name in sorted(names) if (why := _unfit(top, name))}
    by_stem: dict[str, str] = {}
    for name in sorted(set(names) - left_out.keys(), key=lambda name: (name.count("/"), name)):
        first = by_stem.setdefault(Path(name).stem, name)
        if first != name:
            left_out[name] = f"it has the same name as {first}, and reports name models by it"
    by_size = sorted(by_stem.values(), key=lambda name: ((top / name).stat().st_size, name))
    beyond = f"beyond the {MOST_MODELS} smallest models: each adds to the time of a pull request's run"
    left_out |= dict.fromkeys(by_size[MOST_MODELS:], beyond)
    return tuple(sorted(by_size[:MOST_MODELS])), left_out


def _unfit(top: Path, name: str) -> str:
    """Why a file is no model for a beginning; empty where it is one."""
    path = top / name
    if not name.isprintable():
        return "its name has characters that do not print"
    if any(_FOREIGN.fullmatch(folder) for folder in _folders(name)):
        return "in a folder of builds, of others' code, or hidden"
    if any(_TESTS.fullmatch(folder) for folder in _folders(name)):
        return "in a folder of tests"
    if not path.resolve().is_relative_to(top.resolve()):
        return "a link that leaves the repository"
    if name.endswith(".onnx"):
        return "ONNX, which the action's image does not import"
    if path.stat().st_size > MOST_BYTES:
        return f"larger than {MOST_BYTES >> 20} MiB: keep weights out of the file, as parameters or arguments"
    try:
        return _no_model(path.read_bytes(), is_text=name.endswith(".mlir"))
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _no_model(data: bytes, *, is_text: bool) -> str:
    if not data.strip():
        return "empty"
    if data.startswith(_LFS):
        return "a pointer of Git LFS, and the bot fetches no large files"
    if data.startswith(_BYTECODE):
        return ""
    if not is_text:
        return "not MLIR bytecode"
    if _LIT_TEST.search(data[:_HEAD_BYTES]):
        return "a test of a compiler: it has RUN lines"
    return "" if b"func" in data else "defines no function"


def _pin(top: Path, names: Iterable[str]) -> tuple[str, str, tuple[str, ...]]:
    """The best file that pins the compiler, what it pins, and what is wrong with better ones that only name it."""
    unpinned: list[str] = []
    for name in sorted(filter(_rank, names), key=lambda name: (name.count("/"), _rank(name), name)):
        if not _asks(top / name):
            continue
        try:
            return name, pinned_compiler(top / name), tuple(unpinned)
        except ConfigError as error:
            unpinned.append(error.line.replace(f"{top}/", ""))
    return "", "", tuple(unpinned)


def _asks(path: Path) -> bool:
    try:
        return asks_for_compiler(path)
    except ConfigError:
        return False


def _rank(name: str) -> int:
    """From 1, the best kind of file for a pin; 0 for any other file."""
    if any(_FOREIGN.fullmatch(folder) for folder in _folders(name)):
        return 0
    ends = ["/".join(name.split("/")[-parts:]) for parts in (1, 2)]
    matching = (rank for rank, kind in enumerate(_PIN_FILES, 1) if any(kind.fullmatch(end) for end in ends))
    return next(matching, 0)
