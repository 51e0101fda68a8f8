"""bot.config.experiments: the packaged ones, a user's own, and one line for everything that is wrong in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config.configuration import load_config
from bot.config.experiments import COLUMNS, chosen_experiment, load_experiments
from bot.core.study import Assumption
from bot.errors import ConfigError, UsageError

PACKAGED = {
    "aggressive-fusion",
    "opt-level",
    "llvm-size-passes",
    "dedup",
    "size-against-time",
    "target-cpu",
    "dynamic-shapes",
    "depth",
}
HEAD = "schema: code-size-experiments/1\nexperiments:\n  e:\n    question: What?\n"
TWO = "    variants: {a: {}, b: {flags: [--x]}}\n"


def file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_packaged_ones_are_there_and_each_asks_a_question() -> None:
    experiments = load_experiments()
    assert experiments.keys() >= PACKAGED
    targets = {target.name for target in load_config().targets}
    for experiment in experiments.values():
        assert experiment.question.endswith("?") and len(experiment.variants) > 1
        assert (
            set(experiment.columns) <= set(COLUMNS)
            and set(experiment.targets) <= targets
        )
        assert len({variant.name for variant in experiment.variants}) == len(
            experiment.variants
        )
        assert all(
            set(variant.targets or ()) <= targets for variant in experiment.variants
        )


def test_a_users_own_with_everything(tmp_path: Path) -> None:
    text = (
        f"{HEAD}    columns: [fills, copies]\n    run: true\n    targets: [vm*]\n   "
        " variants:\n      one: {flags: [--x=1]}\n      two: {compiler: 3.11.0,"
        " targets: {'m*': [--z]}}\n"
    )
    (experiment,) = load_experiments(file(tmp_path / "e.yml", text)).values()
    flagged, narrowed = experiment.variants
    assert (flagged.flags, flagged.targets) == (("--x=1",), None)
    assert (narrowed.spec, narrowed.targets) == ("3.11.0", {"m*": ("--z",)})
    assert (experiment.run, experiment.columns, experiment.targets) == (
        True,
        ("fills", "copies"),
        ("vm*",),
    )


COLUMN = "    columns: [fills]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "e.yml:1: is empty"),
        ("schema: code-size-config/1\n", "e.yml:1: schema: is 'code-size-config/1'"),
        (
            "schema: code-size-experiments/2\nexperiments: {}\n",
            "e.yml:1: schema: is 'code-size-experiments/2'",
        ),
        (HEAD + COLUMN, "e.yml:3: experiments.e"),
        (
            HEAD + "    columns: [fils]\n" + TWO,
            "e.yml:5: experiments.e.columns[0]: no metric is called 'fils' (did you mean 'fills'?)",
        ),
        (HEAD + COLUMN + "    variants: {a: {}}\n", "e.yml:6: experiments.e.variants"),
        (
            HEAD + COLUMN + TWO + "    tragets: [a]\n",
            "e.yml:7: experiments.e.tragets: unknown key (did you mean 'targets'?)",
        ),
        (
            HEAD + COLUMN + "    variants: {a: {flag: [--x]}, b: {}}\n",
            "e.yml:6: experiments.e.variants.a.flag: unknown key (did you mean 'flags'?)",
        ),
        (
            HEAD + COLUMN + "    variants: {a: {flags: [x]}, b: {}}\n",
            "e.yml:6: experiments.e.variants.a.flags[0]: 'x' does not fit: a flag begins with -",
        ),
        (
            HEAD + COLUMN + "    variants: {'<b>': {}, b: {}}\n",
            "does not fit: a name begins with a letter",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_file_line_and_key(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiments(file(tmp_path / "e.yml", text))
    assert message in caught.value.line and "\n" not in caught.value.line


WITH_MODELS = """\
    columns: [fills]
    models: {m: dyn.mlir}
    timing: true
    variants:
      static: {models: {m: static.mlir}}
      range: {assume: {min: 2, max: 64}}
      both: {layers: 3, assume: {divisor: 16}}
"""


def test_variants_of_models_have_files_beside_the_file_layers_and_assumptions(
    tmp_path: Path,
) -> None:
    for name in ("dyn.mlir", "static.mlir"):
        (tmp_path / name).write_text("module {}", encoding="utf-8")
    (experiment,) = load_experiments(
        file(tmp_path / "e.yml", HEAD + WITH_MODELS)
    ).values()
    static, bounded, layered = experiment.variants
    assert (experiment.models, experiment.timing) == (
        {"m": str(tmp_path / "dyn.mlir")},
        True,
    )
    assert (static.models, static.rewrites) == (
        {"m": str(tmp_path / "static.mlir")},
        False,
    )
    assert bounded.assume == Assumption(2, 64) and bounded.layers is None
    assert layered.layers == 3 and layered.assume == Assumption(0, None, 16)
    assert [
        variant.assume.words for variant in (bounded, layered) if variant.assume
    ] == [
        "2 to 64",
        "at least 0, multiples of 16",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "{m: static",
            "{n: static",
            "e.yml:9: experiments.e.variants.static.models.n: no model of the experiment is "
            "called 'n' (known: m)",
        ),
        (
            "max: 64",
            "max: 1",
            "e.yml:10: experiments.e.variants.range.assume.max: is 1, which is less than min (2)",
        ),
        (
            "max: 64",
            "max: 64, divisor: 65",
            "assume.divisor: no size from 2 to 64 is a multiple of 65",
        ),
        (
            "min: 2, max: 64",
            "max: 0",
            "e.yml:10: experiments.e.variants.range.assume.max: is 0, and a size is at least 1",
        ),
        ("min: 2, max: 64", "", "e.yml:10: experiments.e.variants.range.assume"),
        (
            "divisor: 16",
            "divisor: 0",
            "e.yml:11: experiments.e.variants.both.assume.divisor",
        ),
        ("layers: 3", "layers: 0", "e.yml:11: experiments.e.variants.both.layers"),
        ("layers: 3", "layer: 3", "both.layer: unknown key (did you mean 'layers'?)"),
    ],
)
def test_what_is_wrong_with_models_is_reported_with_file_line_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    for name in ("dyn.mlir", "static.mlir"):
        (tmp_path / name).write_text("module {}", encoding="utf-8")
    assert old in WITH_MODELS
    with pytest.raises(ConfigError) as caught:
        load_experiments(
            file(tmp_path / "e.yml", HEAD + WITH_MODELS.replace(old, new, 1))
        )
    assert message in caught.value.line and "\n" not in caught.value.line


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_experiments(tmp_path / "e.yml")


def test_an_experiment_that_is_not_there_has_near_ones() -> None:
    with pytest.raises(
        UsageError,
        match=r"no experiment is called 'opt-levle' \(did you mean 'opt-level'",
    ):
        chosen_experiment("opt-levle")
