"""Comment, job summary and check run: within the budget, found again, harmless, and the user's to redesign."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
import report_factory as make
from golden_files import check_golden
from harmless import MARKER, assert_harmless
from hypothesis import given, settings
from hypothesis import strategies as st
from replacing import replace
from strategies import snapshots

from bot.core.acceptance import Acceptance, accept, seen
from bot.core.check_run import CheckRun
from bot.core.comment_state import CommentState, decode, encode
from bot.core.findings import Verdict
from bot.core.policy import judge
from bot.core.report import Baseline, Report
from bot.core.snapshot import CellKey, Snapshot, SourceInfo
from bot.errors import BotError, InputError, TemplateError
from bot.show.annotations import model_paths
from bot.show.check import (
    ANNOTATIONS_LIMIT,
    CHECK_SUMMARY_LIMIT,
    broken_check,
    check_run,
)
from bot.show.comment import (
    COMMENT_LIMIT,
    SUMMARY_LIMIT_BYTES,
    marker,
    render_broken,
    render_comment,
    render_summary,
)
from bot.show.renderers import length
from bot.show.views import COMMENT

_ICONS = {"pass": "(?:✅|⚪)", "warn": "⚠️", "fail": "❌", "unknown": "⚪"}


def assert_sound(report: Report, text: str) -> None:
    """In the budget, with marker and verdict."""
    assert length(text) <= COMMENT_LIMIT
    assert text.count(marker(report.report_id)) == 1
    assert text.startswith(marker(report.report_id))
    assert re.search(
        rf"^{_ICONS[report.verdict.status]} \*\*Code size: ", text, re.MULTILINE
    )
    assert text.encode()


@pytest.mark.parametrize(
    "name",
    [
        "small",
        "many",
        "none",
        "usual",
        "broken",
        "broken_on_both",
        "hostile",
        "why",
        "explained_small",
    ],
)
def test_golden(name: str) -> None:
    report = getattr(make, name)()
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)
    check_golden(f"{name}.comment.md", text)


# On a pull request.

RUN = (("workflow run", "https://github.com/octo/repo/actions/runs/7"),)
STATE = (  # another zlib gives other bytes
    "<!-- code-size-bot-state:1:eNqLLikqTdWJjtXJK83JiQUAJ6cFRA== -->"
)


def pulled(report: Report) -> Report:
    """The report as that of a pull request."""
    base = replace(report.base, source=SourceInfo("1" * 40, "refs/heads/main"))
    head = replace(report.head, source=SourceInfo("2" * 40, "refs/pull/7/merge"))
    rule = Baseline("first parent of the merge commit", "1" * 40, 0)
    return replace(
        report, base=base, head=head, baseline=rule, state_line=STATE, links=RUN
    )


def accepted(report: Report, count: int, who: str = "octocat") -> Report:
    """The report with its first findings accepted."""
    acceptance = Acceptance(who, 1, seen(report.verdict.findings)[:count])
    return replace(report, verdict=accept(report.verdict, acceptance))


PULLS = {
    "fail": pulled(make.small()),
    "partly_accepted": accepted(pulled(make.small()), 1),
    "accepted": accepted(pulled(make.small()), 2),
    "resolved": replace(
        pulled(make.none()),
        resolved=True,
        baseline=Baseline("first parent", "3" * 40, 3),
    ),
    "fork": replace(pulled(make.small()), untrusted=True),
    "broke": replace(
        pulled(make.none()),
        broke="the runner of shard 2/4 was lost",
        verdict=Verdict("unknown"),
    ),
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
    assert decode(text) == CommentState(True)
    check_golden(f"pull_{name}.comment.md", text)


def test_the_words_of_people_are_harmless() -> None:
    for word in make.HOSTILE:
        report = replace(
            accepted(pulled(make.small()), 2, word), broke=word, links=((word, word),)
        )
        text = render_comment(
            replace(report, baseline=Baseline(word, word, 3), state_line="")
        )
        assert_sound(report, text)
        assert_harmless(text)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://example.com/",
        "http://github.com/octo/repo/actions/runs/1",
        "HTTP://example.com/",
        "http://127.0.0.1.example.com/",
        "http://127.0.0.1@example.com/",
        "http://localhost/",
        "https://",
        "https://a b",
        "https://a/>x",
        "https://a/\n",
        "//a.b/c",
    ],
)
def test_other_urls_are_no_links(url: str) -> None:
    text = render_comment(replace(pulled(make.none()), links=(("page", url),)))
    assert "More: page\n" in text
    assert_harmless(text.replace(STATE, ""))


@pytest.mark.parametrize(
    "page", ["http://pages.example/report.html", "http://127.0.0.1.example/report.html"]
)
def test_a_page_without_encryption_is_no_link(page: str) -> None:
    """Whoever is between could show another report."""
    report = make.why()
    assert "](<https://pages.example/report.html#" in render_comment(
        replace(report, page="https://pages.example/report.html")
    )
    text = render_comment(replace(report, page=page))
    assert "](<" not in text and page not in text


def test_a_name_cannot_leave_an_attribute_of_a_user_s_template(tmp_path: Path) -> None:
    write(
        tmp_path,
        "comment.md.j2",
        "{{ marker }}\n{% for one in blocks if one.kind == 'fold' %}{% for row in"
        " one.blocks if row.kind == 'table' %}{% for cells in row.texts %}{% for cell"
        ' in cells %}{% for span in cell %}<b title="{{ span.text|html }}">x</b>{%'
        " endfor %}{% endfor %}{% endfor %}{% endfor %}{% endfor %}",
    )
    name = "bert\" onclick='alert(1)' x=\""
    side = make.snapshot("3.13.0", models=(name,))
    text = render_comment(make.report(side, side), tmp_path)
    tags = re.findall(r"<b [^>]*>", text)
    titles = [re.fullmatch(r'<b title="([^"\']*)">', tag) for tag in tags]
    assert name in [html.unescape(title[1]) for title in titles if title]
    assert None not in titles


def test_a_state_line_cannot_break_out() -> None:
    report = replace(
        make.none(), state_line="<!-- code-size-bot-state:1:AA --> <img> -->"
    )
    assert render_comment(report) == render_comment(make.none())


def test_a_huge_report_with_a_long_state_fits() -> None:
    report = pulled(make.huge())
    findings = seen(report.verdict.findings)
    text = render_comment(
        replace(report, state_line=encode(CommentState(True, findings)))
    )
    assert length(text) <= COMMENT_LIMIT
    state = decode(text)
    assert state is not None and len(state.findings) > 100


def test_an_analysis_that_broke_at_once_says_so() -> None:
    text = render_broken(
        "default", BotError("models/a.mlir: no MLIR\n@octocat <b> `x`"), RUN, STATE
    )
    assert text == (
        f"{MARKER}\n{STATE}\n⚠️ **Code size: unknown** — the analysis broke:"
        " ``models/a.mlir: no MLIR @octocat <b> `x` ``\n\nNothing was compared, so the"
        " result is unknown.\n\n<sub>[workflow"
        " run](<https://github.com/octo/repo/actions/runs/7>)</sub>\n"
    ).replace("``models", "`` models")
    assert "`no reason is known`" in render_broken("nightly", BotError(""), ())
    assert length(render_broken("default", BotError("@" * 100_000), ())) < 2_000


@pytest.mark.parametrize("text", make.HOSTILE)
def test_what_broke_is_harmless(text: str) -> None:
    assert_harmless(render_broken("default", BotError(text), ((text, text),)))


@pytest.mark.parametrize("cells", [800, 5_000])
def test_many_cells_fit_and_say_what_is_missing(cells: int) -> None:
    report = make.huge(cells)
    text = render_comment(report)
    assert_sound(report, text)
    assert "<sub>Shortened to fit. Left out here: " in text
    assert "the job summary, report.html and report.json have everything.</sub>" in text


def test_warnings_that_the_fold_of_findings_has_are_not_left_out() -> None:
    """The comment said that 16 findings are left out, and had all of them."""
    report = make.huge(800)
    warnings = [
        finding
        for finding in report.verdict.findings
        if finding.metric == "artifact_bytes"
    ]
    findings = tuple(
        replace(finding, level="warn", limit=f"{place}KiB")
        for place, finding in enumerate(warnings[:20])
    )
    verdict = Verdict("warn", findings)
    text = render_comment(replace(report, verdict=verdict))
    assert "…and 16 more findings." in text
    folded = text.partition("<summary>Findings: 20 ")[2]
    assert all(finding.key.model in folded for finding in findings)
    (left_out,) = re.findall("Left out here: (.*);", text)
    assert "finding" not in left_out


def test_the_budget_holds_for_long_hostile_text() -> None:
    texts = tuple(
        f"{index}{word * 300}"
        for index, word in enumerate(("`", "|", "\\|", "😀", "<!--", "&", "@a ", "#1 "))
    )
    report = make.hostile(texts)
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)


@settings(max_examples=25)
@given(snapshots(), snapshots(), st.text(max_size=60))
def test_any_report_fits_and_is_harmless(
    base: Snapshot, head: Snapshot, note: str
) -> None:
    report = make.report(base, head, (note,))
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)


@settings(max_examples=15)
@given(st.lists(st.text(max_size=400), min_size=6, max_size=12, unique=True))
def test_any_words_fit_and_are_harmless(texts: list[str]) -> None:
    report = make.hostile(tuple(texts))
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)


@pytest.mark.parametrize(
    "report_id", ["", "a b", "x-->", "a--b", "-a", "é", "x" * 65, "a\n"]
)
def test_a_report_id_cannot_break_out_of_the_marker(report_id: str) -> None:
    with pytest.raises(InputError, match="is not a report id"):
        render_comment(replace(make.small(), report_id=report_id))


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_user_can_replace_the_template(tmp_path: Path) -> None:
    write(
        tmp_path,
        "comment.md.j2",
        "{{ marker }}\nMine: {{ blocks[0].blocks[1].said|phrase }}",
    )
    assert (
        render_comment(make.none(), tmp_path)
        == f"{MARKER}\nMine: ✅ **Code size: nothing changed** · 104 of 104 builds"
        " bit-identical\n"
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
        "{{ marker }}\n{% for span in blocks[0].blocks[1].said %}{{ span.text }}{%"
        " endfor %}{% for one in blocks if one.kind == 'fold' %}{% for row in"
        " one.blocks if row.kind == 'table' %}{% for cells in row.texts %}\n{% for cell"
        " in cells %}{% for span in cell %}{{ span.text }} {% endfor %}{% endfor %}{%"
        " endfor %}{% endfor %}{% endfor %}",
    )
    text = render_comment(make.hostile(), tmp_path)
    assert "octocat" in text
    assert_harmless(text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "comment",
            b"{{ marker }}\n{% if %}",
            r"comment\.md\.j2:2: template does not parse",
        ),
        (
            "comment",
            b"{{ marker }}\n\n{{ blocks.nothing }}",
            r"comment\.md\.j2:3: template failed: .*nothing",
        ),
        (
            "comment",
            b"{{ marker }}\n{{ 1 / 0 }}",
            r"comment\.md\.j2:2: template failed: ZeroDivisionError",
        ),
        (
            "comment",
            b"{{ marker }}\n{{ blocks.__class__.__mro__ }}",
            r"comment\.md\.j2:2: template failed: .*unsafe",
        ),
        (
            "comment",
            b"{{ marker }}\n{% include 'gone.j2' %}",
            r"comment\.md\.j2:2: template failed: .*gone\.j2",
        ),
        (
            "comment",
            b"{{ marker }}\n{% include '../../etc/passwd' %}",
            r"comment\.md\.j2:2: template failed",
        ),
        (
            "comment",
            b"{{ marker }}{{ 'x'|amount }}",
            r"comment\.md\.j2:1: template failed: ValueError",
        ),
        (
            "comment",
            b"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            r"comment\.md\.j2:1: .*: RecursionError",
        ),
        (
            "comment",
            b"no marker",
            (
                r"comment\.md\.j2: the comment does not begin with its hidden marker"
                r" \(print"
            ),
        ),
        ("comment", b"\xff\xfe\x00", "template cannot be read"),
        ("report.verdict", b"\n\n{% nonsense %}", r"report\.verdict\.md\.j2:3"),
    ],
)
def test_a_broken_template_is_named_with_its_line(
    tmp_path: Path, name: str, text: bytes, message: str
) -> None:
    (tmp_path / f"{name}.md.j2").write_bytes(text)
    with pytest.raises(TemplateError, match=message):
        render_comment(make.small(), tmp_path)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="is not a directory"):
        render_comment(make.small(), tmp_path / "gone")


def test_a_template_that_never_fits_gives_way_to_the_default_one(
    tmp_path: Path,
) -> None:
    write(tmp_path, "comment.md.j2", "{{ marker }}{{ '12345' * 20000 }}")
    assert render_comment(make.small(), tmp_path) == render_comment(make.small())


# Why.


def test_the_cause_of_a_dispatch_is_reported_where_it_is_not_the_cells() -> None:
    report = make.explained_small()
    ((key, explanation),) = report.explanations.items()
    first, *remaining = explanation.dispatches
    mixed = replace(
        explanation,
        dispatches=(
            replace(first, cause="codegen", note="8 instructions more"),
            *remaining,
        ),
    )
    text = render_comment(replace(report, explanations={key: mixed}))
    assert "| <sub>dispatch</sub> | <sub>cause</sub> | <sub>component</sub> |" in text
    assert "- `main_dispatch_0_matmul_128x768x768_f32`: 8 instructions more" in text


def test_explanations_give_way_first() -> None:
    models = make.explained(make.huge(1_600))
    text = render_comment(models)
    assert_sound(models, text)
    assert text.count("the sides first differ in ") <= COMMENT.whys
    assert "more explained builds" in text
    assert "Not explained: " in text, "causes stay"


@pytest.mark.parametrize("word", make.HOSTILE)
def test_the_words_of_an_explanation_are_harmless(word: str) -> None:
    report = make.explained(make.many(), word)
    text = render_comment(report)
    assert_sound(report, text)
    assert_harmless(text)
    assert "<summary>Why: " in text


@pytest.mark.slow
@pytest.mark.parametrize("word", make.HOSTILE)
def test_the_words_of_an_explanation_are_harmless_in_the_summary(word: str) -> None:
    assert_harmless(render_summary(make.explained(make.many(), word)))


# The job summary: the comment with more room.


def test_golden_of_the_summary() -> None:
    check_golden("small.summary.md", render_summary(make.small()))


@pytest.mark.parametrize("name", ["many", "none", "broken", "hostile"])
def test_it_is_harmless_and_leaves_nothing_out(name: str) -> None:
    text = render_summary(getattr(make, name)())
    assert_harmless(text)
    assert "Shortened to fit" not in text
    assert "<!--" not in text


@pytest.mark.slow
def test_it_fits_with_very_many_cells() -> None:
    text = render_summary(make.huge())
    assert 300_000 < len(text.encode()) <= SUMMARY_LIMIT_BYTES
    assert "report.html and report.json have everything" in text


def test_it_fits_with_long_hostile_text() -> None:
    texts = tuple(
        f"{index}{word * 400}"
        for index, word in enumerate(("`", "|", "\\|", "😀", "&", "@a ", "#1 ") * 6)
    )
    text = render_summary(make.hostile(texts))
    assert len(text.encode()) <= SUMMARY_LIMIT_BYTES
    assert "\n❌ **Code size: " in f"\n{text}"


# The check run: conclusion, title, summary within the limit, annotations on lines that
# are there.

CONFIG = "configs/code-size.yml"
PATHS = {"bert": "models/bert.mlir", "mobilenet": "models/mobilenet.mlir"}


def check(report: Report, paths: dict[str, str] | None = None) -> CheckRun:
    return check_run(
        report, config_path=CONFIG, model_paths=PATHS if paths is None else paths
    )


def test_the_conclusion_is_the_verdict() -> None:
    small = pulled(make.small())
    for report, conclusion in (
        (make.none(), "success"),
        (make.usual(), "success"),
        (make.partly(), "neutral"),
        (small, "failure"),
        (accepted(small, 2), "neutral"),
        (accepted(small, 1), "failure"),
        (replace(make.none(), broke="a shard was lost"), "failure"),
    ):
        assert check(report).conclusion == conclusion


def test_name_and_title() -> None:
    check_run = check(make.small())
    assert (check_run.name, check_run.title) == (
        "code size",
        (
            "❌ Code size: 1 of 4 builds newly failing · 1 of 4 builds fails the check"
            " · +33,552 B (+8.7 %) over the 3 builds compared · 1 larger"
        ),
    )
    assert check(replace(make.small(), report_id="nightly")).name == "code size nightly"
    assert check(replace(make.none(), broke="it\nbroke")).title.startswith(
        "the analysis broke: it broke; ⚪ Code size: "
    )


def test_the_summary_is_the_job_summary_within_the_limit() -> None:
    assert "**Fails the check** (1 of 4 builds)" in check(make.small()).summary
    assert "Shortened to fit" not in check(make.small()).summary
    huge = check(make.huge()).summary
    assert 10_000 < length(huge) <= CHECK_SUMMARY_LIMIT
    assert "the job summary, report.html and report.json have everything" in huge


def test_a_finding_is_reported_on_its_model() -> None:
    broken, grown = check(make.small()).annotations
    assert (broken.path, broken.line, broken.level, broken.title, broken.message) == (
        "models/bert.mlir",
        1,
        "failure",
        "Code size: newly failing",
        "bert on vmvx: newly failing: does not compile (exit code 1)",
    )
    assert (grown.path, grown.title, grown.message) == (
        "models/mobilenet.mlir",
        "Code size rule: code size",
        (
            "code size, mobilenet on x86_64: 50,438 → 83,990 B (+66.5 %); limit: the"
            " larger of +4 KiB and +5 %"
        ),
    )


def test_without_the_model_a_finding_is_reported_on_its_rule() -> None:
    # the state has no line of the configuration
    (annotation,) = check(make.small(), {}).annotations
    assert (annotation.path, annotation.line, annotation.title) == (
        CONFIG,
        12,
        "Code size rule: code size",
    )
    assert not check_run(make.small(), config_path="", model_paths={}).annotations


def test_a_warning_warns_and_an_accepted_finding_is_silent() -> None:
    warned = replace(
        make.small(), verdict=judge(make.small().deltas, [], {"newly-broken": "warn"})
    )
    assert {annotation.level for annotation in check(warned).annotations} == {"warning"}
    assert not check(make.usual(), {}).annotations, "what base had is no news"
    assert not check(accepted(make.small(), 2)).annotations
    assert len(check(accepted(make.small(), 1)).annotations) == 1


def test_cells_that_say_the_same_are_reported_together_worst_first() -> None:
    report = make.many()
    notes = check(report, {}).annotations
    assert [note.level for note in notes] == sorted(
        (note.level for note in notes), key=["failure", "warning"].index
    )
    assert len({(note.path, note.line, note.title) for note in notes}) == len(notes)
    line_count = sum(note.message.count("\n") + 1 for note in notes)
    assert line_count <= len(report.verdict.news) < len(
        report.verdict.findings
    ) and any("\n" in note.message for note in notes)


def test_very_many_are_capped() -> None:
    report = make.huge()
    paths = model_paths(report)
    check_run = check(report, paths)
    assert len(paths) > ANNOTATIONS_LIMIT == len(check_run.annotations)
    everything = check(report, {}).annotations
    assert everything[0].message.splitlines()[-1].endswith("more findings")
    assert max(annotation.message.count("\n") for annotation in everything) == 20


def test_hostile_words_are_plain_text_in_single_lines() -> None:
    report = make.hostile()
    check_run = check(report, {delta.key.model: "m.mlir" for delta in report.deltas})
    assert (
        check_run.annotations
        and check_run.title.isprintable()
        and len(check_run.title) <= 255
    )
    assert_harmless(check_run.summary)
    for annotation in check_run.annotations:
        assert (
            annotation.title.isprintable()
            and len(annotation.title) <= 255
            and annotation.path == "m.mlir"
        )
        assert (
            annotation.message.replace("\n", "").isprintable()
            and annotation.message.count("\n") <= 20
        )
        assert len(annotation.message.encode()) < 64 * 1024


def commanded(command: str) -> Report:
    report = make.small()
    cells = tuple(
        replace(cell, command=command)
        for cell in report.head.cells
        if cell.key == CellKey("bert", "vmvx")
    )
    return replace(
        report, head=replace(report.head, cells=cells), verdict=Verdict("pass")
    )


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("iree-compile - -o bert.vmfb < models/bert.mlir", "models/bert.mlir"),
        ("iree-compile - -o bert.vmfb < 'my models/bert.mlir'", "my models/bert.mlir"),
        (
            (
                "iree-import-onnx models/b.onnx -o b.mlir && iree-compile - -o b.vmfb <"
                " b.mlir"
            ),
            "models/b.onnx",
        ),
        ("iree-compile - < /etc/passwd", None),
        ("iree-compile - < ../bert.mlir", None),
        ("iree-compile - < a/../../bert.mlir", None),
        ("iree-compile - < ./bert.mlir", None),
        ("iree-compile - < a//b.mlir", None),
        ("iree-compile - < 'a\nb.mlir'", None),
        ("iree-compile - < 'a\x1b[31m.mlir'", None),
        ("iree-compile - < 'a\\b.mlir'", None),
        ("iree-compile - < https://example.com/b.mlir", None),
        ("iree-compile - <", None),
        ("iree-compile - < ''", None),
        ("iree-compile - < 'unclosed", None),
        ("iree-import-onnx", None),
        ("", None),
        (f"iree-compile - < {'a' * 500}", None),
    ],
)
def test_only_files_inside_the_repository_count(command: str, path: str | None) -> None:
    assert model_paths(commanded(command)).get("bert") == path


@given(st.text())
def test_any_command_is_survived(command: str) -> None:
    for path in model_paths(commanded(command)).values():
        assert (
            path.isprintable()
            and not path.startswith("/")
            and ".." not in path.split("/")
        )


def test_the_check_of_an_analysis_that_broke_at_once_fails() -> None:
    check_run = broken_check(
        "default", "main", BotError("no MLIR\n@octocat" + "x" * 900), RUN[0][1]
    )
    assert (check_run.name, check_run.conclusion, check_run.annotations) == (
        "code size (main)",
        "failure",
        (),
    )
    assert (
        check_run.title.startswith(
            "Code size: unknown, the analysis broke: no MLIR @octocatx"
        )
        and len(check_run.title) == 255
    )
    assert check_run.summary.startswith(
        "⚠️ **Code size: unknown** — the analysis broke: `no MLIR @octocatx"
    )
    assert (
        f"[workflow run](<{RUN[0][1]}>)" in check_run.summary
        and "<!--" not in check_run.summary
    )
    assert (
        "workflow run" not in broken_check("nightly", "main", BotError("x"), "").summary
    )
