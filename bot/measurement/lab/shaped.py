"""Models with constrained dimensions: made by the compiler that is to compile them, and kept beside `lab.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bot.compiler.shaping import constrained, shaping
from bot.compiler.tools.toolchain import Toolchain
from bot.core.constraint import Constraint
from bot.core.values.planned import Model
from bot.core.values.snapshot import Failure
from bot.system.files import make_directory
from bot.system.processes import Cancel

FOLDER = "shaped"
"""Of the constrained models, beside `lab.json`: the printed commands read them there."""


def shaped(
    models: Sequence[Model], constraint: Constraint, variant: str, toolchain: Toolchain, out: Path, cancel: Cancel
) -> tuple[Model, ...]:
    """The models, each under its name; one that cannot be constrained says why in `missing`."""
    make_directory(out / FOLDER / variant)
    bindings = shaping(toolchain, cancel)
    try:
        result = []
        for model in models:
            shown = f"{FOLDER}/{variant}/{model.name}.mlir"
            path = (out / shown).absolute()
            if model.path.endswith(".onnx"):
                result.append(replace(model, missing="only models of MLIR are constrained: import it first"))
                continue
            failure = constrained(bindings, Path(model.path), constraint, path)
            result.append(
                replace(model, missing=failure.first_line) if isinstance(failure, Failure) else _at(model, path, shown)
            )
        return tuple(result)
    finally:
        bindings.close()


def _at(model: Model, path: Path, shown: str) -> Model:
    data = path.read_bytes()
    return Model(model.name, str(path), shown, hashlib.sha256(data).hexdigest(), len(data))
