"""`goldens`: the golden files of the configuration's suites as the measured values would have them, as a patch."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_patch, add_selectors, spec

EXAMPLES = ("--head 3.13.0 --base 3.12.0 --config code-size.yml --out goldens.patch",)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}: text for a commit message, and below it a patch for `git apply`. With --base each "
        "value that changes has its cause. A value that cannot be measured stays, and is listed."
    )
    about = "compiler, or snapshot measured with this configuration, whose values the goldens are to be"
    parser.add_argument("--head", type=spec, required=True, metavar="SPEC", help=about)
    parser.add_argument("--base", type=spec, metavar="SPEC", help="the same of the side that causes are told against")
    add_patch(parser)
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    from bot.cli.work import work_of, write_patch
    from bot.study.patches import goldens
    from bot.study.prepare import require_writable

    if arguments.file:
        require_writable(arguments.file.parent)
    work = work_of(arguments, {"base": arguments.base, "head": arguments.head})
    write_patch(goldens(work), arguments.file, arguments.show)
