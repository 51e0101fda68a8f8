"""The page: self-contained, harmless, with everything in it; each thing has one address."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import everyday
import pytest
import report_factory as make
from golden_files import check_golden
from growth import LINEAR, cpu_growth
from hypothesis import given
from hypothesis import strategies as st
from page_texts import content, render_html
from replacing import replace

from bot.config.configuration import load_config
from bot.core.metrics import METRIC_BY_ID, METRICS
from bot.core.report import Baseline, Report
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.errors import TemplateError
from bot.show.addresses import (
    cause_address,
    cell_address,
    component_address,
    dispatch_address,
    dispatch_addresses,
    segment,
)
from bot.show.cards import PageRoom, cards
from bot.show.change_map import Place, change_map, pruned
from bot.show.comment import render_comment, render_summary
from bot.show.facts import build_facts
from bot.show.page import chosen_builds
from bot.show.renderers import draw, load, sources
from bot.show.sizes import block_bytes
from bot.study.comparison import reported

_VOID = {"meta", "br", "input"}
_TAGS = """
    html head meta title style script body header nav main section footer h1 h2 h3 h4 p br ul ol li a div span
    table caption thead tbody tr th td code pre strong b em small ins del details summary
    form label select option input button
"""
_ATTRIBUTES = """
    class id lang title scope charset name content http-equiv type href value start open hidden tabindex role
    placeholder aria-label aria-labelledby aria-hidden
    data-state data-level data-moved data-size
"""
ID = re.compile(r"[A-Za-z0-9._~%/=-]+")


class Page(HTMLParser):
    """Tags in balance, attributes, ids, links, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self._texts: list[str] = []
        self.feed(html)
        self.close()
        self.text = "".join(self._texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self._texts.append(data)


def read(html: str) -> Page:
    """What is ours alone, checked: no tag and no attribute that a page does not have by itself."""
    page = Page(content(html))
    assert not page.open
    assert page.tags <= set(_TAGS.split())
    assert page.attributes <= set(_ATTRIBUTES.split())
    assert all(c.isprintable() or c == "\n" for c in page.text)
    return page


@pytest.mark.parametrize(
    "name",
    ["small", "many", "none", "usual", "broken", "broken_on_both", "hostile", "why"],
)
def test_it_is_well_formed_and_harmless(name: str) -> None:
    html = render_html(getattr(make, name)())
    read(html)
    assert "url(" not in content(html)
    assert html.encode()


@pytest.mark.parametrize("name", ["small", "many", "hostile", "why", "broken"])
def test_every_address_is_there_once_and_every_link_leads_to_one(name: str) -> None:
    report = getattr(make, name)()
    page = Page(render_html(report).partition("<body>")[2].partition("</body>")[0])
    addresses = set(page.ids)
    assert len(addresses) == len(page.ids)
    assert all(ID.fullmatch(identifier) for identifier in addresses)
    assert {link.removeprefix("#") for link in page.links} <= addresses
    points = [
        (d.key, dispatch.executable)
        for d in report.deltas
        for dispatch in (d.head or d.base or _NOTHING).dispatches
    ]
    assert {dispatch_address(*point) for point in points} <= addresses
    assert {cell_address(delta.key) for delta in report.deltas} <= addresses
    assert {
        f"cause-{number + 1}" for number in range(len(build_facts(report).roots))
    } <= addresses


_NOTHING = Cell("", "", "failed")


def test_golden() -> None:
    check_golden("small.report.html", content(render_html(make.small())))
    check_golden(
        "explained_small.report.html", content(render_html(make.explained_small()))
    )


def test_what_is_not_known_says_why() -> None:
    unknown = {
        "stack_max_bytes": None,
        "workgroup_memory_max_bytes": None,
        "fills": None,
    }
    reason = "<no> machine frames"

    def without(_key: CellKey, cell: Cell) -> Cell:
        reasons = {
            "stack_max_bytes": reason,
            "workgroup_memory_max_bytes": reason,
            "fills": "bytecode",
        }
        return make.with_metrics(replace(cell, reasons=reasons), **unknown)

    models = ("m",)
    targets = {"vmvx": "vmvx"}
    base, head = (make.snapshot(name, without, models, targets) for name in "12")
    html = render_html(make.report(base, head))
    first, second, third = (METRIC_BY_ID[metric].label for metric in unknown)
    together = [
        label
        for label in (metric.label for metric in METRICS)
        if label in (first, second)
    ]
    assert f"n/a: {', '.join(together)} (&lt;no&gt; machine frames)" in html
    assert f"n/a: {third} (bytecode)" in html
    new = make.report(replace(base, models={}, cells=()), head)
    assert [delta.state for delta in new.deltas] == [
        "new"
    ] and f"n/a: {third} (bytecode)" in render_html(new)


def test_what_warns_of_a_build_that_was_not_measured_comes_before_what_only_changed() -> (
    None
):
    facts = build_facts(make.partly())
    levels = [facts.level(delta.key) for delta in chosen_builds(facts)]
    assert "warn" in levels and levels == sorted(levels, key=("fail", "warn", "").index)


def test_dispatches_of_both_sides_are_joined_by_name() -> None:
    def head(_key: CellKey, cell: Cell) -> Cell:
        first, second, third = cell.dispatches
        dispatches = (
            replace(first, code_bytes=9_999),
            replace(second, name="renamed"),
            third,
        )
        return make.with_metrics(replace(cell, dispatches=dispatches), linalg_ops=1)

    models = ("m",)
    targets = {"vmvx": "vmvx"}
    report = make.report(
        make.snapshot("1", models=models, targets=targets),
        make.snapshot("2", head, models, targets),
    )
    html = render_html(report)
    row = (
        "<th>main_dispatch_0_matmul_128x0_f32</th><td>matmul</td><td>2</td><td>1,200 →"
        " 9,999 B</td>"
    )
    assert f'<tr id="m/vmvx/main_dispatch_0">{row}' in html
    second = '<tr id="m/vmvx/main_dispatch_0/renamed"><th>renamed (only on head)</th>'
    assert f"{second}<td>matmul</td><td>2</td><td>1,201 B</td>" in html
    gone = '<tr id="m/vmvx/main_dispatch_0/main_dispatch_1_matmul_128x1_f32">'
    assert f"{gone}<th>main_dispatch_1_matmul_128x1_f32 (only on base)</th>" in html


def test_a_dispatch_that_changed_has_its_address_where_that_is_reported() -> None:
    report = everyday.report("model_edit")
    html = render_html(report)
    (key, explanation), *_ = report.explanations.items()
    dispatch = explanation.dispatches[0].head
    assert dispatch is not None
    address = dispatch_address(key, dispatch.executable)
    assert html.count(f'id="{address}"') == 1
    assert (
        html.partition(f'id="{address}"')[0]
        .rpartition("<table ")[2]
        .startswith('class="sortable told')
    )
    assert f'<a href="#{address}">' in html, "a root cause has it as its largest"


@pytest.mark.parametrize("word", make.HOSTILE)
def test_the_words_of_an_explanation_are_harmless(word: str) -> None:
    read(render_html(make.explained(make.small(), word)))


def test_the_first_root_causes_are_shown_and_the_others_are_folded() -> None:
    report = everyday.report("two_releases")
    html = content(render_html(report))
    folded = html.index("more causes</summary>")
    assert (
        html.index('id="cause-4"')
        < folded
        < html.index('id="cause-5"')
        < html.index('<h2 id="grid"')
    )
    assert f"{len(build_facts(report).roots) - 4} more causes</summary>" in html


@pytest.mark.slow
def test_a_page_of_thousands_of_cells_is_small_and_says_what_it_shows() -> None:
    report = make.explained(make.huge(4_000))
    html = render_html(report)
    assert len(html.encode()) < 5_000_000
    cell_count = html.count('<details class="cell"')
    drawn = re.search(r"Of 4,000 builds this page shows the ([\d,]+)", html)
    assert drawn and int(drawn[1].replace(",", "")) == cell_count >= 1_500
    assert f"The other {4_000 - cell_count:,} are in report.json; " in html
    read(html)


def crowded(models: int, dispatches: int) -> Report:
    """A report of few builds, each with many dispatches that all have other code."""

    def side(version: str, step_bytes: int) -> Snapshot:
        def of(_key: CellKey, cell: Cell) -> Cell:
            rows = []
            for number in range(dispatches):
                size_bytes = 1_000 + number + step_bytes * (number % 7 + 1)
                row = make.dispatch(number, size_bytes)
                rows.append(replace(row, code=make.digest(f"{version}{number}")[:43]))
            return make.grown(
                replace(cell, dispatches=tuple(rows)),
                artifact_bytes=step_bytes * dispatches,
            )

        return make.snapshot(
            version,
            of,
            tuple(f"m{number}" for number in range(models)),
            {"vmvx": "vmvx"},
        )

    return reported(
        load_config(models=False),
        side("1", 0),
        side("2", 8),
        Baseline("snapshot base.json"),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("models", "dispatches"), [(1, 20_000), (20, 1_200)])
def test_a_page_of_few_builds_with_many_dispatches_is_small_and_counts_what_it_leaves_out(
    models: int, dispatches: int
) -> None:
    html = render_html(crowded(models, dispatches))
    assert 2_000_000 < len(html.encode()) < 5_000_000
    cells = content(html).split('<details class="cell"')[1:]
    assert len(cells) == models
    for cell in cells:
        changed, _, all_dispatches = cell.partition("All dispatches (")
        assert f"Dispatches that changed ({dispatches:,})" in changed
        entries = all_dispatches.partition("</details>")[0]
        table = entries.partition("<table")[2].partition("</table>")[0]
        rows = max(0, table.count("<tr") - 1)
        left_out = re.search(
            r"…and ([\d,]+) more entry points, in the files", all_dispatches
        )
        if left_out:
            rows += int(left_out[1].replace(",", ""))
        if all_dispatches:
            assert rows == dispatches, "each entry point has its row, or is counted"
        if left_out or not all_dispatches:
            assert "This page has no room for more of this build: report.json" in cell
    assert any("This page has no room" in cell for cell in cells)
    page = Page(html)
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids, "main"}
    read(html)


def test_what_a_block_is_reckoned_to_take_is_never_less_than_it_takes() -> None:
    report = make.explained(make.hostile())
    for sample in (report, everyday.report("two_releases")):
        facts = build_facts(sample)
        for card in cards(facts, chosen_builds(facts), PageRoom(10**9)):
            for block in card.blocks:
                drawn = draw(
                    load("_blocks.html.j2", None), blocks=(block,), answer="report"
                )
                assert len(drawn.strip().encode()) <= block_bytes(block), drawn[:300]


@pytest.mark.parametrize(("largest_bytes", "whole"), [(1, 0), (1_000_000, 20)])
def test_without_room_the_first_builds_are_reported_whole_and_every_link_still_leads_somewhere(
    monkeypatch: pytest.MonkeyPatch, largest_bytes: int, whole: int
) -> None:
    monkeypatch.setattr("bot.show.page.LARGEST_BYTES", largest_bytes)
    html = content(render_html(everyday.report("two_releases")))
    cells = html.split('<details class="cell"')[1:]
    cut = [
        "This page has no room for more of this build: report.json" in cell
        for cell in cells
    ]
    assert cut == [False] * whole + [True] * (36 - whole)
    page = Page(html)
    assert {link.removeprefix("#") for link in page.links} <= {*page.ids, "main"}
    assert len(set(page.ids)) == len(page.ids)


def test_no_scripts_but_its_own_and_nothing_from_elsewhere() -> None:
    html = render_html(make.hostile())
    policy = unescape(html.partition("<title>")[0])
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "prefers-color-scheme: dark" in html


def test_a_user_template_is_escaped_too(tmp_path: Path) -> None:
    (tmp_path / "report.html.j2").write_text(
        "{% for card in cards %}{{ card.model }}{% endfor %}"
    )
    html = render_html(make.hostile(), tmp_path)
    assert "<" not in html
    assert "\u202e" not in html
    (tmp_path / "report.html.j2").write_text("\n{{ view.x }}")
    with pytest.raises(TemplateError, match=r"report\.html\.j2:2: template failed"):
        render_html(make.small(), tmp_path)


def test_a_part_of_the_page_style_and_scripts_are_the_users_where_there_are_such(
    tmp_path: Path,
) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report.totals.html.j2").write_text(
        "<p>{{ one.title }}: mine</p>", encoding="utf-8"
    )
    (tmp_path / "report" / "grid.html.j2").write_text(
        "<p>{{ status }} is mine</p>", encoding="utf-8"
    )
    (tmp_path / "report" / "cells.js").write_text(
        "\r\nwindow.mine = true;\r\n", encoding="utf-8"
    )
    html = render_html(make.small(), tmp_path)
    assert (
        "<p>Measures by target: mine</p>" in html
        and '<h2 id="totals">' not in html
        and '<h2 id="alarms">' in html
    )
    assert "<p>fail is mine</p>" in html and '<h2 id="grid">' not in html
    assert "<script>window.mine = true;</script>" in html and sources(
        ["window.mine = true;"]
    ) in unescape(html)


@pytest.mark.parametrize("render", [render_comment, render_summary, render_html])
def test_time_grows_with_the_number_of_cells(render: Callable[[Report], str]) -> None:
    assert cpu_growth(make.huge, render, 1_000) < LINEAR


# Addresses: one for each thing, whatever it is called.

KEY = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")
NAMES = st.text(st.characters(exclude_categories=()), max_size=300)


def test_a_second_entry_point_of_an_executable_has_its_name_behind_it() -> None:
    points = [("exe", "a"), ("other", "a"), ("exe", "b")]
    cell = cell_address(KEY)
    assert list(dispatch_addresses(KEY, points).values()) == [
        f"{cell}/exe",
        f"{cell}/other",
        f"{cell}/exe/b",
    ]


@given(NAMES, NAMES)
def test_two_names_never_have_one_address(first: str, second: str) -> None:
    assert (segment(first) == segment(second)) == (first == second)
    assert re.fullmatch(r"[A-Za-z0-9._~%=-]{0,160}", segment(first))
    assert (
        "=" in segment(first)
        or unquote(segment(first), errors="surrogatepass") == first
    )


@given(NAMES, NAMES, NAMES)
def test_a_component_never_has_the_address_of_a_dispatch_nor_a_cell_that_of_a_section(
    model: str, target: str, name: str
) -> None:
    key = CellKey(model, target)
    assert component_address(key, name) != dispatch_address(key, name)
    assert "/" in cell_address(key) and "/" not in cause_address(1)


# Where the bytes went, on real comparisons: every sum is true, and nothing is lost.


def places(place: Place) -> Iterator[Place]:
    yield place
    for inner in place.inside:
        yield from places(inner)


def leaves(place: Place) -> Iterator[Place]:
    return (place for place in places(place) if not place.inside)


def cells_of(tree: Place) -> dict[str, Place]:
    return {cell.address: cell for target in tree.inside for cell in target.inside}


def assert_sums(tree: Place, report: Report) -> None:
    for place in places(tree):
        ends = list(leaves(place))
        assert (place.net_bytes, place.moved_bytes) == (
            sum(end.net_bytes for end in ends),
            sum(end.moved_bytes for end in ends),
        )
    cells = cells_of(tree)
    for delta in report.deltas:
        change = delta.metrics["artifact_bytes"].change if delta.metrics else None
        cell = cells.get(cell_address(delta.key))
        assert (cell.net_bytes if cell else 0) == (change or 0), delta.key


@pytest.mark.parametrize("case", everyday.CASES)
def test_leaves_sum_to_the_change_of_each_artifact(case: str) -> None:
    report = everyday.report(case)
    tree = change_map(build_facts(report))
    assert_sums(tree, report)
    assert tree.moved_bytes == sum(
        root.total.absolute_bytes for root in report.root_causes
    )
    largest = max((leaf.moved_bytes for leaf in leaves(tree)), default=0)
    for least_bytes in (2, 500, largest + 1):
        small = pruned(tree, least_bytes)
        assert (small.net_bytes, small.moved_bytes) == (
            tree.net_bytes,
            tree.moved_bytes,
        )
        assert small.moved_bytes == sum(leaf.moved_bytes for leaf in leaves(small))


def test_what_nothing_explains_is_a_rectangle_of_its_own() -> None:
    report = everyday.report("two_releases")
    key = CellKey("mobilenet_v1_f32_224", "llvm-cpu-x86_64")
    for explanations in (
        {},
        {
            key: replace(
                report.explanations[key],
                dispatches=report.explanations[key].dispatches[3:],
            )
        },
    ):
        changed = replace(
            report,
            explanations={
                **{k: v for k, v in report.explanations.items() if k != key},
                **explanations,
            },
        )
        tree = change_map(build_facts(changed))
        assert_sums(tree, changed)
        (unattributed,) = (
            leaf
            for leaf in cells_of(tree)[cell_address(key)].inside
            if leaf.name == "unattributed"
        )
        assert unattributed.net_bytes and ("dispatch" in unattributed.inside[0].name)
