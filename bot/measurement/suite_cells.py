"""Cells of suites: planned with the flags of their module alone, their models fetched once into the cache.

A fetched model is kept under the SHA-256 of its bytes, beside a note of the address that gave them, and is read whole
before it is believed. One that cannot be had makes its cells `failed` with that reason; the others go on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bot.compiler.caches.storage import touch
from bot.config.torch_models import SuiteModule
from bot.core.values.planned import Model, PlannedCell
from bot.errors import BotError, InputError, Interrupted
from bot.system.defaults import private_hosts
from bot.system.downloads import pieces, shown
from bot.system.files import PART_PREFIX, make_directory, temporary_directory, write_atomically
from bot.system.processes import Cancel

FOLDER = "models"
"""Of the cache."""
_GUESSED_BYTES = 1 << 20
"""Of a model that is not here: runners that share a plan must guess alike, whatever their caches hold."""
_READ_BYTES = 1 << 20


def suite_cells(
    modules: Iterable[SuiteModule], flags: Sequence[str], load: Callable[[Path], Model]
) -> tuple[PlannedCell, ...]:
    """A cell for each module; models behind an address are not fetched yet.

    `flags`: of this run alone: what a configuration has for its own cells would make other figures of a suite's;
    `load`: reads a model that is here.
    """
    return tuple(PlannedCell(_model(module, load), module.target, tuple(flags)) for module in modules)


def _model(module: SuiteModule, load: Callable[[Path], Model]) -> Model:
    if isinstance(module.mlir, str):
        return Model(module.name, "", shown(module.mlir), "", _GUESSED_BYTES, url=module.mlir)
    return replace(load(module.mlir), name=module.name)


def with_models(
    cells: Sequence[PlannedCell],
    modules: Iterable[SuiteModule],
    cache: Path,
    say: Callable[[str], None],
    cancel: Cancel,
) -> tuple[PlannedCell, ...]:
    """The cells with their models at hand, or with why they are not."""
    by_name = {module.name: module for module in modules}
    return tuple(
        replace(cell, model=_fetched(cell.model, by_name[cell.model.name], cache / FOLDER, say, cancel))
        if cell.model.url
        else cell
        for cell in cells
    )


def _fetched(model: Model, module: SuiteModule, folder: Path, say: Callable[[str], None], cancel: Cancel) -> Model:
    try:
        path = _known(model.url, module.sha256, folder) or _fetch(model.url, module, folder, say, cancel)
    except Interrupted:
        raise
    except BotError as error:
        return replace(model, missing=f"not fetched: {error.line}")
    return replace(model, path=str(path), digest=path.stem, size_bytes=path.stat().st_size)


def _note(url: str, folder: Path) -> Path:
    return folder / f"{hashlib.sha256(url.encode()).hexdigest()}.from"


def _known(url: str, expected: str, folder: Path) -> Path | None:
    """What the address gave before; None where that is not known, not whole, or not what is expected."""
    note = _note(url, folder)
    try:
        path = folder / note.read_text(encoding="ascii").strip()
        digest = path.stem
        with path.open("rb") as file:
            pieces_of = iter(lambda: file.read(_READ_BYTES), b"")
            sha256 = hashlib.sha256()
            for piece in pieces_of:
                sha256.update(piece)
            is_whole = sha256.hexdigest() == digest
    except (OSError, ValueError):
        return None
    if not is_whole or (expected and expected != digest):
        return None
    touch(path)
    touch(note)
    return path


def _fetch(url: str, module: SuiteModule, folder: Path, say: Callable[[str], None], cancel: Cancel) -> Path:
    say(f"fetching the model of {module.name}: {shown(url)}")
    sha256 = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for piece in pieces(url, module.max_bytes, cancel.check, private=private_hosts()):
            sha256.update(piece)
            yield piece

    make_directory(folder)
    with temporary_directory(PART_PREFIX, folder) as place:
        write_atomically(place / FOLDER, hashed())
        digest = sha256.hexdigest()
        if module.sha256 and module.sha256 != digest:
            hint = "correct sha256 of the suite, if the model was meant to change"
            raise InputError(f"has the SHA-256 {digest}, and {module.sha256} is expected", where=shown(url), hint=hint)
        if not (place / FOLDER).stat().st_size:
            raise InputError("is empty", where=shown(url), hint="a model holds at least one function")
        is_bytecode = url.partition("?")[0].endswith(".mlirbc")
        path = folder / f"{digest}{'.mlirbc' if is_bytecode else '.mlir'}"
        os.replace(place / FOLDER, path)
    write_atomically(_note(url, folder), f"{path.name}\n".encode())
    return path


def only(cells: Iterable[PlannedCell]) -> Mapping[str, str]:
    """Model → the one target that it is planned for, of a suite's cells."""
    return {cell.model.name: cell.target.name for cell in cells if cell.target.whole}
