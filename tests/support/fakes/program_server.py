"""Imports the program's modules, and runs the program in a fork of itself for each line of its input.

A line is a request in JSON, as `prepared_program.py` writes it. The answer is a line
with the exit code. A fork also has what each process computes once from the files of
the program alone: the digest of the code, the default configuration, the templates.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import threading
from importlib import import_module
from typing import Any

MODULES = (
    "bot.start",
    "bot.cli.main",
    "bot.cli.report",
    "bot.cli.work",
    "bot.compiler.command",
    "bot.explain.suspects",
    "bot.show.comment",
    "bot.show.explained",
    "bot.study.both_sides",
    "bot.study.changed_defaults",
    "bot.study.commit_source",
    "bot.study.comparison",
    "bot.study.history",
    "bot.study.laddering",
    "bot.study.releases",
    "bot.study.reproducing",
    "bot.study.run_times",
    "bot.study.stored_history",
    "bot.study.tracing",
)
"""They import nearly all that a run needs, and start no thread."""


CANNOT_START = 70
"""The exit code of a fork that could not become the program, which exits with less."""


def become(request: dict[str, Any], own_path: list[str]) -> None:
    """Give this process the files, folder, environment and words of a new one.

    `own_path`: where Python finds modules without `PYTHONPATH`. The modules of the tests
    are not there.
    """
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for descriptor, path in enumerate(request["output"], start=1):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    added = request["environment"]["PYTHONPATH"].split(os.pathsep)
    sys.path[:] = [request["cwd"], *added, *own_path]
    sys.argv[1:] = request["arguments"]


def prepare() -> None:
    """Import the modules, and compute what depends on nothing but the program's files."""
    for name in MODULES:
        import_module(name)
    from report_factory import explained_small

    from bot.compiler.measuring_code import measured_by
    from bot.config.configuration import load_config
    from bot.show.comment import render_comment, render_summary
    from bot.show.page import html_pieces

    measured_by()
    load_config(models=False)
    report = explained_small()
    for render in (render_comment, render_summary):
        render(report)
    list(html_pieces(report))


def serve() -> None:
    """Answer requests until the input ends.

    The process leads a group, which ends with it. It stays in the session of the tests: a
    test that runs the bot's guard ends what is in another session.
    """
    os.setpgrp()
    prepare()
    first = 1 + len(os.environ["PYTHONPATH"].split(os.pathsep))
    own_path = sys.path[first:]
    assert threading.active_count() == 1, "a fork would lack the other threads"
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                become(request, own_path)
            except OSError as error:
                os.write(2, f"{error}\n".encode())
                os._exit(CANNOT_START)
            runpy.run_module("bot", run_name="__main__", alter_sys=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


serve()
