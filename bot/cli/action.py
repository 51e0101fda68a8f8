"""`post` and `action`: run on GitHub with everything from the environment."""

from __future__ import annotations

import os

from bot.cli.grammar import Arguments, Parser

EXAMPLES = ()


def arguments(parser: Parser) -> None:
    name = parser.prog.split()[-1]
    parser.description = (
        f"{parser.description}\n\nThe command reads the event, the token and all inputs"
        " from variables that GitHub Actions sets (INPUT_*)."
    )
    command = name
    if name == "action":
        command = "auto"
    parser.epilog = (
        f"in a workflow:\n  uses: OWNER/REPO@v1\n  with: {{command: {command}}}"
    )


def run(arguments: Arguments) -> int:
    from bot.cli.commented import read_command
    from bot.github.action import act

    if arguments.command == "action":
        mode = "auto"
    else:
        mode = arguments.command
    return act(
        os.environ,
        command=mode,
        show=arguments.show,
        cancel=arguments.cancel,
        read_command=read_command,
    )
