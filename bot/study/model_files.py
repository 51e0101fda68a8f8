"""Read the files of models once, and name them as reports do."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from bot.core.planned import Model
from bot.errors import InputError


def load_models(
    paths: Sequence[Path], top: Path | None, import_flags: tuple[str, ...] = ()
) -> tuple[Model, ...]:
    """Read every model once.

    Args:
        top: the repository's work tree. Paths are printed relative to it, or to the
            configuration's directory.

    Raises:
        InputError: a model is missing, empty or unreadable.
    """
    models = []
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            hint = "check `models` of the configuration"
            raise InputError(
                f"cannot be read: {error.strerror}", where=str(path), hint=hint
            ) from None
        if not data.strip():
            raise InputError(
                "is empty", where=str(path), hint="a model holds at least one function"
            )
        whole = path.resolve()
        name = f"{whole.parent.name}/{whole.name}"
        if top:
            within = top.resolve()
            if whole.is_relative_to(within):
                name = whole.relative_to(within).as_posix()
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InputError(
                "has a name that is not UTF-8", where=ascii(name), hint="rename it"
            ) from None
        model = Model(
            name=path.stem,
            path=str(whole),
            shown=name,
            digest=hashlib.sha256(data).hexdigest(),
            size_bytes=len(data),
        )
        if whole.name.endswith(".onnx"):
            model = structs.replace(model, import_flags=import_flags)
        models.append(model)
    return tuple(models)
