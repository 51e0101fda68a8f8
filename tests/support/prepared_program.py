"""The program as a process of its own that need not import its modules: a fork of a process that has them already.

Most of a short run is Python's start and the imports. A fork saves both. Its arguments,
folder, environment, output and exit code are those of `python -m bot`. All runs of a
test session have the same hash seed, so a test of determinism starts Python twice.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from select import select

from places import ROOT

_MOST_SECONDS = 900
_SUPPORT = Path(__file__).parent
_SERVER = _SUPPORT / "fakes" / "program_server.py"
_IMPORTED = (ROOT, _SUPPORT)
"""Where the modules of the program and of the tests' helpers are."""


class Server:
    """The process that has the modules, and the two ends of its protocol."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, str(_SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, _IMPORTED))},
            text=True,
        )
        atexit.register(self.end)

    def end(self) -> None:
        """End the process, and the program if it runs."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):  # it has no group of its own yet
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()

    def exit_code_of(self, request: Mapping[str, object]) -> int:
        """Run the program once; a signal that ended it is a negative number, as in `subprocess`."""
        assert self._process.stdin and self._process.stdout
        with self._lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            if not select([self._process.stdout], [], [], _MOST_SECONDS)[0]:
                self.end()
                _server.cache_clear()  # the next test gets another one
                raise AssertionError(f"the program still runs after {_MOST_SECONDS} s")
            answer = self._process.stdout.readline()
        assert answer, "the process that starts the program has ended"
        return int(answer)


_server = cache(Server)


def started(
    *arguments: str | Path,
    cwd: Path,
    env: Mapping[str, str] = {},
) -> subprocess.CompletedProcess[str]:
    """The program, once.

    Args:
        arguments: the words after the program's name.
        cwd: the folder in which it works.
        env: environment variables besides those of the tests.
    """
    argv = [str(argument) for argument in arguments]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        request = {
            "arguments": argv,
            "cwd": str(cwd),
            "environment": {**os.environ, "PYTHONPATH": str(ROOT), **env},
            "output": [
                f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)
            ],
        }
        code = _server().exit_code_of(request)
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read())
    return subprocess.CompletedProcess(argv, code, *printed)


def bot(
    *arguments: str | Path,
    cwd: Path = ROOT,
    codes: Collection[int] = (0, 1),
    env: Mapping[str, str] = {},
) -> subprocess.CompletedProcess[str]:
    """The program, once; its exit code is one of `codes`."""
    done = started(*arguments, cwd=cwd, env=env)
    assert done.returncode in codes, done.stdout + done.stderr
    return done
