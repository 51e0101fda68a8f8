"""bot.core.policy: what is called covered is covered, and the usual ways to hide a rule are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import product

import pytest
from growth import steps
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.core.metrics import METRIC_IDS
from bot.core.planned import GlobIndex, covers
from bot.core.policy import Coverage, Rule, is_catch_all, metrics_of
from bot.core.snapshot import CellKey

GLOBS = st.text("ab*?[]!", min_size=1, max_size=5)


@given(GLOBS, GLOBS, st.text("ab*?[]!", max_size=5))
@example("*a*", "[ab]", "b")
@example("??", "*", "a")
@settings(max_examples=200)
def test_what_is_covered_is_matched(wide: str, narrow: str, name: str) -> None:
    if covers(wide, narrow) and fnmatchcase(name, narrow):
        assert fnmatchcase(name, wide)


def test_metrics_of() -> None:
    assert metrics_of(Rule("r", ("compile_*", "executables"))) == (
        "executables",
        "compile_cpu_ms",
        "compile_peak_rss_kib",
    )
    assert metrics_of(Rule("r", ("*",))) == METRIC_IDS


def test_is_catch_all() -> None:
    assert is_catch_all(Rule("r", ("vm_bytes", "*")))
    assert is_catch_all(Rule("r", ("**",)))
    assert not is_catch_all(Rule("r", METRIC_IDS)), "a metric that comes later would fall through"
    assert not is_catch_all(Rule("r", ("*",), ("bert_*",)))
    assert not is_catch_all(Rule("r", ("*",), targets=("vmvx", "cuda")))


def all_takers(rules: Sequence[Rule]) -> list[list[Rule] | None]:
    coverage = Coverage(rules)
    return [coverage.takers(index) for index in range(len(rules))]


def test_a_rule_is_hidden_by_several_together() -> None:
    rules = [
        Rule("models", ("*_bytes",), models=("bert_*",)),
        Rule("targets", ("*_bytes",), targets=("vmvx",)),
        Rule("hidden", ("vm_bytes", "rodata_bytes"), ("bert_l4_*",)),
        Rule("half hidden", ("vm_bytes",), ("bert_*", "vit_*")),
        Rule("hidden twice", ("vm_bytes",), ("bert_a", "vit_a"), ("vmvx",)),
        Rule("other metric", ("vm_bytes", "executables"), ("bert_l4_*",)),
    ]
    hidden = all_takers(rules)
    assert hidden == [None, None, [rules[0]], None, [rules[0], rules[1]], None]


names = st.sampled_from(["a", "b", "ab", "ba"])
some_globs = st.lists(st.sampled_from(["*", "a", "a*", "*b", "?", "[ab]", "b?"]), min_size=1, max_size=2)
some_rules = st.builds(
    lambda metrics, models, targets: Rule("r", tuple(metrics), tuple(models), tuple(targets)),
    st.lists(st.sampled_from(["*", "vm_bytes", "*_bytes", "executables"]), min_size=1, max_size=2),
    some_globs,
    some_globs,
)


@given(st.lists(some_rules, min_size=1, max_size=4), names, names, st.sampled_from(METRIC_IDS))
def test_a_hidden_rule_never_decides(rules: list[Rule], model: str, target: str, metric: str) -> None:
    key = CellKey(model, target)
    matching = [i for i, rule in enumerate(rules) if metric in metrics_of(rule) and rule.matches_cell(key)]
    for index in matching[:1]:
        assert Coverage(rules).takers(index) is None


def pair_by_pair(rules: Sequence[Rule], index: int) -> list[Rule] | None:
    """What `takers` says, by comparing a rule with every one above it."""

    def takes(rule: Rule, metric: str, model: str, target: str) -> bool:
        globs = ((rule.metrics, metric), (rule.models, model), (rule.targets, target))
        return all(any(covers(wide, narrow) for wide in wides) for wides, narrow in globs)

    rule, found = rules[index], list[Rule]()
    for piece in product(metrics_of(rule), rule.models, rule.targets):
        taker = next((other for other in rules[:index] if takes(other, *piece)), None)
        if taker is None:
            return None
        if taker not in found:
            found.append(taker)
    return found


@given(st.lists(some_rules, max_size=12))
@settings(max_examples=200)
def test_the_answer_is_that_of_comparing_all_pairs(rules: list[Rule]) -> None:
    assert all_takers(rules) == [pair_by_pair(rules, index) for index in range(len(rules))]


wild_globs = st.lists(GLOBS | st.sampled_from(["*", "ab*", "*ab", "abab"]), min_size=1, max_size=3).map(tuple)
wild_rules = st.builds(Rule, st.uuids().map(str), st.just(("vm_bytes", "*_sites")), wild_globs, wild_globs)


@given(st.lists(wild_rules, max_size=12))
@settings(max_examples=200)
def test_so_it_is_for_globs_of_any_form(rules: list[Rule]) -> None:
    assert all_takers(rules) == [pair_by_pair(rules, index) for index in range(len(rules))]
    for index in range(len(rules)):
        alone = Rule(rules[index].name, ("vm_bytes",), rules[index].models, rules[index].targets)
        assert Coverage(rules).takers(index, ("vm_bytes",)) == pair_by_pair([*rules[:index], alone], index)


@given(st.lists(GLOBS, max_size=12), GLOBS)
@example(["[!]a*", "[]a]*", "[a*", "[a]*"], "[a")
@settings(max_examples=200)
def test_the_index_finds_all_that_cover(globs: list[str], narrow: str) -> None:
    assert GlobIndex(globs).covering(narrow) == {glob for glob in globs if covers(glob, narrow)}


LONG = "a_name_that_all_the_models_have"


def crossed(name: str, i: int) -> tuple[tuple[str], tuple[str]]:
    """Models and targets of a rule that names one of both, by turns, and takes all of the other."""
    return ((name,), ("*",)) if i % 2 else (("*",), (name,))


LISTS: dict[str, Callable[[int], Rule]] = {
    "names": lambda i: Rule("r", ("vm_bytes",), (f"model_{i:05d}",)),
    "middles": lambda i: Rule("r", ("vm_bytes",), (f"*{LONG}_{i:05d}_{LONG}*",)),
    "classes": lambda i: Rule("r", ("vm_bytes",), (f"[ab]_{i:05d}",)),
    "crossed": lambda i: Rule("r", ("vm_bytes",), *crossed(f"model_{i:05d}", i)),
    "pieces": lambda i: Rule(
        "r", ("vm_bytes",), tuple(f"m{i:05d}_{n}" for n in range(5)), tuple(f"t{n}" for n in range(5))
    ),
}


@pytest.mark.parametrize("kind", LISTS)
def test_work_grows_with_the_number_of_rules(kind: str) -> None:
    def work(number: int) -> int:
        rules = [LISTS[kind](index) for index in range(number)]
        return steps(lambda: all_takers(rules))

    assert work(800) < 2.1 * work(400)


def test_a_large_rule_below_one_that_takes_it_is_no_work() -> None:
    def work(number: int) -> int:
        models, targets = (tuple(f"{letter}{index}" for index in range(number)) for letter in "mt")
        rules = [Rule("all", ("*",)), Rule("large", ("*",), models, targets)]
        return steps(lambda: all_takers(rules))

    assert work(800) < 2.1 * work(400)


def test_one_hidden_rule_among_eleven_thousand_is_found() -> None:
    rules = [Rule(f"rule {index}", ("vm_bytes",), (f"model_{index:05d}_*",)) for index in range(11_000)]
    hidden = Rule("hidden", ("vm_bytes",), ("model_00500_a",))
    found = all_takers([*rules, hidden, Rule("all", ("*",))])
    assert found == [None] * 11_000 + [[rules[500]], None]
