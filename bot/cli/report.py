"""`report`: judge two snapshots and write the report; no compiler is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import (
    add_cache,
    add_config,
    add_format,
    add_globs,
    add_out,
    add_suspects,
    named_sides,
    spec,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bot.core.report import Report
    from bot.study.prepare import Work

EXAMPLES = (
    "code-size-bot compare 3.11.0 3.13.0 --config quick --target x86_64",
    "code-size-bot report out/base.json out/head.json --model 'mobilenet*'",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nA snapshot is a file that `measure` or `compare`"
        " wrote, or a directory that holds a snapshot.json. No compiler is needed."
    )
    about = "snapshot of the base side, then of the head side"
    parser.add_argument("sides", nargs="*", type=spec, metavar="FILE", help=about)
    for side in ("base", "head"):
        parser.add_argument(
            f"--{side}", type=spec, metavar="FILE", help=f"snapshot of the {side} side"
        )
    add_config(parser)
    add_globs(parser)
    add_cache(parser)
    add_suspects(parser)
    add_format(parser, "the JSON of report.json")
    add_out(parser)


def run(arguments: Arguments) -> int:
    import gc
    from pathlib import Path

    from msgspec import structs

    from bot.cli.work import work_of
    from bot.core.report import Baseline
    from bot.study.comparison import reported
    from bot.study.run_times import without_artifacts
    from bot.study.snapshot_files import load_snapshot

    files = _snapshot_files(arguments)
    # all that is read is held to the end, and to look for cycles in it takes a tenth
    # longer
    gc.disable()
    work = work_of(arguments, models=False)
    loaded = {side: load_snapshot(path) for side, path in files.items()}
    sides = work.selected(loaded)
    whole = dict[str, Path]()
    for side, path in files.items():
        if sides[side] is loaded[side] and path.is_file():
            whole[f"{side}.json"] = path
    baseline = Baseline(f"snapshot {files['base'].name}", sides["base"].source.sha)
    final = reported(
        work.config,
        base=sides["base"],
        head=sides["head"],
        baseline=baseline,
        texts=work.texts,
    )
    if work.config.run == "failing":
        final = structs.replace(final, run_times=without_artifacts(final))
    return publish(final, work, whole)


def _snapshot_files(arguments: Arguments) -> dict[str, Path]:
    """Return the snapshot file of each side.

    Raises UsageError where a side has none, or is a release.
    """
    from pathlib import Path

    from bot.core.spec import MOVING, release_of
    from bot.errors import UsageError
    from bot.study.specs import exists, named_file

    files = {}
    for side, word in named_sides(arguments).items():
        if not word:
            hint = "for example: code-size-bot report base.json head.json"
            raise UsageError(f"the {side} side is missing", where="report", hint=hint)
        if not exists(word) and (word in MOVING or release_of(word)):
            hint = "use `compare` for releases"
            raise UsageError(
                "is a release, but `report` reads snapshot files", where=word, hint=hint
            )
        files[side] = Path(named_file(word))
    return files


def publish(report: Report, work: Work, whole: Mapping[str, Path] | None = None) -> int:
    """Write a report, with suspects where the request wants them, and show it.

    Returns the exit code of its verdict. A report without a verdict replaces no earlier
    one. `whole`: as `write_report` has it.
    """
    from bot.cli.work import place_of_nothing
    from bot.explain.suspects import with_suspects
    from bot.show.report_files import write_report
    from bot.study.commit_source import source_of
    from bot.study.comparison import require_verdict

    if source := source_of(work):
        report = with_suspects(report, source)
    out = work.request.out
    if report.verdict.status == "unknown":
        out = place_of_nothing(out, "report.json", work.show.say)
    work.show.report(
        report,
        write_report(report, templates=work.config.templates, out=out, whole=whole),
    )
    require_verdict(report, out)
    if report.verdict.status == "fail":
        return 1
    return 0
