"""`ratchet`: the limits of a configuration as tight as what is measured now, as a patch of its file."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_config, add_patch, path, spec

EXAMPLES = ("out/head.json --config code-size.yml --headroom 2% --out limits.patch",)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}: text for a commit message, and below it a patch for `git apply`. No limit gets looser, "
        "and none is changed for which a build is not measured or not deterministic: these are listed."
    )
    about = "what is measured now: a snapshot, or the report.json or directory of a compare, of which it is the head"
    parser.add_argument("measured", type=path, metavar="FILE", help=about)
    about = "what stays above the largest value (default: %(default)s)"
    parser.add_argument("--headroom", type=spec, default="0%", metavar="PERCENT", help=about)
    add_config(parser)
    add_patch(parser)


def run(arguments: Arguments) -> None:
    from bot.cli.work import work_of, write_patch
    from bot.study.patches import ratchet
    from bot.study.prepare import require_writable

    if arguments.file:
        require_writable(arguments.file.parent)
    text = ratchet(work_of(arguments), arguments.measured, arguments.headroom)
    write_patch(text, arguments.file, arguments.show)
