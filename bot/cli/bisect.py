"""`bisect`: the first bad one among releases, wheels or snapshots."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import (
    add_cell,
    add_config,
    add_format,
    add_out,
    add_suspects,
    add_work,
    spec,
)

EXAMPLES = (
    (
        "code-size-bot bisect 3.11.0 3.13.0 --config quick --model mobilenet_v1_f32_224"
        " --target x86_64"
    ),
    (
        "code-size-bot bisect 3.11.0 3.13.0 --among 3.12.0 --config quick --model"
        " mobilenet_v1_f32_224 --target x86_64 --metric stack_max_bytes"
    ),
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nA value above --limit is bad. Without --limit, a"
        " value is bad if it is nearer to the value of BAD. A candidate that cannot be"
        " measured is skipped.\n\nThe candidates between two releases are all releases"
        " between them. Between two wheels, they are the wheels of their directory."
        " --among names other candidates, from GOOD to BAD: SPECs, globs, or"
        " directories of wheels or snapshots."
    )
    parser.add_argument(
        "good", type=spec, metavar="GOOD", help="SPEC with the good value"
    )
    parser.add_argument("bad", type=spec, metavar="BAD", help="SPEC with the bad value")
    about = "id of the metric (default: %(default)s)"
    parser.add_argument("--metric", default="artifact_bytes", metavar="ID", help=about)
    add_cell(parser)
    about = "largest good value, such as 64KiB or 120"
    parser.add_argument("--limit", type=spec, metavar="VALUE", help=about)
    about = "candidates between GOOD and BAD (repeatable)"
    parser.add_argument(
        "--among", type=spec, action="append", default=[], metavar="SPEC", help=about
    )
    add_config(parser)
    add_work(parser)
    add_suspects(parser)
    add_format(parser, "the JSON of bisect.json")
    add_out(parser, "bisect.json and the report")


def run(arguments: Arguments) -> None:
    from bot.cli.work import work_of
    from bot.core.json_text import canonical
    from bot.core.metrics import own_metrics
    from bot.errors import NoVerdict
    from bot.show.bisect import bisect_blocks
    from bot.show.renderers import print_blocks
    from bot.show.report_files import write_report
    from bot.study.bisect import bisect
    from bot.study.bisect_rule import limit_of, metric_of
    from bot.study.specs import named_file
    from bot.system.files import write_atomically

    work = work_of(arguments)
    metric = metric_of(arguments.metric, own_metrics(work.config.metrics))
    limit = limit_of(metric, arguments.limit)
    out = work.request.out
    good_bad = named_file(arguments.good), named_file(arguments.bad)
    result, report = bisect(
        metric, good_bad=good_bad, limit=limit, among=arguments.among, work=work
    )
    write_report(report, work.config.templates, out)
    write_atomically(out / "bisect.json", canonical(result) + b"\n")
    blocks = list(bisect_blocks(result, metric.unit))
    arguments.show.answer(
        lambda out: print_blocks(blocks, out), lambda: [canonical(result), b"\n"]
    )
    if result.could_be:
        problem = f"any of {len(result.could_be)} candidates may be the first bad one"
        ends = result.could_be
        raise NoVerdict(
            problem,
            where=f"{ends[0]} to {ends[-1]}",
            hint="the others have no clear value",
        )
