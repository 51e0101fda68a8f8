"""What a report says below its first screen: fair selections, commands, sides, what is left out."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import report_factory as make
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace

from bot.core.report import Report
from bot.core.snapshot import Cell, CellKey
from bot.show.blocks import Limits, fair, fair_in_order, plain
from bot.show.comment import TIERS
from bot.show.compared import commands, compared
from bot.show.facts import build_facts, cells_phrase, short_names
from bot.show.model_tables import folding_table
from bot.show.view import ReportView, build_view
from bot.show.why import whys

ROOMY = Limits(5_000, 10_000, 500, 50, 40, 5_000, 5_000, 50_000, 5_000, 5_000)


def view(report: Report, limits: Limits = TIERS[0]) -> ReportView:
    return build_view(report, limits)


def judged(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("3.12.0", base), make.snapshot("3.13.0", head))


def same(_key: CellKey, found: Cell) -> Cell:
    return found


def test_missing_cells_are_told_in_one_place_and_those_on_purpose_come_last() -> None:
    made = view(make.partly())
    assert not made.alarms and not commands(build_facts(make.partly()), ROOMY) and made.findings.total == 7
    assert [group.reason.partition(":")[0] for group in made.unmeasured] == [
        "not measured on head",
        "it makes no executables of its own",
    ]


def test_whole_unmeasured_columns_are_told_in_a_line() -> None:
    shown = view(make.usual())
    assert all("inline" not in name for block in shown.grid.blocks for name in block.headers)
    (group,) = shown.unmeasured
    assert (plain(group.cells), group.reason[:20]) == ("vmvx-inline (13 builds)", "it makes no executab")


def test_over_the_gate_on_both_sides_shows_the_figures() -> None:
    shown = view(make.usual())
    assert shown.over.total == 9
    assert {(row.base, row.head) for row in shown.over if row.model == "bert_l4_f32_s128"} == {(73_728, 73_728)}
    assert shown.stack_limit_bytes == 32_768
    assert not shown.alarms and not shown.findings
    assert (shown.known.total, {row.mark[0] for row in shown.known}) == (9, {"◽"})


def test_every_alarming_cell_has_its_commands() -> None:
    report = make.many()
    shown = {(entry.model, entry.target): entry.text for entry in commands(build_facts(report), ROOMY)}
    alarming = {(f.key.model, f.key.target) for f in report.verdict.news}
    alarming |= {(d.key.model, d.key.target) for d in report.deltas if d.state == "newly-broken"}
    assert shown.keys() == alarming
    text = shown["whisper_tiny_encoder_f32", "rocm"]
    assert make.command(CellKey("whisper_tiny_encoder_f32", "rocm"), "rocm") in text
    assert "base: IREE 3.11.0" in text
    assert "head: IREE 3.13.0" in text


def test_both_commands_where_they_differ() -> None:
    def head(_key: CellKey, found: Cell) -> Cell:
        return replace(make.failed(found, "error"), command="iree-compile --new")

    text = commands(build_facts(judged(same, head)), TIERS[0]).items[0].text
    assert re.fullmatch(r"# base: .*\niree-compile - .*\n# head: .*\niree-compile --new", text)


def test_what_was_compared() -> None:
    base, head = make.snapshot("3.11.0"), make.snapshot("3.13.0")
    changed = {**head.models, "vit_l4_f32_224": "other", "extra": "x"}
    report = make.report(base, replace(head, models=changed, flags=("--a", "--b")))
    told = compared(report)
    assert plain(told.suite) == (
        "14 models on 8 targets; 1 with another text on head, by SHA-256: vit_l4_f32_224 5b76cc30 → other; "
        "1 only on head: extra"
    )
    rows = {row.what: (plain(row.base), plain(row.head)) for row in told.rows}
    assert rows["flags"] == (" ".join(make.COMMON), "--a --b")
    assert rows["compiler version"] == ("3.11.0rc20261016", "3.13.0rc20261016")
    assert rows["compiler SHA-256"][0] == make.digest("3.11.0")[:16]


@pytest.mark.parametrize(
    ("targets", "short"),
    [
        ({"llvm-cpu-x86_64": "llvm-cpu", "vulkan-spirv": "vulkan-spirv"}, ["x86_64", "vulkan"]),
        ({"llvm-cpu-x": "llvm-cpu", "rocm-x": "rocm"}, ["llvm-cpu-x", "rocm-x"]),
        ({"cuda": "cuda", "cuda-spirv": "other"}, ["cuda", "cuda-spirv"]),
    ],
)
def test_short_names_are_unambiguous(targets: dict[str, str], short: list[str]) -> None:
    assert list(short_names(targets, targets).values()) == short


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=30), st.integers(0, 30))
def test_fair_takes_turns(items: list[tuple[str, int]], limit: int) -> None:
    taken = fair(items, lambda item: item[0], limit)
    counts, available = Counter(name for name, _ in taken), Counter(name for name, _ in items)
    assert len(taken) == min(limit, len(items))
    for name in available:
        assert all(counts[name] == available[name] or counts[name] >= counts[other] - 1 for other in available)
    assert sorted(taken) == sorted(fair_in_order(items, lambda item: item[0], limit))


@given(st.integers(1, 40))
def test_cells_in_words_account_for_all(limit: int) -> None:
    facts = build_facts(make.many())
    keys = [delta.key for delta in facts.states["changed"]]
    spans = cells_phrase(facts, keys, limit)
    told = 0
    for part in plain(spans).split("; "):
        models, _, targets = part.replace("every model", "," * 12).replace("every target", "," * 7).partition(" on ")
        rest = re.match(r"(\d+) more build", part)
        told += int(rest[1]) if rest else (models.count(",") + 1) * (targets.count(",") + 1)
    assert told == len(keys)
    assert sum(span.kind == "code" for span in spans) <= 2 * limit + 8


def test_explained_cells_are_told_alarms_first_and_counted() -> None:
    report = make.why()
    drawn = whys(build_facts(report), replace(TIERS[0], whys=5))
    both = {delta.key for delta in report.deltas if delta.state in ("changed", "same")}
    assert len(drawn.items) == 5 and drawn.total == len(report.explanations.keys() & both)
    alarming = {finding.key.model for finding in report.verdict.findings}
    assert {cell.model for cell in drawn} <= alarming


def test_a_deduplication_of_other_bytes_is_no_other_deduplication() -> None:
    report = make.explained_small()
    (first, *rest) = report.overview.folding
    assert first.base is not None
    other = replace(first, head=replace(first.base, surplus_bytes=1))
    told = replace(report, overview=replace(report.overview, folding=(other, *rest)))
    every = replace(ROOMY, overview=40, every=True)
    totals = [
        folding_table(build_facts(one), limits).rows.total
        for one, limits in ((report, ROOMY), (told, ROOMY), (told, every))
    ]
    assert totals == [1, 0, len(report.overview.folding)]
