"""`models`: list the models, or export the files that printed commands read."""

from __future__ import annotations

from pathlib import Path

from bot.cli import listing
from bot.cli.grammar import Arguments, Parser

EXAMPLES = (
    "code-size-bot models --config quick",
    "code-size-bot models --config quick --export models",
)


def arguments(parser: Parser) -> None:
    listing.arguments(parser)
    parser.add_argument(
        "--export", metavar="DIR", type=Path, help="copy the files of the models to DIR"
    )


def run(arguments: Arguments) -> None:
    from bot.cli.showing import for_log
    from bot.cli.work import work_of
    from bot.show.escape import clean
    from bot.show.filters import plural
    from bot.system.files import write_atomically

    if arguments.export is None:
        listing.run(arguments)
        return
    chosen = work_of(arguments).planned()
    for model in chosen.models:
        source = Path(model.path)
        write_atomically(arguments.export / source.name, source.read_bytes())
    folder = clean(str(arguments.export))
    print(for_log(f"wrote {plural(len(chosen.models), 'model')} to {folder}"))
