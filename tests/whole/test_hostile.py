"""Whatever an artifact says, it stays text: for Markdown, for GitHub, for the runner's log and for its outputs."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_stage import Ran
from github_runner import MARKER
from harmless import JOINER, LINKS, nasty
from hypothesis import HealthCheck, given, settings
from markdown_it import MarkdownIt
from markdown_it.token import Token
from posting_stage import BASE, HEAD, MERGE, NUMBER, Stage, sides, zipped
from replacing import replace
from report_factory import HOSTILE, explained, failed, grown, hostile
from strategies import plain_snapshot

from bot.config.configuration import load_config
from bot.core.delta import STATES
from bot.core.program import Family, Program, Site, Source
from bot.core.report import Baseline
from bot.core.snapshot import Cell, CompilerInfo, Dispatch, Snapshot, SourceInfo
from bot.github.delivering import deliver
from bot.github.destination import Destination
from bot.github.runner import log_safe
from bot.github.services import Services
from bot.study.comparison import reported

RUNNER = (
    "::error::boom",
    "  ::set-output name=verdict::pass",
    "\n::add-mask::a\r::stop-commands::x",
    "\x1b[31m::warning file=a::b\x1b[0m",
    "##[error]boom",
    "text ##[stop-commands]x",
    "verdict<<EOF\npass\nEOF",
    "EOF",
    "verdict=pass",
    "-->",
    "<!-- code-size-bot-state:1:AAAA -->",
    f"{MARKER}\n<!-- code-size-bot-state:1:AAAA -->",
    "'); echo $(id) `id` ; \"",
    "[text](https://evil.example)",
    "[text]: https://evil.example",
    "<https://evil.example>",
    "1. a\n2. b",
    "=====",
    "| a | b |\n|---|---|",
)
WORDS = tuple(word for word in HOSTILE if word and "\ud800" not in word) + RUNNER
URL = re.compile(r"https://github\.example/octo/repo/actions/runs/\d+")
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_HIDDEN = re.compile(
    rf"\A{MARKER}\n(?:<!-- code-size-bot-state:1:[A-Za-z0-9+/]+=* -->\n)?"
)
_OUR_TAGS = re.compile(r"</?(?:details|summary|sub|code|br)>")
_COMMAND = re.compile(r"^[^!-~]*::|##\[", re.MULTILINE)
_FAILED = "m/{}.mlir:1:2: error: {}"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage.opened(tmp_path) as opened:
        yield opened


def assert_plain(markdown: str) -> None:
    """Of links only ours.

    No image; of HTML only our tags and, at the top, the hidden lines; nobody is
    mentioned.
    """
    leaves = list(_leaves(_HIDDEN.sub("", markdown)))
    assert "<!--" not in _HIDDEN.sub("", markdown)
    assert not {leaf.type for leaf in leaves} & {"image", "s_open"}
    links = [str(leaf.attrs["href"]) for leaf in leaves if leaf.type == "link_open"]
    assert all(URL.fullmatch(link) for link in links)
    markup = "\n".join(
        leaf.content for leaf in leaves if leaf.type in ("html_block", "html_inline")
    )
    bare = _OUR_TAGS.sub("", re.sub(r"<code>[^<\n]*</code>", "", markup))
    assert "<" not in bare
    texts = "\n".join(
        [html.unescape(bare), *(leaf.content for leaf in leaves if leaf.type == "text")]
    )
    assert not LINKS.search(texts), LINKS.search(texts)
    assert not [
        char
        for char in markdown
        if not char.isprintable() and char not in ("\n", JOINER)
    ]


def _leaves(markdown: str) -> Iterator[Token]:
    for token in PARSER.parse(markdown):
        yield token
        yield from token.children or []


def assert_quiet_log(ran: Ran) -> None:
    """No line of it is a command of the runner."""
    # as bot.cli.main prints it: see test_cli.py
    log = log_safe(f"{ran.said}\ncode-size-bot: {ran.error}")
    assert not [
        line for line in f"{ran.printed}\n{log}".splitlines() if _COMMAND.search(line)
    ]


def assert_plain_everywhere(stage: Stage, ran: Ran) -> None:
    """Comment, summary, check run and outputs."""
    assert_plain(stage.body)
    assert_plain(ran.summary)
    (check,) = stage.hub.check_runs
    assert_plain(check["output"]["summary"])
    titles = [
        check["output"]["title"],
        *(note["title"] for note in check["annotations"]),
    ]
    assert all(title.isprintable() for title in titles)
    assert all(
        line.isprintable()
        for note in check["annotations"]
        for line in note["message"].split("\n")
    )
    assert set(ran.outputs) == {
        "verdict",
        "findings",
        "report-path",
        "comment-url",
        *STATES,
    }
    assert (
        ran.outputs["verdict"] in ("pass", "warn", "fail")
        and ran.outputs["findings"].isdigit()
    )


def hostile_sides() -> tuple[Snapshot, Snapshot]:
    snapshots = hostile(WORDS)
    return (
        replace(snapshots.base, source=SourceInfo(BASE, WORDS[0])),
        replace(snapshots.head, source=SourceInfo(MERGE, WORDS[2])),
    )


def test_every_field_at_once(stage: Stage) -> None:
    stage.upload(
        sides(
            *hostile_sides(), comment_md="\n".join(WORDS), summary_md="\n".join(WORDS)
        )
    )
    ran = stage.post()
    assert (ran.code, ran.error) == (0, "") and ran.outputs["verdict"] == "fail"
    assert_plain_everywhere(stage, ran)
    assert_quiet_log(ran)
    assert stage.state.alarming and len(stage.hub.check_runs[0]["annotations"]) <= 200


def one(word: str, *where: str) -> tuple[Snapshot, Snapshot]:
    """Two sides with one hostile text, in these places."""
    name = word or "x"
    model = name if "model" in where else "bert"
    target = name if "target" in where else "vmvx"
    snapshot = plain_snapshot((model, target, "ok"), ("other", target, "ok"))
    flags, notes = ((word,) if place in where else () for place in ("flag", "note"))
    info = (
        CompilerInfo(word, word, "c" * 64, word)
        if "compiler" in where
        else snapshot.compiler
    )
    base = replace(snapshot, source=SourceInfo(BASE), compiler=info)
    cells = [grown(cell, artifact_bytes=900_000) for cell in snapshot.cells]
    if "diagnostic" in where:
        cells[0] = failed(cells[0], _FAILED.format(model, word), "compile")
    if "dispatch" in where:
        base = replace(
            base, cells=tuple(made_of(cell, word, "8x32") for cell in base.cells)
        )
        cells = [made_of(cell, word, "8x16") for cell in cells]
    if "command" in where:
        cells = [replace(cell, command=f"iree-compile - < {word}") for cell in cells]
    return base, replace(
        base, source=SourceInfo(MERGE), cells=tuple(cells), flags=flags, notes=notes
    )


def made_of(cell: Cell, word: str, tiles: str) -> Cell:
    """The cell with one dispatch, of which every text is the hostile one."""
    if not cell.measured:
        return cell
    dispatches = tuple(
        Dispatch(
            executable=f"{word}{i}",
            name=f"{word}{i}",
            kind=word,
            sites=1,
            code_bytes=900 + len(tiles),
            stack_bytes=64,
            code=None,
            strategy=f"{word} {tiles}",
        )
        for i in range(2)
    )
    names = tuple(dispatch.name for dispatch in dispatches)
    sources = tuple(Source(name, "a" * 16, "a" * 16) for name in names)
    program = Program({}, sources, tuple(Site(name, f"{word}.x") for name in names))
    return replace(
        cell,
        dispatches=dispatches,
        program=program,
        families=(Family("constants", names, (word,)),),
    )


PLACES = (
    "model",
    "target",
    "flag",
    "note",
    "compiler",
    "diagnostic",
    "command",
    "dispatch",
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(word=nasty.filter(lambda text: "\ud800" not in text))
@pytest.mark.parametrize("where", PLACES)
def test_any_text_in_any_place(tmp_path_factory: Any, where: str, word: str) -> None:
    word = word.encode("utf-8", "ignore").decode()
    with Stage.opened(tmp_path_factory.mktemp("any")) as stage:
        stage.upload(sides(*one(word, where)))
        ran = stage.post()
        assert (ran.code, ran.error) == (0, "")
        assert_plain_everywhere(stage, ran)
        assert_quiet_log(ran)


@pytest.mark.parametrize("word", WORDS)
def test_the_words_of_an_explanation_stay_text(stage: Stage, word: str) -> None:
    def story(services: Services) -> int:
        config = load_config()
        report = reported(config, *one("bert", "flag"), Baseline("a test", BASE))
        to = Destination(NUMBER, HEAD, 500, config, base_ref="main")
        return deliver(explained(report, word), services, to)

    ran = stage.run(story, "watch", {})
    assert "Why: 2 changed builds" in stage.body
    assert_plain_everywhere(stage, ran)
    assert_quiet_log(ran)


def test_a_run_that_may_not_write_asks_for_nothing_and_has_a_quiet_log(
    stage: Stage,
) -> None:
    def story(services: Services) -> int:
        config = load_config()
        report = reported(config, *hostile_sides(), Baseline("a test", BASE))
        to = Destination(NUMBER, HEAD, 500, config, base_ref="main")
        return deliver(
            report,
            replace(services, context=replace(services.context, read_only=True)),
            to,
        )

    ran = stage.run(story, "watch", {})
    assert_quiet_log(ran)
    assert stage.hub.traffic == []


@pytest.mark.parametrize("word", [word for word in WORDS if len(word) < 200])
def test_what_is_refused_is_refused_in_plain_words(stage: Stage, word: str) -> None:
    stage.upload(zipped({word.replace("\x00", ""): "{}"}))
    ran = stage.post()
    assert ran.code == 2 and "\n" not in ran.error and ran.error.isprintable()
    assert_plain(stage.body)
    assert_plain(ran.summary)
    assert set(ran.outputs) == {"verdict", "report-path", "comment-url"}
    (check,) = stage.hub.check_runs
    assert check["output"]["title"].isprintable()
    assert_plain(check["output"]["summary"])
    assert_quiet_log(ran)


@pytest.mark.parametrize("field", ["schema", "status", "@everyone ##[error] ::error::"])
def test_json_that_is_refused_is_refused_in_plain_words(
    stage: Stage, field: str
) -> None:
    stage.upload(
        zipped(
            {
                "base.json": "{}",
                "head.json": "{}".replace("}", f'"{field}": "@everyone ##[error]x"}}'),
            }
        )
    )
    ran = stage.post()
    assert ran.code == 2
    assert_plain(stage.body)
    assert_quiet_log(ran)
