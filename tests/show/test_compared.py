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
from bot.show.blocks import Code, Fold, Limits, List, Sentence, Table, fair, fair_in_order, plain
from bot.show.comment import TIERS
from bot.show.facts import Facts, build_facts, cells_phrase, short_names
from bot.show.report import (
    alarms,
    build_grid,
    compared,
    finding_table,
    folding_table,
    over_table,
    report_blocks,
    suite,
    unmeasured,
)

ROOMY = Limits(5_000, 10_000, 500, 50, 40, 5_000, 5_000, 50_000, 5_000, 5_000)


def judged(base: make.Edit, head: make.Edit) -> Report:
    return make.report(make.snapshot("3.12.0", base), make.snapshot("3.13.0", head))


def texts(facts: Facts) -> dict[str, str]:
    """Alarming cell → its commands."""
    fold = compared(facts, ROOMY).blocks[0]
    assert isinstance(fold, Fold)
    *pairs, _ = fold.blocks
    cells, commands = pairs[::2], pairs[1::2]
    return {
        plain(cell.said): one.text
        for cell, one in zip(cells, commands, strict=True)
        if isinstance(cell, Sentence) and isinstance(one, Code)
    }


def same(_key: CellKey, found: Cell) -> Cell:
    return found


def test_missing_cells_are_told_in_one_place_and_those_on_purpose_come_last() -> None:
    facts = build_facts(make.partly())
    assert not alarms(facts, ROOMY) and not texts(facts) and len(facts.report.verdict.news) == 7
    first, last = map(plain, unmeasured(facts, TIERS[0]))
    assert ": not measured on head" in first and ": it makes no executables of its own" in last


def test_whole_unmeasured_columns_are_told_in_a_line() -> None:
    facts = build_facts(make.usual())
    assert all("inline" not in name for headers, _ in build_grid(facts, TIERS[0]).blocks for name in headers)
    (line,) = unmeasured(facts, TIERS[0])
    assert plain(line).startswith("vmvx-inline (13 builds): it makes no executab")


def test_over_the_gate_on_both_sides_shows_the_figures() -> None:
    facts = build_facts(make.usual())
    over, known = over_table(facts, TIERS[0]), [one for one in facts.report.verdict.findings if one.known]
    assert over.rows.total == 9 and over.about.endswith("it allows 32,768 B.")
    assert {plain(row[2]) for row in over.texts if plain(row[0]) == "bert_l4_f32_s128"} == {"73,728 B"}
    assert not alarms(facts, TIERS[0]) and not facts.report.verdict.news
    table = finding_table(facts, known, TIERS[0])
    assert (table.rows.total, {plain(row[-1])[0] for row in table.texts}) == (9, {"◽"})


def test_every_alarming_cell_has_its_commands() -> None:
    report = make.many()
    shown = texts(build_facts(report))
    alarming = {f"{f.key.model} on {f.key.target}" for f in report.verdict.news}
    alarming |= {f"{d.key.model} on {d.key.target}" for d in report.deltas if d.state == "newly-broken"}
    assert shown.keys() == alarming
    text = shown["whisper_tiny_encoder_f32 on rocm"]
    assert make.command(CellKey("whisper_tiny_encoder_f32", "rocm"), "rocm") in text
    assert "base: IREE 3.11.0" in text
    assert "head: IREE 3.13.0" in text


def test_both_commands_where_they_differ() -> None:
    def head(_key: CellKey, found: Cell) -> Cell:
        return replace(make.failed(found, "error"), command="iree-compile --new")

    text = next(iter(texts(build_facts(judged(same, head))).values()))
    assert re.fullmatch(r"# base: .*\niree-compile - .*\n# head: .*\niree-compile --new", text)


def test_what_was_compared() -> None:
    base, head = make.snapshot("3.11.0"), make.snapshot("3.13.0")
    changed = {**head.models, "vit_l4_f32_224": "other", "extra": "x"}
    report = make.report(base, replace(head, models=changed, flags=("--a", "--b")))
    assert plain(suite(report)) == (
        "14 models on 8 targets; 1 with another text on head, by SHA-256: vit_l4_f32_224 5b76cc30 → other; "
        "1 only on head: extra"
    )
    table = next(one for one in compared(build_facts(report), TIERS[0]).blocks if isinstance(one, Table))
    rows = {plain(what): (plain(base), plain(head)) for what, base, head in table.texts}
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
    blocks = report_blocks(build_facts(report), replace(TIERS[0], whys=5))
    (changed,) = (one.blocks for one in blocks if isinstance(one, Fold) and one.name == "changed")
    titles = [plain(one.title) for one in changed if isinstance(one, Fold) and one.name == "story"]
    both = {delta.key for delta in report.deltas if delta.state in ("changed", "same")}
    hidden = next(one.lines.total for one in changed if isinstance(one, List) and one.lines.noun == "explained build")
    assert len(titles) == 5 and 5 + hidden == len(report.explanations.keys() & both)
    alarming = {finding.key.model for finding in report.verdict.findings}
    assert {title.partition(" on ")[0] for title in titles} <= alarming


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
