"""`bisect`: the first bad one among releases, wheels or snapshots."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_cell, add_config, add_format, add_out, add_suspects, add_work, spec

EXAMPLES = (
    "--model mobilenet_v1_f32_224 --target x86_64 3.11.0 3.13.0",
    "--metric executables --model 'bert*s128' --target vmvx --among dist 3.12.0 3.13.0",
    "--model mobilenet_v1_f32_224 --target x86_64 --limit 64KiB --among 'nightly/*.json' a.json b.json",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}. Bad is a value above the limit: without --limit, one that is nearer to BAD's "
        "than to GOOD's. Between two releases all that are offered are candidates, between two wheels those "
        "of their directory. What cannot be measured is skipped."
    )
    parser.add_argument("good", type=spec, metavar="GOOD", help="a SPEC: here it is good")
    parser.add_argument("bad", type=spec, metavar="BAD", help="likewise: here it is bad")
    about = "what moved, by its id (default: %(default)s)"
    parser.add_argument("--metric", default="artifact_bytes", metavar="ID", help=about)
    add_cell(parser)
    parser.add_argument("--limit", type=spec, metavar="VALUE", help="bad is what is above it: 64KiB, 120")
    about = (
        "what lies between, from GOOD to BAD: a SPEC, a glob, or a directory of wheels or of snapshots; repeatable "
        "(default: what is offered)"
    )
    parser.add_argument("--among", type=spec, action="append", default=[], metavar="SPEC", help=about)
    add_config(parser)
    add_work(parser)
    add_suspects(parser)
    add_format(parser, "what bisect.json has, and nothing else,")
    add_out(parser, "bisect.json and the report of the step")


def run(arguments: Arguments) -> None:
    from bot.cli.work import work_of
    from bot.core.json_text import canonical
    from bot.core.metrics import own_metrics
    from bot.errors import NoVerdict
    from bot.show.bisect import bisect_blocks
    from bot.show.comment import write_report
    from bot.show.renderers import print_blocks
    from bot.study.bisect import bisect, limit_of, metric_of
    from bot.study.specs import named_file
    from bot.system.files import write_atomically

    work = work_of(arguments)
    metric = metric_of(arguments.metric, own_metrics(work.config.metrics))
    limit, out = limit_of(metric, arguments.limit), work.request.out
    good_bad = named_file(arguments.good), named_file(arguments.bad)
    result, report = bisect(metric, good_bad, limit, arguments.among, work)
    write_report(report, work.config.templates, out)
    write_atomically(out / "bisect.json", canonical(result) + b"\n")
    blocks = list(bisect_blocks(result, metric.unit))
    arguments.show.answer(lambda out: print_blocks(blocks, out), lambda: [canonical(result), b"\n"])
    if result.could_be:
        what, ends = f"{len(result.could_be)} candidates may be the first bad one", result.could_be
        raise NoVerdict(what, where=f"{ends[0]} to {ends[-1]}", hint="the others have no clear value")
