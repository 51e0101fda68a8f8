"""Write a report for GitHub, within its limits: comment, job summary, check run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup
from msgspec import structs

from bot.core.check_run import Annotation, AnnotationLevel, CheckRun, Conclusion
from bot.core.report import Report
from bot.core.report_json import report_lines
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import snapshot_lines
from bot.errors import BotError, InputError, TemplateError
from bot.show.blocks import by, plain
from bot.show.escape import clean, clip
from bot.show.facts import Facts, build_facts
from bot.show.filters import plural
from bot.show.finding_words import finding_words
from bot.show.headline import headline
from bot.show.page import html_pieces
from bot.show.renderers import draw, fitting_text, length, load, utf8_bytes
from bot.show.report import report_blocks, with_left_out
from bot.show.views import COMMENT, SUMMARY, View, as_asked
from bot.system.files import write_atomically

COMMENT_LIMIT = 65_536
"""Characters that GitHub takes in a comment.

They are counted here as UTF-16 units, which are never fewer than characters.
"""
SUMMARY_LIMIT_BYTES = 1024 * 1024
"""The limit of GitHub for the summary of one step, in UTF-8."""
CHECK_SUMMARY_LIMIT = 65_535
"""The limit of GitHub for the summary of a check run, in UTF-16 units."""
ANNOTATIONS_LIMIT = 200
"""Nobody reads more annotations than these; GitHub takes 50 a call."""

_REPORT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_BROKE_CHARS = 1_000
_TITLE_CHARS = 255
_PATH_CHARS = 400
_MESSAGE_LINES = 20
_STATE_LINE = re.compile(r"<!-- code-size-bot-state:[A-Za-z0-9+/=:]+ -->")
_FILES = "report.html and report.json"
_WHERE = "the job summary, report.html and report.json"
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
    """Return the Markdown of the comment, at most `COMMENT_LIMIT` long.

    It begins with the marker, then the state line if there is one.

    `templates_dir`: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work, or does not begin with the marker.
    """
    head = _head(report.report_id, report.state_line)
    text = _fitting(
        "comment.md.j2",
        report=report,
        view=COMMENT,
        limit=COMMENT_LIMIT,
        templates_dir=templates_dir,
        marker=head,
    )
    if not text.startswith(head):
        raise TemplateError(
            "the comment does not begin with its hidden marker",
            where=str(load("comment.md.j2", templates_dir).filename),
            hint="print {{ marker }} first, or the comment cannot be found again",
        )
    return text


def render_summary(report: Report, templates_dir: Path | None = None) -> str:
    """Return the job summary: the comment with more room, in UTF-8.

    Raises:
        TemplateError: as for the comment.
    """
    return _fitting(
        "summary.md.j2",
        report=report,
        view=SUMMARY,
        limit=SUMMARY_LIMIT_BYTES,
        templates_dir=templates_dir,
        where=_FILES,
        size=utf8_bytes,
    )


def _fitting(
    template: str,
    report: Report,
    view: View,
    limit: int,
    templates_dir: Path | None,
    where: str = _WHERE,
    size: Callable[[str], int] = length,
    **values: Any,
) -> str:
    """Return the text of the report, shortened until it fits.

    If no form fits with a user's template, the default template is used.
    """
    return fitting_text(
        template,
        report_blocks(build_facts(report), as_asked(view)),
        values=lambda blocks: {
            "answer": "report",
            "blocks": with_left_out(blocks, where),
            "page": report.page,
            **values,
        },
        limit=limit,
        size=size,
        templates_dir=templates_dir,
    )


def marker(report_id: str) -> str:
    """Return the hidden text by which the comment is found again.

    Raises:
        InputError: the id could break out of the HTML comment.
    """
    if not _REPORT_ID.fullmatch(report_id) or "--" in report_id:
        raise InputError(
            f"{report_id!r} is not a report id",
            where="report_id",
            hint="use letters, digits, dots and single dashes",
        )
    return f"<!-- code-size-bot:{report_id} -->"


def _head(report_id: str, state_line: str) -> Markup:
    """Return the hidden lines.

    A state line is left out unless it is one HTML comment without an end inside.
    """
    lines = [marker(report_id)]
    if _STATE_LINE.fullmatch(state_line):
        lines.append(state_line)
    # Both lines are matched against what may be in an HTML comment.
    return Markup("\n".join(lines))  # noqa: S704


def render_broken(
    report_id: str, error: BotError, links: Links, state_line: str = ""
) -> str:
    """Return the comment of an analysis that broke before there was a report.

    `error`: what broke; `links`: label and URL; only https is drawn as a link;
    `state_line`: the state in the comment before.
    """
    return _draw_broken(error, links, _head(report_id, state_line))


def _draw_broken(error: BotError, links: Links, marker: str = "") -> str:
    reason = clip(clean(error.line), _BROKE_CHARS) or "no reason is known"
    return draw(load("broken.md.j2", None), what=reason, links=links, marker=marker)


# The check run of a commit: verdict, summary, and annotations on the lines of the
# repository that findings concern.


def check_run(
    report: Report,
    *,
    config_path: str,
    model_paths: Mapping[str, str],
    base_ref: str = "",
) -> CheckRun:
    """Return the check run of a report, drawn by the packaged templates.

    `config_path`: the configuration, relative to the repository; empty if it is not in
    it; `model_paths`: model → its file, relative to the repository; `base_ref`: the
    branch that the pull request goes to.
    """
    facts = build_facts(report)
    title = plain(headline(facts))
    conclusion = _CONCLUSIONS[report.verdict.status]
    if report.broke:
        title = f"the analysis broke: {clean(report.broke)}; {title}"
        conclusion = "failure"
    summary = _fitting(
        "summary.md.j2",
        report=report,
        view=COMMENT,
        limit=CHECK_SUMMARY_LIMIT,
        templates_dir=None,
    )
    annotations = tuple(_merged(_annotations(facts, config_path, model_paths)))
    return CheckRun(
        name=check_name(report.report_id, base_ref),
        conclusion=conclusion,
        title=clip(clean(title), _TITLE_CHARS),
        summary=summary,
        annotations=annotations[:ANNOTATIONS_LIMIT],
    )


def broken_check(report_id: str, base_ref: str, error: BotError, url: str) -> CheckRun:
    """Return the check run of an analysis that failed before there was a report.

    `error`: the error; `url`: the address of the run; empty if there is none.
    """
    title = f"Code size: unknown, the analysis broke: {error.line}"
    links = [("workflow run", url)] if url else []
    return CheckRun(
        name=check_name(report_id, base_ref),
        conclusion="failure",
        title=clip(clean(title), _TITLE_CHARS),
        summary=_draw_broken(error, links),
    )


def overruled_check(
    check: CheckRun, number: int, conclusion: Conclusion | None
) -> CheckRun:
    """Return the check run if another pull request has the same commit and base.

    A check belongs to the commit, so to both pull requests.

    `number`: the number of the other pull request; `conclusion`: its worse result; None
    if it has no result yet, and this pull request's result must not replace it.
    """
    result = {None: "has no result yet", "neutral": "warns"}.get(conclusion, "fails")
    reason = f"#{number}, which has the same commit and base, {result}"
    summary = (
        f"A check belongs to a commit, and {reason}. So this check shows the worst of"
        f" their results. If #{number} should not count, close it and run this workflow"
        f" again.\n\n{check.summary}"
    )
    title = clip(f"{reason}; by itself: {check.title}", _TITLE_CHARS)
    return structs.replace(
        check, conclusion=conclusion or "failure", title=title, summary=summary
    )


def check_name(report_id: str, base_ref: str) -> str:
    """Return `code size (main)`.

    The report's id is before the base branch, unless it is `default`. A check belongs
    to a commit, which pull requests to several branches can have. What the protection
    of a branch requires must be about that branch. No id and no branch has a blank in
    it.
    """
    name = _check_subject(report_id)
    if base_ref:
        return f"{name} ({base_ref})"
    return name


def _check_subject(report_id: str) -> str:
    if report_id == "default":
        return "code size"
    return f"code size {report_id}"


def after_merge_name(report_id: str, branch: str) -> str:
    """Return `code size after merge (main)`.

    It is not the check that the protection of a branch requires. A commit of a merge
    queue becomes the commit of the branch, and has the other check already.
    """
    return f"{_check_subject(report_id)} after merge ({branch})"


def model_paths(report: Report) -> dict[str, str]:
    """Return model → its file, as the commands of head name it.

    Models from outside of the repository are left out.
    """
    paths: dict[str, str] = {}
    for cell in report.head.cells:
        if cell.command and cell.key.model not in paths:
            paths[cell.key.model] = _input_of(cell.command)
    return {model: path for model, path in paths.items() if path}


def _input_of(command: str) -> str:
    """Return the model's path in a command, which an untrusted run may have written.

    The path is empty if it is not in the repository.
    """
    try:
        arguments = shlex.split(command)
    except ValueError:
        return ""
    if arguments[:1] == ["iree-import-onnx"]:
        index = 1
    elif "<" in arguments:
        index = arguments.index("<") + 1
    else:
        return ""
    if index >= len(arguments):
        return ""
    path = arguments[index]
    if not _is_plain(path) or not _is_inside(path):
        return ""
    return path


def _is_plain(path: str) -> bool:
    """Return whether a path is short and has no odd characters."""
    if len(path) > _PATH_CHARS or not path.isprintable():
        return False
    return "\\" not in path and ":" not in path


def _is_inside(path: str) -> bool:
    """Return whether a path is relative and stays in the repository."""
    has_odd_part = bool({"", ".", ".."} & set(path.split("/")))
    return not has_odd_part and not path.startswith(("-", "~"))


def _annotations(
    facts: Facts, config_path: str, paths: Mapping[str, str]
) -> Iterator[Annotation]:
    """Yield annotations on the first line of the models with findings.

    Without a model's file, the annotation is on the rule's line. Without either there
    is no annotation.
    """
    for finding in facts.report.verdict.news:
        path = paths.get(finding.key.model, "")
        line = 1
        if not path:
            path = config_path
            line = finding.line or 0
        if finding.accepted is not None or not path or not line:
            continue
        if finding.metric:
            title = f"Code size rule: {finding.rule}"
        else:
            state = facts.state_words[facts.deltas[finding.key].state]
            title = f"Code size: {state}"
        yield Annotation(
            path=path,
            line=line,
            level=_LEVELS[finding.level],
            title=clip(clean(title), _TITLE_CHARS),
            message=clean(plain(finding_words(facts, finding))),
        )


def _merged(annotations: Iterator[Annotation]) -> Iterator[Annotation]:
    """Yield one annotation for every place and title, with the worst of their levels.

    `annotations`: worst first.
    """
    groups = by(
        annotations,
        lambda annotation: (annotation.path, annotation.line, annotation.title),
    )
    for group in groups.values():
        lines = [annotation.message for annotation in group[:_MESSAGE_LINES]]
        hidden = len(group) - len(lines)
        if hidden:
            lines.append(f"and {plural(hidden, 'more finding')}")
        yield structs.replace(group[0], message="\n".join(lines))


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write the contract's `snapshot.json`."""
    write_atomically(path, snapshot_lines(snapshot))


def _content(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(1 << 20), b"")


def write_report(
    report: Report,
    templates: Path | None,
    out: Path,
    whole: Mapping[str, Path] | None = None,
) -> list[Path]:
    """Write the six files of the contract.

    `whole`: name of a snapshot's file → the file that it was read from, to be copied.
    """
    writers: dict[str, Callable[[], bytes | Iterable[bytes]]] = {
        "base.json": lambda: snapshot_lines(report.base),
        "head.json": lambda: snapshot_lines(report.head),
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
