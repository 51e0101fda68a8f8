"""The comment: within the budget, found again, harmless, the same for the same report, and the user's to redesign."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import report_factory as make
from golden_files import check_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from replacing import replace
from strategies import snapshots
from test_escape import _LINKS

from bot.core.policy import Verdict
from bot.core.publication import Acceptance, CommentState, accept, decode, encode, seen
from bot.core.report import Baseline, Report
from bot.core.snapshot import Snapshot, SourceInfo
from bot.errors import BotError, InputError, TemplateError
from bot.show.comment import COMMENT_LIMIT, TIERS, marker, render_broken, render_comment
from bot.show.renderers import length

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKER = "<!-- code-size-bot:default -->"
_ICONS = {"pass": "(?:✅|⚪)", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}
_OUR_TAGS = re.compile(r"</?(?:details|summary|sub|code|br)>")


def _leaves(markdown: str) -> list[Token]:
    found: list[Token] = []
    for token in PARSER.parse(markdown):
        found += [token, *(token.children or [])]
    return found


def assert_harmless(markdown: str) -> None:
    """Only our own tags and headings; no link, image, mention or reference; tables as wide as their headers."""
    leaves = _leaves(markdown)
    assert not {token.type for token in leaves} & {"link_open", "image", "s_open", "hr", "code_block"}
    markup = "".join(token.content for token in leaves if token.type in ("html_block", "html_inline"))
    ours = _OUR_TAGS.sub("", markup.replace(MARKER, "", 1))
    assert "<" not in ours
    assert ours.isprintable() or set(ours) - set("\n") <= set(filter(str.isprintable, ours))
    assert markup.count("<details>") == markup.count("</details>") == markup.count("<summary>")
    text = "\n".join(token.content for token in leaves if token.type == "text")
    assert not _LINKS.search(text)
    assert not {token.type for token in leaves} & {"heading_open"}, "parts have bold titles"


def assert_sound(report: Report, text: str) -> None:
    """In the budget, with marker and verdict."""
    assert length(text) <= COMMENT_LIMIT
    assert text.count(marker(report.report_id)) == 1
    assert text.startswith(marker(report.report_id))
    assert re.search(rf"^{_ICONS[report.verdict.status]} \*\*Code size: ", text, re.MULTILINE)
    assert text.encode()


@pytest.mark.parametrize(
    "name", ["small", "many", "none", "usual", "broken", "broken_on_both", "hostile", "why", "explained_small"]
)
def test_golden(name: str) -> None:
    report = getattr(make, name)()
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)
    check_golden(f"{name}.comment.md", text)


# On a pull request.

RUN = (("workflow run", "https://github.com/octo/repo/actions/runs/7"),)
STATE = "<!-- code-size-bot-state:1:eNqLVkokEijpmOuUFJWm6kTHQlAsAJYjFSA= -->"  # another zlib gives other bytes
ASK = "To accept: comment `/code-size accept"


def pulled(report: Report) -> Report:
    """The report as that of a pull request."""
    base = replace(report.base, source=SourceInfo("1" * 40, "refs/heads/main"))
    head = replace(report.head, source=SourceInfo("2" * 40, "refs/pull/7/merge"))
    rule = Baseline("first parent of the merge commit", "1" * 40, 0)
    return replace(report, base=base, head=head, baseline=rule, state_line=STATE, links=RUN)


def accepted(report: Report, count: int, why: str = "better fusion", who: str = "octocat") -> Report:
    """The report with its first findings accepted."""
    given = Acceptance(who, why, "comment", 1, seen(report.verdict.findings)[:count])
    return replace(report, verdict=accept(report.verdict, [given]))


PULLS = {
    "fail": pulled(make.small()),
    "partly_accepted": accepted(pulled(make.small()), 1),
    "accepted": accepted(pulled(make.small()), 2, "see @octocat/team #12 https://example.com"),
    "resolved": replace(pulled(make.none()), resolved=True, baseline=Baseline("first parent", "3" * 40, 3)),
    "fork": replace(pulled(make.small()), untrusted=True),
    "broke": replace(pulled(make.none()), broke="the runner of shard 2/4 was lost", verdict=Verdict("unknown")),
}


def without_links(text: str) -> str:
    for label, url in RUN:
        text = text.replace(f"[{label}](<{url}>)", label)
    return text.replace(STATE, "")


@pytest.mark.parametrize("name", PULLS)
def test_golden_of_a_pull_request(name: str) -> None:
    text = render_comment(PULLS[name])
    assert_sound(PULLS[name], text)
    assert_harmless(without_links(text))
    assert text.splitlines()[:2] == [MARKER, STATE]
    assert decode(text) == CommentState("a" * 40, 7, True)
    check_golden(f"pull_{name}.comment.md", text)


def test_it_says_how_to_accept_where_that_is_possible() -> None:
    asked = {name for name, report in PULLS.items() if ASK in render_comment(report)}
    assert asked == {"fail", "partly_accepted", "fork"}
    assert ASK not in render_comment(make.small())


def test_acceptances_are_grouped_and_capped() -> None:
    report = pulled(make.many())
    failing = seen(report.verdict.findings)
    given = [Acceptance(f"user{i}", "x" * 900, "label", i, (one,)) for i, one in enumerate(failing)]
    text = render_comment(replace(report, verdict=accept(report.verdict, given)))
    assert len(failing) > 12 and text.count("☑️ Accepted by") == 10
    assert f"…and {len(failing) - 10} more acceptances" in text
    assert f"accepted by `user0`, `user1` and {len(failing) - 2} others" in text
    assert "x" * 301 not in text


def test_the_words_of_people_are_harmless() -> None:
    for word in make.HOSTILE:
        report = replace(accepted(pulled(make.small()), 2, word, word), broke=word, links=((word, word),))
        text = render_comment(replace(report, baseline=Baseline(word, word, 3), state_line=""))
        assert_sound(report, text)
        assert_harmless(text)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://example.com/",
        "https://",
        "https://a b",
        "https://a/>x",
        "https://a/\n",
        "//a.b/c",
    ],
)
def test_other_urls_are_no_links(url: str) -> None:
    text = render_comment(replace(pulled(make.none()), links=(("page", url),)))
    assert "<sub>More: page</sub>" in text
    assert_harmless(text.replace(STATE, ""))


def test_a_state_line_cannot_break_out() -> None:
    report = replace(make.none(), state_line="<!-- code-size-bot-state:1:AA --> <img> -->")
    assert render_comment(report) == render_comment(make.none())


def test_a_huge_report_with_a_long_state_fits() -> None:
    report = pulled(make.huge())
    findings = seen(report.verdict.findings)
    text = render_comment(replace(report, state_line=encode(CommentState("a" * 40, 7, True, findings))))
    assert length(text) <= COMMENT_LIMIT
    found = decode(text)
    assert found is not None and len(found.findings) > 100


def test_an_analysis_that_broke_at_once_says_so() -> None:
    text = render_broken("default", BotError("models/a.mlir: no MLIR\n@octocat <b> `x`"), RUN, STATE)
    assert text == (
        f"{MARKER}\n{STATE}\n"
        "⚠️ **Code size: not known** — the analysis broke: ``models/a.mlir: no MLIR @octocat <b> `x` ``\n\n"
        "Nothing was compared, so nothing is known to be right or wrong.\n\n"
        "<sub>[workflow run](<https://github.com/octo/repo/actions/runs/7>)</sub>\n"
    ).replace("``models", "`` models")
    assert "`no reason is known`" in render_broken("nightly", BotError(""), ())
    assert length(render_broken("default", BotError("@" * 100_000), ())) < 2_000


@pytest.mark.parametrize("words", make.HOSTILE)
def test_what_broke_is_harmless(words: str) -> None:
    assert_harmless(render_broken("default", BotError(words), ((words, words),)))


def test_a_fold_holds_markdown_only_after_a_blank_line() -> None:
    lines = render_comment(make.many()).splitlines()
    opened = [index for index, line in enumerate(lines) if line.startswith("<details>")]
    assert len(opened) >= 3
    assert all(not lines[index + 1] for index in opened)
    assert not any("\n\n\n" in render_comment(report) for report in (make.many(), make.none(), make.broken()))


@pytest.mark.parametrize("cells", [800, 5_000])
def test_many_cells_fit_and_say_what_is_missing(cells: int) -> None:
    report = make.huge(cells)
    text = render_comment(report)
    assert_sound(report, text)
    assert "<sub>Shortened to fit. Left out here: " in text
    assert "the job summary, report.html and report.json have everything.</sub>" in text


def test_the_budget_holds_for_long_hostile_text() -> None:
    words = tuple(
        f"{index}{word * 300}" for index, word in enumerate(("`", "|", "\\|", "😀", "<!--", "&", "@a ", "#1 "))
    )
    report = make.hostile(words)
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)


@settings(max_examples=25)
@given(snapshots(), snapshots(), st.text(max_size=60))
def test_any_report_fits_and_is_harmless(base: Snapshot, head: Snapshot, note: str) -> None:
    report = make.report(base, head, (note,))
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)


@settings(max_examples=15)
@given(st.lists(st.text(max_size=400), min_size=6, max_size=12, unique=True))
def test_any_words_fit_and_are_harmless(words: list[str]) -> None:
    report = make.hostile(tuple(words))
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)


def test_the_same_report_gives_the_same_bytes() -> None:
    assert render_comment(make.many()) == render_comment(make.many())


@pytest.mark.parametrize("report_id", ["", "a b", "x-->", "a--b", "-a", "é", "x" * 65, "a\n"])
def test_a_report_id_cannot_break_out_of_the_marker(report_id: str) -> None:
    with pytest.raises(InputError, match="is no report id"):
        render_comment(replace(make.small(), report_id=report_id))


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_user_can_replace_the_template(tmp_path: Path) -> None:
    write(tmp_path, "comment.md.j2", "{{ marker }}\nMine: {{ blocks[0].blocks[1].said|phrase }}")
    assert render_comment(make.none(), tmp_path) == (
        f"{MARKER}\nMine: ✅ **Code size: nothing changed** · 104 of 104 builds bit-identical\n"
    )


def test_a_user_can_replace_one_part(tmp_path: Path) -> None:
    write(tmp_path, "report.compared.md.j2", "Ask @octocat about {{ one.title }}.")
    text = render_comment(make.none(), tmp_path)
    assert "Ask @octocat about What was compared." in text
    assert "Suite:" not in text
    assert "Every build" in text


def test_a_template_that_forgets_to_escape_is_harmless(tmp_path: Path) -> None:
    write(
        tmp_path,
        "comment.md.j2",
        "{{ marker }}\n{% for span in blocks[0].blocks[1].said %}{{ span.text }}{% endfor %}"
        "{% for one in blocks if one.kind == 'fold' %}{% for row in one.blocks if row.kind == 'table' %}"
        "{% for cells in row.rows %}\n{% for cell in cells %}{% for span in cell %}{{ span.text }} "
        "{% endfor %}{% endfor %}{% endfor %}{% endfor %}{% endfor %}",
    )
    text = render_comment(make.hostile(), tmp_path)
    assert "octocat" in text
    assert_harmless(text)


def test_a_template_without_the_marker_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "comment.md.j2", "no marker")
    with pytest.raises(
        TemplateError, match=r"comment\.md\.j2: the comment does not begin with its hidden marker \(print"
    ):
        render_comment(make.none(), tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ marker }}\n{% if %}", r"comment\.md\.j2:2: template does not parse"),
        ("{{ marker }}\n\n{{ blocks.nothing }}", r"comment\.md\.j2:3: template failed: .*nothing"),
        ("{{ marker }}\n{{ 1 / 0 }}", r"comment\.md\.j2:2: template failed: ZeroDivisionError"),
        ("{{ marker }}\n{{ blocks.__class__.__mro__ }}", r"comment\.md\.j2:2: template failed: .*unsafe"),
        ("{{ marker }}\n{% include 'gone.j2' %}", r"comment\.md\.j2:2: template failed: .*gone\.j2"),
        ("{{ marker }}\n{% include '../../etc/passwd' %}", r"comment\.md\.j2:2: template failed"),
        ("{{ marker }}{{ 'x'|amount }}", r"comment\.md\.j2:1: template failed: ValueError"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", r"comment\.md\.j2:1: template failed: RecursionError"),
    ],
)
def test_a_broken_template_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path, "comment.md.j2", text)
    with pytest.raises(TemplateError, match=said):
        render_comment(make.small(), tmp_path)


def test_a_broken_part_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, "report.verdict.md.j2", "\n\n{% nonsense %}")
    with pytest.raises(TemplateError, match=r"report\.verdict\.md\.j2:3"):
        render_comment(make.small(), tmp_path)


def test_a_template_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "comment.md.j2").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TemplateError, match="template cannot be read"):
        render_comment(make.small(), tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="is no directory"):
        render_comment(make.small(), tmp_path / "gone")


def test_a_template_that_never_fits_gives_way_to_the_default_one(tmp_path: Path) -> None:
    write(tmp_path, "comment.md.j2", "{{ marker }}{{ '12345' * 20000 }}")
    assert render_comment(make.small(), tmp_path) == render_comment(make.small())


# Why.


def test_the_cause_of_a_dispatch_is_told_where_it_is_not_the_cells() -> None:
    report = make.explained_small()
    ((key, known),) = report.explanations.items()
    first, *rest = known.dispatches
    mixed = replace(known, dispatches=(replace(first, cause="codegen", note="8 instructions more"), *rest))
    text = render_comment(replace(report, explanations={key: mixed}))
    assert "| <sub>dispatch</sub> | <sub>cause</sub> | <sub>component</sub> |" in text
    assert "- `main_dispatch_0_matmul_128x768x768_f32`: 8 instructions more" in text


def test_explanations_give_way_first() -> None:
    models = make.explained(make.huge(1_600))
    text = render_comment(models)
    assert_sound(models, text)
    assert text.count("the sides first differ in ") <= TIERS[0].whys
    assert "more explained builds" in text
    assert "\n**Root causes**" in text, "causes stay"
    assert [limits.whys for limits in TIERS[-3:]] == [0, 0, 0] and all(limits.causes for limits in TIERS)


@pytest.mark.parametrize("word", make.HOSTILE)
def test_the_words_of_an_explanation_are_harmless(word: str) -> None:
    report = make.explained(make.many(), word)
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)
    assert "<summary>Why: " in text
