"""Make the check run of a commit: its name, verdict, summary and annotations."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from bot.core.check_run import CheckRun, Conclusion
from bot.core.report import Report
from bot.errors import BotError
from bot.show.annotations import TITLE_CHARS, annotations_of
from bot.show.blocks import plain
from bot.show.comment import broken_text, report_text
from bot.show.escape import clean, clip
from bot.show.facts import build_facts
from bot.show.headline import headline
from bot.show.views import COMMENT

CHECK_SUMMARY_LIMIT = 65_535
"""The limit of GitHub for the summary of a check run, in UTF-16 units."""
ANNOTATIONS_LIMIT = 200
"""Nobody reads more annotations than these; GitHub takes 50 a call."""

_CONCLUSIONS: Mapping[str, Conclusion] = {
    "pass": "success",
    "warn": "neutral",
    "fail": "failure",
    "unknown": "failure",
}


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
    summary = report_text(
        "summary.md.j2",
        report=report,
        view=COMMENT,
        limit=CHECK_SUMMARY_LIMIT,
        templates_dir=None,
    )
    annotations = annotations_of(facts, config_path, model_paths)
    return CheckRun(
        name=check_name(report.report_id, base_ref),
        conclusion=conclusion,
        title=clip(clean(title), TITLE_CHARS),
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
        title=clip(clean(title), TITLE_CHARS),
        summary=broken_text(error, links),
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
    title = clip(f"{reason}; by itself: {check.title}", TITLE_CHARS)
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
