"""Model files as values: name, digest, size, and the path to print."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from bot.core.values.planned import Model
from bot.errors import InputError


def load_models(paths: Sequence[Path], top: Path | None) -> tuple[Model, ...]:
    """Read every model once; raises InputError for one that is missing, empty or unreadable.

    `top` is the repository's work tree: paths are printed relative to it, or to the configuration's directory.
    """
    return tuple(_load(path, top) for path in paths)


def _load(path: Path, top: Path | None) -> Model:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), hint="check `models` of the configuration"
        ) from None
    if not data.strip():
        raise InputError("is empty", where=str(path), hint="a model holds at least one function")
    shown = _shown(path.resolve(), top)
    try:
        shown.encode()
    except UnicodeEncodeError:
        raise InputError("has a name that is not UTF-8", where=ascii(shown), hint="rename it") from None
    return Model(path.stem, str(path.resolve()), shown, hashlib.sha256(data).hexdigest(), len(data))


def _shown(path: Path, top: Path | None) -> str:
    if top is not None and path.is_relative_to(top.resolve()):
        return path.relative_to(top.resolve()).as_posix()
    return f"{path.parent.name}/{path.name}"
