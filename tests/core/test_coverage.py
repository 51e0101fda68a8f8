"""bot.core.policy: what is called covered is covered, and the usual ways to hide a rule are seen."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.core.metrics import METRIC_IDS
from bot.core.planned import covers
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
