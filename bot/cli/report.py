"""`report`: two snapshots to a verdict, six files and the terminal; no compiler is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.options import Arguments, Parser, add_cache, add_config, add_format, add_globs, add_out, add_suspects, path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bot.core.report import Report
    from bot.study.prepare import Work

EXAMPLES = ("--base base.json --head head.json --out out",)


def arguments(parser: Parser) -> None:
    for side in ("base", "head"):
        parser.add_argument(f"--{side}", type=path, required=True, metavar="FILE", help=f"snapshot of the {side} side")
    add_config(parser)
    add_globs(parser)
    add_cache(parser, "where the IR of both sides may be kept, for differences")
    add_suspects(parser)
    add_format(parser, "what report.json has, and nothing else,")
    add_out(parser)


def run(arguments: Arguments) -> int:
    import gc

    from bot.cli.work import work_of
    from bot.core.report import Baseline
    from bot.study.comparison import reported
    from bot.study.prepare import load_snapshot

    gc.disable()  # all that is read is held to the end, and to look for cycles in it takes a tenth longer
    work = work_of(arguments, models=False)
    files = {"base": arguments.base, "head": arguments.head}
    loaded = {side: load_snapshot(path) for side, path in files.items()}
    sides = work.selected(loaded)
    whole = {f"{side}.json": path for side, path in files.items() if sides[side] is loaded[side] and path.is_file()}
    baseline = Baseline(f"snapshot {arguments.base.name}", sides["base"].source.sha)
    return publish(reported(work.config, sides["base"], sides["head"], baseline, work.texts), work, whole)


def publish(report: Report, work: Work, whole: Mapping[str, Path] | None = None) -> int:
    """Write a report, with suspects where the request wants them, and show it; the exit code of its verdict.

    `whole`: as `write_report` has it.
    """
    from bot.explain.suspects import with_suspects
    from bot.show.comment import write_report
    from bot.study.comparison import require_verdict, source_of

    if source := source_of(work):
        report = with_suspects(report, source)
    out = work.request.out
    work.show.report(report, write_report(report, work.config.templates, out, whole))
    require_verdict(report, out)
    return 1 if report.verdict.status == "fail" else 0
