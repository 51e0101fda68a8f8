"""The IR worker as the real child process it is, for every test that asks it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from places import ROOT

WORKER = ROOT / "bot" / "readers" / "ir_worker" / "ir_worker.py"


def find_compiler_root() -> Path | None:
    """The folder with `iree/compiler` in it: CODE_SIZE_TEST_COMPILER, an installed wheel, or the cache's newest."""
    candidates = (
        [Path(named)] if (named := os.environ.get("CODE_SIZE_TEST_COMPILER")) else []
    )
    spec = (
        importlib.util.find_spec("iree.compiler")
        if importlib.util.find_spec("iree")
        else None
    )
    if spec and spec.origin:
        candidates.append(Path(spec.origin).parents[2])
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "code-size-bot"
    )
    tag = f"*.cpython-{sys.version_info.major}{sys.version_info.minor}-*.so"
    roots = {
        path.parents[3]
        for path in cache.glob(f"**/iree/compiler/_mlir_libs/_mlir{tag}")
    }
    candidates += sorted(roots, key=_release, reverse=True)
    return next(
        (root for root in candidates if (root / "iree/compiler/ir.py").is_file()), None
    )


def _release(root: Path) -> list[int]:
    """What the cache calls a release's folder, as numbers: the newest comes last."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", root.name)
    return [int(number) for number in match.groups()] if match else []


def compiled(
    root: Path, text: str, folder: Path, *flags: str
) -> subprocess.CompletedProcess[str]:
    """What the compiler does with a model's text, the dumps of its phases in the folder."""
    command = [
        str(root / "iree/compiler/_mlir_libs/iree-compile"),
        "-",
        "-o",
        "/dev/null",
        *flags,
    ]
    command.append(f"--dump-compilation-phases-to={folder}")
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False
    )


class Child:
    """The worker process and the two ends of its protocol."""

    def __init__(self, root: Path, code: str | None = None) -> None:
        program = ["-c", code] if code else [str(WORKER)]
        # -S: without site-packages, so that neither numpy nor the bot can be imported.
        self.process = subprocess.Popen(
            [sys.executable, "-S", *program, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self.first = self.read()

    def read(self) -> Any:
        """The next line of its output."""
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ask(self, line: str | None = None, **request: object) -> Any:
        """The answer to a request, or to a raw line."""
        assert self.process.stdin
        self.process.stdin.write((line or json.dumps(request)) + "\n")
        self.process.stdin.flush()
        return self.read()

    def end(self) -> int:
        """Its exit code after the end of its input."""
        self.process.communicate(timeout=10)
        return self.process.returncode
