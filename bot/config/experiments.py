"""The experiments of the lab: one YAML file, the packaged one or the user's own, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from bot.config.configuration import configs_dir, read_ours
from bot.config.targets import require_fit_for_iree
from bot.config.yaml_file import Flags, Globs, Keys, Spec, Text, YamlFile, distinct, examples, pattern
from bot.core.lab import Experiment
from bot.core.metrics import METRIC_BY_ID
from bot.core.near import near_or_known
from bot.core.study import Variant
from bot.errors import UsageError

COLUMNS = tuple(METRIC_BY_ID)
_WORDS = "a name begins with a letter or digit, and has only letters, digits, '_', '.', '+' and '-'"
Name = Annotated[str, pattern("[A-Za-z0-9][A-Za-z0-9_.+-]*", _WORDS, "opt-level", "O3", max_length=60)]


class VariantKeys(Keys, frozen=True):
    """One side of the comparison. An empty variant uses the configuration as it is.

    Attributes:
        flags: Flags for all builds of this variant. They follow all other flags.
        targets: Globs of the targets that have this variant, each with further flags for these
            targets. A flag replaces an existing flag of the same option. Defaults to all targets.
        compiler: The compiler, in the forms that --compiler accepts. Defaults to the value of
            --compiler.
    """

    flags: Flags = ()
    targets: (
        Annotated[Mapping[str, Flags], examples({"cuda": ["--iree-cuda-target=sm_90"]}, min_length=1)] | UnsetType
    ) = UNSET
    compiler: Spec = ""


class ExperimentKeys(Keys, frozen=True, kw_only=True):
    """One question, and the variants that answer it.

    Attributes:
        question: The question, in one sentence.
        columns: Metric ids to show, one a column.
        targets: Globs of targets of the configuration. Defaults to all of its targets.
        run: Whether to run and time the artifacts, where this machine can run them. Default: false.
        variants: Name to variant, at least two. The first variant of a target is its reference.
    """

    question: Annotated[
        Text,
        examples("What does a higher optimization level cost in bytes, and what does it buy in time?", max_length=300),
    ]
    columns: Annotated[tuple[str, ...], Meta(max_length=12), distinct(["artifact_bytes", "executables"], least=1)]
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
    """Experiments for code-size-bot lab: each compares variants of flags or compilers.

    Attributes:
        schema: Version of this format.
        experiments: Name to experiment.
    """

    schema: Annotated[Literal["code-size-experiments/1"], examples("code-size-experiments/1")]
    experiments: Annotated[Mapping[Name, ExperimentKeys], examples({"opt-level": _EXAMPLE}, min_length=1)]


def load_experiments(path: Path | None = None) -> dict[str, Experiment]:
    """All experiments of a file, by name in its order; of the packaged one where there is none.

    Raises ConfigError: one line that names file, line and key.
    """
    file, entries = read_ours(path or configs_dir() / "experiments.yml", ExperimentsFile)
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
    for one, each in entry.variants.items():
        require_fit_for_iree(file, (*at, "variants", one, "flags"), each.flags)
        for glob, flags in ({} if each.targets is UNSET else each.targets).items():
            require_fit_for_iree(file, (*at, "variants", one, "targets", glob), flags)
    variants = tuple(
        Variant(one, each.compiler, flags=each.flags, targets=None if each.targets is UNSET else each.targets)
        for one, each in entry.variants.items()
    )
    return Experiment(
        name=name,
        question=entry.question,
        columns=entry.columns,
        variants=variants,
        targets=entry.targets,
        run=entry.run,
    )
