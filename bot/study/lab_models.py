"""Make the models of an experiment and of its variants.

Some are files of the experiment. Others are texts that are rewritten for a variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from bot.compiler.bindings import Bindings, working
from bot.compiler.importing import lfs_pointer
from bot.compiler.toolchain import Toolchain
from bot.core.lab import Experiment
from bot.core.layered import NotLayered, with_layers
from bot.core.planned import Model, Target
from bot.core.snapshot import Cell, Failure
from bot.core.study import Assumption, Variant
from bot.errors import InputError, MalformedBinary
from bot.study.flow_program import assumed_in
from bot.study.model_files import load_models
from bot.study.prepare import Work
from bot.system.files import read_bounded, temporary_directory, write_atomically

FOLDER = "models"
"""Where the rewritten models are, below `--out`, in a folder for each variant."""
REFUSED = "model"
"""The stage of the failure of a build whose model cannot be rewritten."""
_NO_TEXT = "is not MLIR text, so it cannot be rewritten"
_NOTHING_DYNAMIC = "no argument of a public function has a dynamic dimension"


class VariantModels(NamedTuple):
    """The models of one variant, and why others cannot be made."""

    models: tuple[Model, ...]
    # name → file, as it is printed, of those that only this variant has
    files: Mapping[str, str]
    refused: Mapping[str, str]  # name → reason

    def refused_cells(self, targets: Sequence[Target]) -> Iterable[Cell]:
        """Yield the builds of the models that cannot be made."""
        for name, reason in self.refused.items():
            for target in targets:
                failure = Failure(REFUSED, reason)
                yield Cell(name, target.name, "failed", failure=failure)


def models_in_scope(experiment: Experiment, work: Work) -> tuple[Model, ...]:
    """Return the models of the experiment or, without any, of the configuration.

    Each is named as in reports. Raises InputError.
    """
    if not experiment.models:
        return load_models(
            work.config.models, work.repository.top, work.config.import_flags
        )
    for variant in experiment.variants:
        _require_files(variant.models)
    _require_files(experiment.models)
    return _named(experiment.models, work)


def _require_files(files: Mapping[str, str]) -> None:
    """Raise InputError for a missing file before any compiler is fetched."""
    for name, path in files.items():
        if not Path(path).is_file():
            raise InputError(
                "is not a file",
                where=path,
                hint=f"check `models` of the experiment: {name}",
            )


def models_of(
    variant: Variant, models: Sequence[Model], toolchain: Toolchain, work: Work
) -> VariantModels:
    """Return the models as a variant has them.

    They come from its files, with its layers and its assumptions.

    Rewritten texts are written below `--out`, so that the printed commands can read
    them. Raises InputError.
    """
    wanted_models = {}
    for model in models:
        path = variant.models.get(model.name)
        if path:
            wanted_models[model.name] = path
    instead = {model.name: model for model in _named(wanted_models, work)}
    chosen = tuple(instead.get(model.name, model) for model in models)
    files = {name: model.shown for name, model in instead.items()}
    if not variant.rewrites:
        return VariantModels(chosen, files, {})
    rewritten = list[Model]()
    refused = dict[str, str]()
    with closing(working(toolchain, work.cancel)) as bindings:
        for model in chosen:
            text = _rewritten(model, variant, bindings)
            if isinstance(text, Failure):
                refused[model.name] = text.message
            else:
                rewritten.append(_written(model, variant=variant, data=text, work=work))
    return VariantModels(tuple(rewritten), files, refused)


def _named(files: Mapping[str, str], work: Work) -> tuple[Model, ...]:
    paths = [Path(path) for path in files.values()]
    models = load_models(paths, work.repository.top, work.config.import_flags)
    pairs = zip(files, models, strict=True)
    return tuple(structs.replace(model, name=name) for name, model in pairs)


def _rewritten(model: Model, variant: Variant, bindings: Bindings) -> bytes | Failure:
    path = Path(model.path)
    if pointer := lfs_pointer(path):
        return pointer
    try:
        data = read_bounded(path, model.name)
        if variant.layers is not None:
            data = with_layers(data.decode("utf-8"), variant.layers).encode()
        if variant.assume is not None:
            data = _assumed(data, variant.assume, bindings)
    except UnicodeDecodeError:
        return Failure(REFUSED, f"{model.name} {_NO_TEXT}")
    except NotLayered as error:
        return Failure(REFUSED, str(error))
    except InputError as error:
        return Failure(REFUSED, error.what)
    except MalformedBinary as error:
        return Failure(REFUSED, error.line)
    return data


def _assumed(data: bytes, assumption: Assumption, bindings: Bindings) -> bytes:
    """Return the model with an assumption of its dynamic dimensions.

    Raises InputError if it has no dynamic dimensions, and MalformedBinary.
    """
    with temporary_directory("assume-") as directory:
        model = directory / "model.mlir"
        out = directory / "assumed.mlir"
        model.write_bytes(data)
        answer = assumed_in(bindings, model=model, out=out, assumption=assumption)
        if not answer.dimensions:
            raise InputError(_NOTHING_DYNAMIC)
        return read_bounded(out, "the model with its assumptions")


def _written(model: Model, variant: Variant, data: bytes, work: Work) -> Model:
    out = work.request.out.absolute()
    path = out / FOLDER / variant.name / f"{model.name}.mlir"
    write_atomically(path, data)
    (written,) = load_models([path], work.repository.top)
    shown_path = written.shown
    if not _is_below(path, work.repository.top):
        shown_path = path.relative_to(out).as_posix()
    return structs.replace(written, name=model.name, shown=shown_path)


def _is_below(path: Path, top: Path | None) -> bool:
    return top is not None and path.resolve().is_relative_to(top.resolve())
