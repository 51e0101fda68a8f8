"""Comments of everyday pull requests, of real compiles.

And the order of a first screen, everywhere.
"""

from __future__ import annotations

import re
from html import unescape
from math import ceil

import everyday
import pytest
import report_factory as make
from golden_files import check_golden
from harmless import leaves_of
from page_texts import content, render_html
from replacing import replace
from test_comment import PULLS, STATE
from test_terminal import printed

from bot.core.delta import diff
from bot.core.explanation import Example, RootCause, Tally
from bot.core.report import Baseline, Report
from bot.core.snapshot import Cell, CellKey
from bot.show.comment import COMMENT_LIMIT, render_comment, render_summary
from bot.show.facts import build_facts
from bot.show.measures import measures_table

FIXTURES = (
    "small",
    "many",
    "none",
    "usual",
    "broken",
    "broken_on_both",
    "no_baseline",
    "hostile",
    "why",
)
REPORTS: dict[str, Report] = {
    name: getattr(make, name)() for name in (*FIXTURES, "explained_small")
}
REPORTS |= {f"pull {name}": report for name, report in PULLS.items()}
WIDE = 4_000
COLUMNS = 100
LINES = 60
"""Characters of a line of a comment, and lines of a large screen."""


def plain(text: str) -> str:
    unescaped = unescape(
        re.sub(
            r"</?(?!code|strong)[a-z][^>]*>",
            " ",
            re.sub(r"</?(?:code|strong)>", "", text),
        )
    )
    return re.sub(r"[\u2060`*\\]", "", unescaped).replace("\xa0", " ")


def comment(report: Report) -> str:
    return plain(render_comment(report).partition("<details>")[0])


def summary(report: Report) -> str:
    return plain(render_summary(report).partition("<details>")[0])


def page(report: Report) -> str:
    return plain(content(render_html(report)).partition('<h2 id="grid"')[0])


def terminal(report: Report) -> str:
    return re.split(
        r"^ *model ", printed(report, WIDE), maxsplit=1, flags=re.MULTILINE
    )[0]


def shown_lines(text: str) -> int:
    """Of a comment's first screen."""
    lines = (
        re.sub(r"<[^>]+>|[`*\\]", "", line)
        for line in text.partition("<details>")[0].splitlines()[1:]
    )
    return sum(max(1, ceil(len(line) / COLUMNS)) for line in lines if line)


def folds(text: str) -> int:
    """How many are in no other; each is closed."""
    depth = 0
    top = 0
    markup = "".join(
        token.content
        for token in leaves_of(text)
        if token.type in ("html_block", "html_inline")
    )
    for tag in re.findall(r"</?details>", markup):
        top += tag == "<details>" and depth == 0
        depth += 1 if tag == "<details>" else -1
    assert depth == 0
    return top


PLACES = {"comment": comment, "summary": summary, "page": page, "terminal": terminal}


@pytest.mark.parametrize("name", REPORTS)
def test_a_comment_and_a_summary_have_at_most_six_folds(name: str) -> None:
    for text in (render_comment(REPORTS[name]), render_summary(REPORTS[name])):
        assert 1 <= folds(text) <= 6


def _is_broken(report: Report, key: CellKey) -> bool:
    return any(
        delta.key == key and delta.state == "newly-broken" for delta in report.deltas
    )


def parts(report: Report) -> list[str]:
    """What has to be there, in this order."""
    headings = ["Code size: ", "What changed:"]
    fails = [
        finding
        for finding in report.verdict.news
        if finding.level == "fail" and not finding.accepted
    ]
    headings += ["Newly failing"] * any(
        finding.limit == "newly-broken" for finding in fails
    )
    headings += ["Fails the check"] * any(
        finding.metric and not _is_broken(report, finding.key) for finding in fails
    )
    table, _ = measures_table(build_facts(report))
    headings += ["largest change of stack or registers"] * bool(table)
    if build_facts(report).roots:
        headings.append("Causes")
    return headings


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", REPORTS)
def test_the_order_is_the_same_everywhere(name: str, place: str) -> None:
    screen = PLACES[place](REPORTS[name])
    headings = parts(REPORTS[name])
    indices = [screen.find(part) for part in headings]
    assert -1 not in indices, [
        part for part, index in zip(headings, indices, strict=True) if index < 0
    ]
    assert indices == sorted(indices)


def integrated(models: int, changed: int) -> Report:
    """A compiler that moved to a new LLVM: of `models` × 8 cells this many are larger, all for thirty reasons."""
    names = tuple(f"model_{number:02}_f32_s128" for number in range(models))
    keys = sorted(CellKey(name, target) for name in names for target in make.TARGETS)
    moved = {key: 9_000 + 100 * number for number, key in enumerate(keys[:changed])}

    def edit(key: CellKey, cell: Cell) -> Cell:
        return (
            make.grown(cell, artifact_bytes=moved[key], executable_bytes=moved[key])
            if key in moved
            else cell
        )

    base = make.snapshot("3.12.0", models=names)
    head = make.snapshot("3.13.0", edit, names)
    deltas = diff(base, head)
    notes = (
        (
            "changes may come from other commits: the baseline is 3 commits before the"
            " base"
        ),
    )
    causes = tuple(_cause(number, list(moved)) for number in range(30))
    baseline = Baseline("first parent of the merge commit", "b" * 40, 3)
    return Report(
        base=base,
        head=head,
        baseline=baseline,
        deltas=deltas,
        verdict=make.judged(deltas),
        notes=notes,
        root_causes=causes,
    )


def _cause(number: int, keys: list[CellKey]) -> RootCause:
    size = 1_000_000 - number
    targets = tuple(sorted({key.target for key in keys}))
    total = Tally(400, size, 2 * size)
    models = tuple(sorted({key.model for key in keys}))
    example = Example(
        key=keys[0],
        dispatch="main$async_dispatch_7_matmul_like_144x65x65x24_f32",
        component="layer.0",
        base_bytes=613,
        head_bytes=13_344,
        change_bytes=12_731,
        note="",
    )
    by_target = dict.fromkeys(targets, total)
    text = f"cause number {number}: vector_common_parallel 1 → 8 (114), others (76)"
    cells = tuple(keys)
    shares = {key: size // len(keys) for key in keys}
    return RootCause(
        cause="strategy",
        what=text,
        targets=targets,
        models=models,
        cells=cells,
        dispatches=400,
        total=total,
        share=1 / 30,
        example=example,
        by_target=by_target,
        by_cell=shares,
        command="true",
    )


@pytest.mark.parametrize("changed", [210, 320])
def test_hundreds_of_changed_cells_are_one_screen_with_their_causes_on_it(
    changed: int,
) -> None:
    report = integrated(40, changed)
    text = render_comment(report)
    screen = text.partition("<details>")[0]
    assert shown_lines(text) <= LINES
    assert "number 0:" in screen and "number 3:" in screen and "| **all**: " in screen
    assert (
        f"{changed - 30} of 320 builds fail the check** · 30 of 320 builds with"
        " warnings" in screen
    )
    assert (
        screen.count("| ❌") == 1
        and "the job summary, report.html and report.json have everything" in text
    )
    assert len(text) < 65_536


# Everyday cases: goldens, one screen, six folds, links that lead somewhere.

CASES = tuple(everyday.CASES)


def everyday_comment(case: str) -> str:
    """As on a pull request: measured against main's snapshot, with a run to link to."""
    measured = everyday.report(case)
    baseline = Baseline("snapshot of the base commit", measured.baseline.sha, 0)
    links = (("workflow run", "https://github.com/example/models/actions/runs/1"),)
    on_a_pull_request = replace(
        measured, baseline=baseline, links=links, state_line=STATE
    )
    return render_comment(on_a_pull_request)


@pytest.mark.parametrize("case", CASES)
def test_golden_is_one_screen_and_six_folds(case: str) -> None:
    text = everyday_comment(case)
    check_golden(f"../everyday/{case}/comment.md", text)
    assert shown_lines(text) <= LINES and 1 <= folds(text) <= 6


PAGE = "https://example.com/code-size/7/report.html"


def linked(case: str, page: str) -> str:
    return render_comment(replace(everyday.report(case), page=page))


@pytest.mark.parametrize("case", CASES)
def test_a_comment_links_to_what_the_page_has_where_that_can_be_read(case: str) -> None:
    text = linked(case, PAGE)
    links = set(re.findall(re.escape(f"](<{PAGE}#") + r"([^>]+)>", text))
    anchors = set(re.findall(r'\bid="([^"]+)"', render_html(everyday.report(case))))
    assert links and links <= anchors
    causes = len(everyday.report(case).root_causes)
    assert "cause-1" in links or not causes
    comments = [re.sub(r"\[([^\]]+)\]\(<[^>]+>\)", r"\1", text), linked(case, "")]
    comments[0] = (
        comments[0]
        .replace(" More: the page", "")
        .replace("<sub>More: the page</sub>\n\n", "")
    )
    if len(comments[1]) > 0.9 * COMMENT_LIMIT:  # links take the room of what comes last
        comments = [comment_text.partition("<details>")[0] for comment_text in comments]
    assert comments[0] == comments[1]


@pytest.mark.parametrize(
    "page",
    ["", "http://example.com/report.html", "javascript:alert(1)//", "report.html"],
)
def test_it_never_links_to_a_page_that_nobody_can_read(page: str) -> None:
    assert "](<" not in linked("two_releases", page)
