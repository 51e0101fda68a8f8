"""Read the experiments of the lab, from the packaged file or the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from bot.config.configuration import configs_dir, read_ours
from bot.config.targets import require_fit_for_iree
from bot.config.yaml_file import KeyPath, YamlFile
from bot.config.yaml_problems import Plain
from bot.config.yaml_types import (
    Flags,
    Globs,
    Keys,
    Spec,
    Text,
    distinct,
    examples,
    pattern,
)
from bot.core.lab import Experiment
from bot.core.layered import MOST_LAYERS
from bot.core.metrics import METRIC_BY_ID
from bot.core.near import near_or_known
from bot.core.study import Assumption, Variant
from bot.errors import UsageError

COLUMNS = tuple(METRIC_BY_ID)
_WORDS = (
    "a name begins with a letter or digit, and has only letters, digits, '_', '.', '+'"
    " and '-'"
)
Name = Annotated[
    str,
    pattern("[A-Za-z0-9][A-Za-z0-9_.+-]*", _WORDS, "opt-level", "O3", max_length=60),
]
_MOST_SIZE = 1 << 31
Size = Annotated[int, Meta(ge=0, le=_MOST_SIZE)]


class AssumeKeys(Keys, frozen=True):
    """What the model states of each dynamic dimension of its arguments.

    Attributes:
        min: The smallest size. Default: 0.
        max: The largest size. Defaults to no limit.
        divisor: A number that divides every size. Default: 1.
    """

    keywords: ClassVar[Plain] = {"minProperties": 1}

    min: Annotated[Size, examples(16)] = 0
    max: Annotated[Size, examples(512)] | UnsetType = UNSET
    divisor: Annotated[int, examples(16, ge=1, le=_MOST_SIZE)] = 1


class VariantKeys(Keys, frozen=True):
    """One side of the comparison. An empty variant uses the configuration as it is.

    Attributes:
        flags: Flags for all builds of this variant. They follow all other flags.
        targets: Globs of the targets that have this variant, each with further flags for these
            targets. A flag replaces an existing flag of the same option. Defaults to all targets.
        compiler: The compiler, in the forms that --compiler accepts. Defaults to the value of
            --compiler.
        models: Files that stand for models of the experiment, as name → path from this file.
        layers: How often the models have their layer: the lines between `// repeat` and `// end`.
        assume: What the models state of each dynamic dimension of their arguments, by
            `util.assume.int`.
    """

    flags: Flags = ()
    targets: (
        Annotated[
            Mapping[str, Flags],
            examples({"cuda": ["--iree-cuda-target=sm_90"]}, min_length=1),
        ]
        | UnsetType
    ) = UNSET
    compiler: Spec = ""
    models: Annotated[
        Mapping[Name, Text], examples({"bert": "models/bert_s128.mlir"})
    ] = {}
    layers: Annotated[int, examples(4, ge=1, le=MOST_LAYERS)] | UnsetType = UNSET
    assume: (
        Annotated[AssumeKeys, examples({"min": 16, "max": 512, "divisor": 16})]
        | UnsetType
    ) = UNSET


class ExperimentKeys(Keys, frozen=True, kw_only=True):
    """One question, and the variants that answer it.

    Attributes:
        question: The question, in one sentence.
        columns: Metric ids to show, one a column.
        targets: Globs of targets of the configuration. Defaults to all of its targets.
        run: Whether to run and time the artifacts, where this machine can run them. Default: false.
        models: The experiment's models, as name → path from this file. Defaults to the models
            of the configuration.
        timing: Whether to ask the compiler for the times of its passes, in a compile of its
            own. Default: false.
        variants: Name to variant, at least two. The first variant of a target is its reference.
    """

    question: Annotated[
        Text,
        examples(
            "What does a higher optimization level cost in bytes, and what does it buy"
            " in time?",
            max_length=300,
        ),
    ]
    columns: Annotated[
        tuple[str, ...],
        Meta(max_length=12),
        distinct(["artifact_bytes", "executables"], minimum=1),
    ]
    targets: Globs = ()
    run: Annotated[bool, examples(True)] = False
    models: Annotated[
        Mapping[Name, Text], examples({"bert": "models/bert_dyn.mlir"}, max_length=64)
    ] = {}
    timing: Annotated[bool, examples(True)] = False
    variants: Annotated[
        Mapping[Name, VariantKeys],
        examples(
            {
                "default": {},
                "outliner": {"flags": ["--enable-machine-outliner=always"]},
            },
            extra_json_schema={"minProperties": 2},
            max_length=24,
        ),
    ]


_EXAMPLE = {
    "question": "What does O3 cost?",
    "columns": ["artifact_bytes"],
    "variants": {
        "O0": {"flags": ["--iree-opt-level=O0"]},
        "O3": {"flags": ["--iree-opt-level=O3"]},
    },
}


class ExperimentsFile(Keys, frozen=True):
    """Experiments for code-size-bot lab: each compares variants of flags, compilers or models.

    Attributes:
        schema: Version of this format.
        experiments: Name to experiment.
    """

    schema: Annotated[
        Literal["code-size-experiments/1"], examples("code-size-experiments/1")
    ]
    experiments: Annotated[
        Mapping[Name, ExperimentKeys], examples({"opt-level": _EXAMPLE}, min_length=1)
    ]


def load_experiments(path: Path | None = None) -> dict[str, Experiment]:
    """Return all experiments of a file, by name in its order.

    If `path` is None, it is the packaged file. Raises ConfigError: one line that
    names file, line and key.
    """
    file, entries = read_ours(
        path or configs_dir() / "experiments.yml", ExperimentsFile
    )
    experiments = dict[str, Experiment]()
    for name, entry in entries.experiments.items():
        experiments[name] = _experiment(name, file, entry)
    return experiments


def chosen_experiment(name: str, path: Path | None = None) -> Experiment:
    """Return the experiment of this name.

    Raises UsageError, with the nearest names, if there is none.
    """
    experiments = load_experiments(path)
    if name not in experiments:
        raise UsageError(
            f"no experiment is called {name!r}",
            where="EXPERIMENT",
            hint=near_or_known(name, list(experiments)),
        )
    return experiments[name]


def _experiment(name: str, file: YamlFile, entry: ExperimentKeys) -> Experiment:
    key_path = ("experiments", name)
    for index, column in enumerate(entry.columns):
        if column not in COLUMNS:
            raise file.error(
                (*key_path, "columns", index),
                f"no metric is called {column!r}",
                near_or_known(column, COLUMNS),
            )
    for variant_name, variant in entry.variants.items():
        require_fit_for_iree(
            file, (*key_path, "variants", variant_name, "flags"), variant.flags
        )
        for glob, flags in (
            {} if variant.targets is UNSET else variant.targets
        ).items():
            require_fit_for_iree(
                file, (*key_path, "variants", variant_name, "targets", glob), flags
            )
    variants = []
    for variant_name, variant in entry.variants.items():
        place = (*key_path, "variants", variant_name)
        variants.append(_variant(file, place, entry, variant))
    return Experiment(
        name=name,
        question=entry.question,
        columns=entry.columns,
        variants=tuple(variants),
        targets=entry.targets,
        run=entry.run,
        models=_files(file, entry.models),
        timing=entry.timing,
    )


def _variant(
    file: YamlFile, place: KeyPath, experiment: ExperimentKeys, entry: VariantKeys
) -> Variant:
    for model in entry.models:
        if model not in experiment.models:
            hint = (
                near_or_known(model, list(experiment.models))
                or "name it in `models` of the experiment"
            )
            raise file.error(
                (*place, "models", model),
                f"no model of the experiment is called {model!r}",
                hint,
            )
    return Variant(
        name=str(place[-1]),
        spec=entry.compiler,
        flags=entry.flags,
        targets=None if entry.targets is UNSET else entry.targets,
        models=_files(file, entry.models),
        layers=None if entry.layers is UNSET else entry.layers,
        assume=(
            None
            if entry.assume is UNSET
            else _assumption(file, (*place, "assume"), entry.assume)
        ),
    )


def _assumption(file: YamlFile, place: KeyPath, entry: AssumeKeys) -> Assumption:
    """Check that a size can fit the assumption; raises ConfigError."""
    largest = None if entry.max is UNSET else entry.max
    if largest is not None:
        if largest < entry.min:
            raise file.error(
                (*place, "max"), f"is {largest}, which is less than min ({entry.min})"
            )
        if largest == 0:
            raise file.error((*place, "max"), "is 0, and a size is at least 1")
        smallest = max(entry.min, 1)
        if largest // entry.divisor * entry.divisor < smallest:
            message = (
                f"no size from {smallest} to {largest} is a multiple of {entry.divisor}"
            )
            raise file.error((*place, "divisor"), message)
    return Assumption(smallest=entry.min, largest=largest, divisor=entry.divisor)


def _files(file: YamlFile, models: Mapping[str, str]) -> dict[str, str]:
    """Return name → path that can be opened from anywhere."""
    folder = file.path.parent.absolute()
    return {name: str(folder / path) for name, path in models.items()}
