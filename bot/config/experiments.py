"""The experiments of the lab: one YAML file, the packaged one or the user's own, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from bot.config.configuration import MODEL_SUFFIXES, configs_dir, read_ours
from bot.config.yaml_file import (
    Flags,
    Globs,
    Keys,
    Spec,
    Text,
    YamlFile,
    distinct,
    examples,
    pattern,
)
from bot.core.lab import COLUMN_BY_ID, Experiment
from bot.core.planned import near_or_known
from bot.core.study import Variant
from bot.errors import UsageError

COLUMNS = tuple(COLUMN_BY_ID)
_WORDS = "a name begins with a letter or a digit and has letters, digits, '_', '.', '+' and '-' only"
Name = Annotated[str, pattern("[A-Za-z0-9][A-Za-z0-9_.+-]*", _WORDS, "opt-level", "O3", max_length=60)]


class VariantKeys(Keys, frozen=True):
    """One side of the comparison; an empty one is what the configuration says.

    Attributes:
        flags: Flags of all its cells, behind all others.
        targets: Globs of the targets that have this variant, each with the flags that only they have; an option that
            the target has already is replaced. Absent: all targets.
        compiler: Its compiler, in the forms that --compiler takes. Absent: that of --compiler.
        models: Row to the model that stands there in this variant: a file, relative to this one. Where one variant has
            it, all have.
    """

    flags: Flags = ()
    targets: (
        Annotated[Mapping[str, Flags], examples({"cuda": ["--iree-cuda-target=sm_90"]}, min_length=1)] | UnsetType
    ) = UNSET
    compiler: Spec = ""
    models: Annotated[Mapping[Name, Text], examples({"bert": "models/bert_l4_f32_s128.mlir"}, min_length=1)] = {}


class ExperimentKeys(Keys, frozen=True, kw_only=True):
    """One question, and what is compared to answer it.

    Attributes:
        question: What is asked, in one sentence.
        columns: What is looked at: ids of metrics, or linalg_ops_before. The picture is of the first.
        models: Globs of the configuration's models. Absent: all of them.
        targets: Globs of the configuration's targets. Absent: all of them.
        run: Whether artifacts are run and timed, where this machine can run them. Default: false.
        variants: Name to variant, at least two. The first one that a target has is the reference.
    """

    question: Annotated[
        Text,
        examples("What does a higher optimization level cost in bytes, and what does it buy in time?", max_length=300),
    ]
    columns: Annotated[tuple[str, ...], Meta(max_length=12), distinct(["artifact_bytes", "executables"], least=1)]
    models: Globs = ()
    targets: Globs = ()
    run: Annotated[bool, examples(True)] = False
    variants: Annotated[
        Mapping[Name, VariantKeys],
        examples(
            {"default": {}, "outliner": {"flags": ["--enable-machine-outliner=always"]}},
            extra_json_schema={"minProperties": 2},
            max_length=24,
        ),
    ]


_EXAMPLE = {
    "question": "What does O3 cost?",
    "columns": ["artifact_bytes"],
    "variants": {"O0": {"flags": ["--iree-opt-level=O0"]}, "O3": {"flags": ["--iree-opt-level=O3"]}},
}


class ExperimentsFile(Keys, frozen=True):
    """Questions that code-size-bot lab answers: variants of flags, compilers or models, compared like sides.

    Attributes:
        schema: The version of this format.
        experiments: Name to experiment.
    """

    schema: Annotated[Literal["code-size-experiments/1"], examples("code-size-experiments/1")]
    experiments: Annotated[Mapping[Name, ExperimentKeys], examples({"opt-level": _EXAMPLE}, min_length=1)]


def load_experiments(path: Path | None = None) -> dict[str, Experiment]:
    """All experiments of a file, by name in its order; of the packaged one where there is none.

    Raises ConfigError: one line that names file, line and key.
    """
    file, entries = read_ours(path or configs_dir() / "experiments.yml", ExperimentsFile, "file of experiments")
    return {name: _experiment(name, file, entry) for name, entry in entries.experiments.items()}


def chosen_experiment(name: str, path: Path | None = None) -> Experiment:
    """One of them; raises UsageError, with the nearest names, where there is none of that name."""
    known = load_experiments(path)
    if name not in known:
        raise UsageError(f"no experiment is called {name!r}", where="EXPERIMENT", hint=near_or_known(name, list(known)))
    return known[name]


def _experiment(name: str, file: YamlFile, entry: ExperimentKeys) -> Experiment:
    at = ("experiments", name)
    for index, column in enumerate(entry.columns):
        if column not in COLUMNS:
            raise file.error((*at, "columns", index), f"no metric is called {column!r}", near_or_known(column, COLUMNS))
    variants = tuple(_variant(file, (*at, "variants", one), variant) for one, variant in entry.variants.items())
    named = [variant for variant in variants if variant.files]
    if named and len(named) != len(variants):
        bare = next(variant.name for variant in variants if not variant.files)
        raise file.error((*at, "variants", bare), "has no models, and other variants have", "give it models, too")
    if named and entry.models:
        raise file.error((*at, "models"), "cannot stand beside models of the variants", "keep one of them")
    return Experiment(
        name=name,
        question=entry.question,
        columns=entry.columns,
        variants=variants,
        models=entry.models,
        targets=entry.targets,
        run=entry.run,
    )


def _variant(file: YamlFile, at: tuple[str, ...], entry: VariantKeys) -> Variant:
    files = {}
    for row, text in entry.models.items():
        model = file.path.parent / text
        if not text.endswith(MODEL_SUFFIXES) or not model.is_file():
            what = f"{text!r} is no model ({', '.join(MODEL_SUFFIXES)}) in {file.path.parent}"
            raise file.error((*at, "models", row), what, "the path is relative to this file")
        files[row] = str(model)
    return Variant(
        name=at[-1],
        flags=entry.flags,
        spec=entry.compiler,
        files=files,
        targets=None if entry.targets is UNSET else entry.targets,
    )
