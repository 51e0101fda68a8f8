"""What a compiler itself says of one compile: its statistics, its diagnostics, and the text of its IR dumps."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_LINALG = re.compile(r"(?<![\w@#!.])\"?((?:iree_linalg_ext|linalg)\.[\w.]+)")
_NO_OPERATIONS = (
    "linalg.yield",
    "linalg.index",
    "iree_linalg_ext.yield",
    "iree_linalg_ext.index",
)
_REGION = "flow.dispatch.workgroups"
_REFUSED = re.compile(
    r"exceeded stack allocation limit of \d+ bytes for function\. Got (\d+) bytes"
)


@dataclass(frozen=True)
class DirectCompile:
    """One compile without the bot: its folder has the IR of each phase and the statistics."""

    folder: Path
    program: Path  # the native compiler
    argv: tuple[str, ...]  # of the target and the variant
    model: Path

    def run(self) -> DirectCompile:
        """Compile with dumps and statistics; the compile succeeds."""
        written = (
            f"--dump-compilation-phases-to={self.folder}",
            "--iree-scheduling-dump-statistics-format=json",
            f"--iree-scheduling-dump-statistics-file={self.folder}/statistics.json",
        )
        done = self._compiled(
            *written, "--iree-llvmcpu-stack-allocation-limit=1073741824"
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return self

    def _compiled(self, *flags: str) -> subprocess.CompletedProcess[str]:
        argv = [str(self.program), "-", "-o", "/dev/null", *self.argv, *flags]
        text = self.model.read_text(encoding="utf-8")
        return subprocess.run(
            argv, input=text, capture_output=True, text=True, check=False
        )

    def _phase(self, name: str) -> list[str]:
        (path,) = self.folder.glob(f"*.{name}.mlir")
        return path.read_text(encoding="utf-8").splitlines()

    def statistic(self, group: str, key: str) -> int:
        """One of the compiler's own counts over the whole program."""
        totals = json.loads((self.folder / "statistics.json").read_text())[
            "stream-aggregate"
        ]
        return int(totals[group][key])

    def regions(self) -> int:
        """How many dispatch regions fusion formed."""
        return sum(
            " = " + _REGION in line or line.strip().startswith(_REGION)
            for line in self._formed()
        )

    def _formed(self) -> list[str]:
        return [
            line
            for line in self._phase("5.dispatch-creation")
            if not line.lstrip().startswith("//")
        ]

    def linalg_before_fusion(self) -> int:
        """How many linalg operations the program has before dispatch creation."""
        return _linalg(self._phase("4.global-optimization"))

    def linalg_in_regions(self) -> int:
        """How many linalg operations are inside dispatch regions: a region ends with the bracket below its start."""
        inside = list[str]()
        indent = ""
        for line in self._formed():
            own_indent = line[: len(line) - len(line.lstrip())]
            if _REGION in line and not indent:
                indent = own_indent or " "
            elif indent:
                if line.startswith(indent + "}"):
                    indent = ""
                inside.append(line)
        return _linalg(inside)

    def allocations(self) -> int:
        """Return the largest sum of stack allocations, as the compiler refuses it with the lowest limit."""
        message = self._compiled("--iree-llvmcpu-stack-allocation-limit=1").stderr
        return max(map(int, _REFUSED.findall(message)), default=0)

    def is_refused(self) -> bool:
        """Return whether the compiler refuses the model with its default limit."""
        return _REFUSED.search(self._compiled().stderr) is not None


def _linalg(lines: list[str]) -> int:
    names = [name for line in lines for name in _LINALG.findall(line)]
    return sum(name not in _NO_OPERATIONS for name in names)
