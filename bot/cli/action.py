"""`post` and `action`: the GitHub entries, which read everything from the environment."""

from __future__ import annotations

import os

from bot.cli.options import Arguments, Parser

EXAMPLES = ()


def arguments(parser: Parser) -> None:
    about = "Reads the event, the token and everything else from the environment that GitHub Actions sets (INPUT_*)."
    parser.description = f"{parser.description}. {about}"
    name = parser.prog.split()[-1]
    how = f"with: {{command: {'auto' if name == 'action' else name}}}"
    parser.epilog = f"example:\n  {parser.prog}    # in a workflow: uses: OWNER/REPO@v1, {how}"


def run(arguments: Arguments) -> int:
    from bot.github.action import act

    wanted = "auto" if arguments.command == "action" else arguments.command
    return act(os.environ, wanted, arguments.show, arguments.cancel)
