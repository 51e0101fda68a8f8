"""bot.config.experiments: the packaged ones, a user's own, and one line for everything that is wrong in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config.configuration import load_config
from bot.config.experiments import COLUMNS, chosen_experiment, load_experiments
from bot.errors import ConfigError, UsageError

OF_THE_ISSUE = {
    *("aggressive-fusion", "opt-level", "llvm-size-passes", "dedup"),
    *("size-against-time", "target-cpu"),
}
HEAD = "schema: code-size-experiments/1\nexperiments:\n  e:\n    question: What?\n"
TWO = "    variants: {a: {}, b: {flags: [--x]}}\n"


def file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_packaged_ones_are_there_and_each_asks_a_question() -> None:
    found = load_experiments()
    assert found.keys() >= OF_THE_ISSUE
    targets = {target.name for target in load_config().targets}
    for experiment in found.values():
        assert experiment.question.endswith("?") and len(experiment.variants) > 1
        assert set(experiment.columns) <= set(COLUMNS) and set(experiment.targets) <= targets
        assert len({variant.name for variant in experiment.variants}) == len(experiment.variants)
        assert all(set(variant.targets or ()) <= targets for variant in experiment.variants)


def test_a_users_own_with_everything(tmp_path: Path) -> None:
    text = (
        f"{HEAD}    columns: [fills, copies]\n    run: true\n    targets: [vm*]\n"
        "    variants:\n      one: {flags: [--x=1]}\n      two: {compiler: 3.11.0, targets: {'m*': [--z]}}\n"
    )
    (found,) = load_experiments(file(tmp_path / "e.yml", text)).values()
    one, two = found.variants
    assert (one.flags, one.targets) == (("--x=1",), None)
    assert (two.spec, two.targets) == ("3.11.0", {"m*": ("--z",)})
    assert (found.run, found.columns, found.targets) == (True, ("fills", "copies"), ("vm*",))


COLUMN = "    columns: [fills]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "e.yml:1: is empty"),
        ("schema: code-size-config/1\n", "e.yml:1: schema: is 'code-size-config/1'"),
        ("schema: code-size-experiments/2\nexperiments: {}\n", "e.yml:1: schema: is 'code-size-experiments/2'"),
        (HEAD + COLUMN, "e.yml:3: experiments.e"),
        (HEAD + "    columns: [fils]\n" + TWO,
         "e.yml:5: experiments.e.columns[0]: no metric is called 'fils' (did you mean 'fills'?)"),
        (HEAD + COLUMN + "    variants: {a: {}}\n", "e.yml:6: experiments.e.variants"),
        (HEAD + COLUMN + TWO + "    tragets: [a]\n",
         "e.yml:7: experiments.e.tragets: unknown key (did you mean 'targets'?)"),
        (HEAD + COLUMN + "    variants: {a: {flag: [--x]}, b: {}}\n",
         "e.yml:6: experiments.e.variants.a.flag: unknown key (did you mean 'flags'?)"),
        (HEAD + COLUMN + "    variants: {a: {flags: [x]}, b: {}}\n",
         "e.yml:6: experiments.e.variants.a.flags[0]: 'x' does not fit: a flag begins with -"),
        (HEAD + COLUMN + "    variants: {'<b>': {}, b: {}}\n", "does not fit: a name begins with a letter"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_file_line_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiments(file(tmp_path / "e.yml", text))
    assert said in caught.value.line and "\n" not in caught.value.line


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_experiments(tmp_path / "e.yml")


def test_an_experiment_that_is_not_there_has_near_ones() -> None:
    with pytest.raises(UsageError, match=r"no experiment is called 'opt-levle' \(did you mean 'opt-level'"):
        chosen_experiment("opt-levle")
