"""`review`, `post`, `baseline` and `action`: the GitHub entries, told everything by the environment."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.cli.showing import TerminalShow
    from bot.system.processes import Cancel

EXAMPLES = ()


def arguments(parser: argparse.ArgumentParser) -> None:
    about = "Reads the event, the token and everything else from the environment that GitHub Actions sets (INPUT_*)."
    parser.description = f"{parser.description}. {about}"
    name = parser.prog.split()[-1]
    how = f"with: {{command: {'auto' if name == 'action' else name}}}"
    parser.epilog = f"example:\n  {parser.prog}    # in a workflow: uses: OWNER/REPO@v1, {how}"


def run(arguments: argparse.Namespace, show: TerminalShow, cancel: Cancel) -> int:
    from bot.github.action import act

    return act(os.environ, "auto" if arguments.command == "action" else arguments.command, show, cancel)
