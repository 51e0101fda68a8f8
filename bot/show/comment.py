"""A report where GitHub shows it, each within GitHub's limit: comment, job summary, check run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup
from msgspec import structs

from bot.core.publication import Annotation, AnnotationLevel, CheckRun, Conclusion
from bot.core.report import Report, report_lines
from bot.core.snapshot import Snapshot, lines, rows_of
from bot.errors import BotError, InputError, TemplateError
from bot.show.alarms import finding_words
from bot.show.blocks import Limits, by, plain
from bot.show.escape import clean, clip
from bot.show.facts import Facts, build_facts
from bot.show.filters import plural
from bot.show.headline import headline
from bot.show.page import html_pieces
from bot.show.renderers import draw, first_fitting, length, load, utf8_bytes
from bot.show.report import report_blocks
from bot.system.files import write_atomically

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in a comment; counted here as UTF-16 units, never fewer than characters."""
SUMMARY_LIMIT_BYTES = (
    1024 * 1024
)  # What GitHub takes as the summary of one step, in UTF-8
# Characters that GitHub takes as the summary of a check run; counted as UTF-16 units
CHECK_SUMMARY_LIMIT = 65_535
ANNOTATIONS_LIMIT = 200  # More than these nobody reads; GitHub takes 50 a call

_WIDTH, _SUMMARY_WIDTH = 128, 165
TIERS = (
    Limits(
        grid_models=40,
        grid_width=_WIDTH,
        failures=6,
        lines=3,
        alarms=4,
        findings=30,
        changed=0,
        names=24,
        commands=2,
        causes=4,
        whys=8,
        dispatches=4,
        diff_lines=10,
        details=False,
    ),
    Limits(
        grid_models=40,
        grid_width=_WIDTH,
        failures=6,
        lines=3,
        alarms=4,
        findings=30,
        changed=0,
        names=24,
        commands=2,
        causes=4,
        whys=4,
        dispatches=3,
        diff_lines=0,
        details=False,
    ),
    Limits(
        grid_models=30,
        grid_width=_WIDTH,
        failures=4,
        lines=3,
        alarms=4,
        findings=20,
        changed=0,
        names=12,
        commands=2,
        causes=4,
        whys=2,
        dispatches=3,
        details=False,
    ),
    Limits(
        grid_models=20,
        grid_width=_WIDTH,
        failures=4,
        lines=3,
        alarms=4,
        findings=12,
        changed=0,
        names=12,
        commands=2,
        causes=4,
        details=False,
    ),
    Limits(
        grid_models=12,
        grid_width=_WIDTH,
        failures=2,
        lines=3,
        alarms=4,
        findings=8,
        changed=0,
        names=6,
        commands=2,
        causes=4,
        details=False,
    ),
    Limits(
        grid_models=6,
        grid_width=_WIDTH,
        failures=1,
        lines=2,
        alarms=3,
        findings=4,
        changed=0,
        names=3,
        commands=1,
        causes=2,
        details=False,
    ),
)
SUMMARY_TIERS = (
    Limits(
        grid_models=400,
        grid_width=_SUMMARY_WIDTH,
        failures=40,
        lines=20,
        alarms=20,
        findings=2_000,
        changed=4_000,
        names=1_000,
        commands=400,
        causes=12,
        whys=80,
        dispatches=20,
        diff_lines=60,
    ),
    Limits(
        grid_models=100,
        grid_width=_SUMMARY_WIDTH,
        failures=20,
        lines=12,
        alarms=20,
        findings=500,
        changed=1_500,
        names=300,
        commands=100,
        causes=12,
        whys=20,
        dispatches=10,
        diff_lines=20,
    ),
    Limits(
        grid_models=40,
        grid_width=_SUMMARY_WIDTH,
        failures=8,
        lines=8,
        alarms=10,
        findings=100,
        changed=300,
        names=60,
        commands=20,
    ),
    Limits(
        grid_models=6,
        grid_width=_SUMMARY_WIDTH,
        failures=1,
        lines=2,
        alarms=3,
        findings=4,
        changed=4,
        names=3,
        commands=1,
        causes=2,
    ),
)
_REPORT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_BROKE_CHARS, _TITLE_CHARS, _PATH_CHARS, _MESSAGE_LINES = 1_000, 255, 400, 20
_STATE_LINE = re.compile(r"<!-- code-size-bot-state:[A-Za-z0-9+/=:]+ -->")
_FILES, _WHERE = (
    "report.html and report.json",
    "the job summary, report.html and report.json",
)
_CONCLUSIONS: Mapping[str, Conclusion] = {
    "pass": "success",
    "warn": "neutral",
    "fail": "failure",
    "unknown": "failure",
}
_LEVELS: Mapping[str, AnnotationLevel] = {"warn": "warning", "fail": "failure"}
Links = Sequence[tuple[str, str]]  # Label and URL


# Comment and summary.


def render_comment(report: Report, templates_dir: Path | None = None) -> str:
    """The Markdown of the comment, at most `COMMENT_LIMIT` long.

    First the marker, then the state line if there is one.

    `templates_dir`: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work, or does not begin with the marker.
    """
    head = _head(report.report_id, report.state_line)

    def require_head(text: str, where: str) -> None:
        if not text.startswith(head):
            hint = "print {{ marker }} first, or the comment cannot be found again"
            raise TemplateError(
                "the comment does not begin with its hidden marker",
                where=where,
                hint=hint,
            )

    return _fitting(
        "comment.md.j2",
        report=report,
        tiers=TIERS,
        limit=COMMENT_LIMIT,
        templates_dir=templates_dir,
        check=require_head,
        marker=head,
    )


def render_summary(report: Report, templates_dir: Path | None = None) -> str:
    """The job summary: the comment with more room, in UTF-8.

    Raises TemplateError as the comment.
    """
    limit = SUMMARY_LIMIT_BYTES
    return _fitting(
        "summary.md.j2",
        report=report,
        tiers=SUMMARY_TIERS,
        limit=limit,
        templates_dir=templates_dir,
        where=_FILES,
        size=utf8_bytes,
    )


def _fitting(
    template: str,
    report: Report,
    tiers: Sequence[Limits],
    limit: int,
    templates_dir: Path | None,
    where: str = _WHERE,
    size: Callable[[str], int] = length,
    check: Callable[[str, str], None] = lambda _text, _file: None,
    **values: Any,
) -> str:
    """The first tier that fits.

    A user's template of which none does gives way to the default one.
    """
    facts = build_facts(report)

    def drawn_with(limits: Limits) -> Mapping[str, Any]:
        blocks = report_blocks(facts, limits, where)
        return {"answer": "report", "blocks": blocks, "page": report.page, **values}

    return first_fitting(
        template,
        tiers=tiers,
        values=drawn_with,
        fits=lambda text: size(text) <= limit,
        templates_dir=templates_dir,
        check=check,
    )


def marker(report_id: str) -> str:
    """The hidden text by which the comment is found again.

    Raises InputError for an id that could break out of it.
    """
    if not _REPORT_ID.fullmatch(report_id) or "--" in report_id:
        raise InputError(
            f"{report_id!r} is not a report id",
            where="report_id",
            hint="use letters, digits, dots and single dashes",
        )
    return f"<!-- code-size-bot:{report_id} -->"


def _head(report_id: str, state_line: str) -> Markup:
    """The hidden lines.

    A state line is one HTML comment without an end inside, or it is left out.
    """
    lines = [
        marker(report_id),
        *([state_line] if _STATE_LINE.fullmatch(state_line) else []),
    ]
    return Markup("\n".join(lines))  # noqa: S704 - both are matched against what may stand in an HTML comment


def render_broken(
    report_id: str, error: BotError, links: Links, state_line: str = ""
) -> str:
    """The comment of an analysis that broke before there was a report.

    `error`: what broke; `links`: label and URL; only https is drawn as a link;
    `state_line`: what the comment remembers, from the comment before.
    """
    return _draw_broken(error, links, _head(report_id, state_line))


def _draw_broken(error: BotError, links: Links, marker: str = "") -> str:
    what = clip(clean(error.line), _BROKE_CHARS) or "no reason is known"
    return draw(load("broken.md.j2", None), what=what, links=links, marker=marker)


# The check run of a commit: verdict, summary, and annotations on the lines of the
# repository that findings concern.


def check_run(
    report: Report,
    *,
    config_path: str,
    model_paths: Mapping[str, str],
    base_ref: str = "",
) -> CheckRun:
    """The check run of a report, drawn by the packaged templates.

    `base_ref`: the branch that the pull request goes to; `config_path`: of the
    configuration, relative to the repository; empty where it is not in it;
    `model_paths`: model → its file, relative to the repository.
    """
    facts = build_facts(report)
    broke = f"the analysis broke: {clean(report.broke)}; " if report.broke else ""
    return CheckRun(
        name=check_name(report.report_id, base_ref),
        conclusion="failure" if report.broke else _CONCLUSIONS[report.verdict.status],
        title=clip(clean(broke + plain(headline(facts))), _TITLE_CHARS),
        summary=_fitting(
            "summary.md.j2",
            report=report,
            tiers=TIERS,
            limit=CHECK_SUMMARY_LIMIT,
            templates_dir=None,
        ),
        annotations=tuple(_merged(_annotations(facts, config_path, model_paths)))[
            :ANNOTATIONS_LIMIT
        ],
    )


def broken_check(report_id: str, base_ref: str, error: BotError, url: str) -> CheckRun:
    """The check run of an analysis that broke before there was a report.

    `error`: what broke; `url`: of the run; empty where there is none.
    """
    title = clip(
        clean(f"Code size: unknown, the analysis broke: {error.line}"), _TITLE_CHARS
    )
    links = [("workflow run", url)] if url else []
    return CheckRun(
        name=check_name(report_id, base_ref),
        conclusion="failure",
        title=title,
        summary=_draw_broken(error, links),
    )


def overruled_check(
    check: CheckRun, number: int, conclusion: Conclusion | None
) -> CheckRun:
    """The check run where another pull request has the same commit and base: a check belongs to the commit, so to both.

    `number`: of the other pull request; `conclusion`: its result, which is worse; None
    where it has none yet, and this one's must not stand for it.
    """
    says = {None: "has no result yet", "neutral": "warns"}.get(conclusion, "fails")
    why = f"#{number}, which has the same commit and base, {says}"
    summary = (
        f"A check belongs to a commit, and {why}. So this check shows the worst of"
        f" their results. If #{number} should not count, close it and run this workflow"
        f" again.\n\n{check.summary}"
    )
    title = clip(f"{why}; by itself: {check.title}", _TITLE_CHARS)
    return structs.replace(
        check, conclusion=conclusion or "failure", title=title, summary=summary
    )


def check_name(report_id: str, base_ref: str) -> str:
    """`code size (main)`, with the id before the base branch where there are several reports.

    A check belongs to a commit, which pull requests to several branches can have: what
    the protection of a branch requires must be about that branch. No id and no branch
    has a blank in it.
    """
    name = "code size" if report_id == "default" else f"code size {report_id}"
    return f"{name} ({base_ref})" if base_ref else name


def after_merge_name(report_id: str, branch: str) -> str:
    """`code size after merge (main)`: not the check that the protection of a branch requires.

    A commit of a merge queue becomes the commit of the branch, and has the other check already.
    """
    name = "code size" if report_id == "default" else f"code size {report_id}"
    return f"{name} after merge ({branch})"


def model_paths(report: Report) -> dict[str, str]:
    """Model → its file, as the commands of head name it.

    Models from outside of the repository are left out.
    """
    found: dict[str, str] = {}
    for cell in report.head.cells:
        if cell.command and cell.key.model not in found:
            found[cell.key.model] = _input_of(cell.command)
    return {model: path for model, path in found.items() if path}


def _input_of(command: str) -> str:
    """The model in a command, which an untrusted run may have written.

    Empty where that is not in the repository.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    at = (
        1
        if words[:1] == ["iree-import-onnx"]
        else words.index("<") + 1
        if "<" in words
        else len(words)
    )
    path = words[at] if at < len(words) else ""
    is_plain = (
        path.isprintable()
        and "\\" not in path
        and ":" not in path
        and len(path) <= _PATH_CHARS
    )
    is_inside = not {"", ".", ".."} & set(path.split("/")) and not path.startswith(
        ("-", "~")
    )
    return path if is_plain and is_inside else ""


def _annotations(
    facts: Facts, config_path: str, paths: Mapping[str, str]
) -> Iterator[Annotation]:
    """On the model's first line.

    Without a file of the model on the rule's line; none without either.
    """
    for finding in facts.report.verdict.news:
        path, line = paths.get(finding.key.model, ""), 1
        if not path:
            path, line = config_path, finding.line or 0
        if finding.accepted is None and path and line:
            state = facts.state_words[facts.deltas[finding.key].state]
            said = (
                f"Code size rule: {finding.rule}"
                if finding.metric
                else f"Code size: {state}"
            )
            message = clean(plain(finding_words(facts, finding)))
            yield Annotation(
                path=path,
                line=line,
                level=_LEVELS[finding.level],
                title=clip(clean(said), _TITLE_CHARS),
                message=message,
            )


def _merged(annotations: Iterator[Annotation]) -> Iterator[Annotation]:
    """One for every place and title, as bad as the worst of them; they come worst first."""
    for group in by(annotations, lambda one: (one.path, one.line, one.title)).values():
        lines = [one.message for one in group[:_MESSAGE_LINES]]
        more = (
            [f"and {plural(len(group) - len(lines), 'more finding')}"]
            if len(group) > len(lines)
            else []
        )
        yield structs.replace(group[0], message="\n".join([*lines, *more]))


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the contract's `snapshot.json`."""
    write_atomically(path, lines(rows_of(snapshot)))


def _content(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(1 << 20), b"")


def write_report(
    report: Report,
    templates: Path | None,
    out: Path,
    whole: Mapping[str, Path] | None = None,
) -> list[Path]:
    """The six files of the contract.

    `whole`: name of a snapshot's file → where it was read from, to be copied.
    """
    writers: dict[str, Callable[[], bytes | Iterable[bytes]]] = {
        "base.json": lambda: lines(rows_of(report.base)),
        "head.json": lambda: lines(rows_of(report.head)),
        "report.json": lambda: report_lines(report),
        "comment.md": lambda: render_comment(report, templates).encode(),
        "summary.md": lambda: render_summary(report, templates).encode(),
        "report.html": lambda: (
            piece.encode() for piece in html_pieces(report, templates)
        ),
    }
    for name, path in (whole or {}).items():
        writers[name] = partial(_content, path)
    for name, write in writers.items():
        write_atomically(out / name, write())
    return [out / name for name in writers]
