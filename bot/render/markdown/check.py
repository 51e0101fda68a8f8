"""The check run of a commit: verdict, summary, and annotations on the lines of the repository that findings concern."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from bot.core.policy import Finding
from bot.core.publication import Annotation, AnnotationLevel, CheckRun, Conclusion
from bot.core.report import Report
from bot.errors import BotError, NotConfigured
from bot.render.markdown.comment import TIERS, WHERE, draw_broken
from bot.render.markdown.summary import TEMPLATE
from bot.render.text.escape import clean, clip
from bot.render.text.filters import plural
from bot.render.text.fitting import Document, fitting, length
from bot.render.text.phrase import plain
from bot.render.view.alarms import doubt_of, finding_words
from bot.render.view.facts import Facts, build_facts
from bot.render.view.headline import headline

CHECK_SUMMARY_LIMIT = 65_535
"""Characters that GitHub takes as the summary of a check run; counted as UTF-16 units."""
ANNOTATIONS_LIMIT = 200
"""More than these nobody reads; GitHub takes 50 a call."""

_TITLE_CHARS = 255
_MESSAGE_LINES = 20
_PATH_CHARS = 400
_CONCLUSIONS: Mapping[str, Conclusion] = {
    "pass": "success",
    "warn": "neutral",
    "fail": "failure",
    "unknown": "failure",
}
_LEVELS: Mapping[str, AnnotationLevel] = {"warn": "warning", "fail": "failure"}
_Place = tuple[str, int, str]
"""Path, line and title."""


def check_run(
    report: Report,
    *,
    config_path: str,
    model_paths: Mapping[str, str],
    base_ref: str = "",
    templates_dir: Path | None = None,
) -> CheckRun:
    """The check run of a report.

    Args:
        base_ref: the branch that the pull request goes to.
        config_path: of the configuration, relative to the repository; empty where it is not in it.
        model_paths: model → its file, relative to the repository.
        templates_dir: the user's templates, for the summary.

    Raises:
        TemplateError: a template does not work.
    """
    facts = build_facts(report)
    broke = f"the analysis broke: {clean(report.broke)}; " if report.broke else ""
    return CheckRun(
        check_name(report.report_id, base_ref),
        "failure" if report.broke else _CONCLUSIONS[report.verdict.status],
        clip(clean(broke + plain(headline(facts))), _TITLE_CHARS),
        fitting(
            report, Document(TEMPLATE, TIERS, lambda text: length(text) <= CHECK_SUMMARY_LIMIT, WHERE), templates_dir
        ),
        tuple(_merged(_annotations(facts, config_path, model_paths)))[:ANNOTATIONS_LIMIT],
    )


def broken_check(report_id: str, base_ref: str, error: BotError, url: str) -> CheckRun:
    """The check run of an analysis that broke before there was a report.

    Args:
        error: what broke.
        url: of the run; empty where there is none.
    """
    why = "there is no configuration" if isinstance(error, NotConfigured) else f"the analysis broke: {error.line}"
    title = clip(clean(f"Code size: not known, {why}"), _TITLE_CHARS)
    links = [("workflow run", url)] if url else []
    return CheckRun(check_name(report_id, base_ref), "failure", title, draw_broken(error, links))


def overruled_check(check: CheckRun, number: int, conclusion: Conclusion | None) -> CheckRun:
    """The check run where another pull request has the same commit and base: a check belongs to the commit, so to both.

    Args:
        number: of the other pull request.
        conclusion: its result, which is worse; None where it has none yet, and this one's must not stand for it.
    """
    says = {None: "has no result yet", "neutral": "warns"}.get(conclusion, "fails")
    why = f"#{number}, which has the same commit and base, {says}"
    summary = (
        f"A check belongs to a commit, and {why}. So this check says the worst of all of them. If #{number} should not "
        f"count, close it and run this again.\n\n{check.summary}"
    )
    title = clip(f"{why}; by itself: {check.title}", _TITLE_CHARS)
    return replace(check, conclusion=conclusion or "failure", title=title, summary=summary)


def check_name(report_id: str, base_ref: str) -> str:
    """`code size (main)`, with the id before the base branch where there are several reports.

    A check belongs to a commit, which pull requests to several branches can have: what the protection of a branch
    requires must be about that branch. No id and no branch has a blank in it.
    """
    name = "code size" if report_id == "default" else f"code size {report_id}"
    return f"{name} ({base_ref})" if base_ref else name


def model_paths(report: Report) -> dict[str, str]:
    """Model → its file, as the commands of head name it; models from outside of the repository are left out."""
    found: dict[str, str] = {}
    for cell in report.head.cells:
        if cell.command and cell.key.model not in found:
            found[cell.key.model] = _input_of(cell.command)
    return {model: path for model, path in found.items() if path}


def _input_of(command: str) -> str:
    """The model in a command, which an untrusted run may have written."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    imported = words[:1] == ["iree-import-onnx"]
    at = 1 if imported else words.index("<") + 1 if "<" in words else len(words)
    path = words[at] if at < len(words) else ""
    return path if _is_inside(path) else ""


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    plain_text = path.isprintable() and "\\" not in path and ":" not in path and len(path) <= _PATH_CHARS
    return plain_text and not {"", ".", ".."} & set(parts) and not path.startswith(("-", "~"))


def _annotations(facts: Facts, config_path: str, paths: Mapping[str, str]) -> Iterator[Annotation]:
    doubt = doubt_of(facts.report)
    for finding in facts.report.verdict.news:
        if finding.accepted is None and (place := _place(finding, config_path, paths)):
            path, line, title = place
            message = clean("; ".join(filter(None, (plain(finding_words(facts, finding)), doubt))))
            yield Annotation(path, line, _LEVELS[finding.level], title, message)


def _place(finding: Finding, config_path: str, paths: Mapping[str, str]) -> _Place | None:
    """The model's first line; without a file of the model the rule's line; None without either."""
    said = f"Code size rule: {finding.rule}" if finding.metric else f"Code size: {finding.limit}"
    title = clip(clean(said), _TITLE_CHARS)
    if finding.key.model in paths:
        return paths[finding.key.model], 1, title
    return (config_path, finding.line, title) if config_path and finding.line else None


def _merged(annotations: Iterator[Annotation]) -> Iterator[Annotation]:
    """One for every place and title, as bad as the worst of them; they come worst first."""
    groups: dict[_Place, list[Annotation]] = {}
    for one in annotations:
        groups.setdefault((one.path, one.line, one.title), []).append(one)
    for group in groups.values():
        lines = [one.message for one in group[:_MESSAGE_LINES]]
        more = [f"and {plural(len(group) - len(lines), 'more finding')}"] if len(group) > len(lines) else []
        yield replace(group[0], message="\n".join([*lines, *more]))
