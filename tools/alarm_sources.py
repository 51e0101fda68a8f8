"""Find comparisons in which alarms can occur.

They are release steps, flags that change something, and edits of models.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from evidence_work import PAIR, Work
from model_edits import EDITS, Edit

from bot.core.planned import SIDES

WANTED = 10  # flags that change a cell; flags that change nothing are left out
FLAGS = (
    "--iree-opt-level=O1",
    "--iree-opt-level=O2",
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    "--iree-dispatch-creation-data-tiling",
    "--iree-dispatch-creation-enable-aggressive-fusion=false",
    "--iree-dispatch-creation-fuse-multi-use=false",
    "--iree-opt-const-eval=false",
    "--iree-opt-const-expr-hoisting=false",
    "--iree-stream-partitioning-favor=debug",
    "--iree-hal-link-executables=false",
    "--iree-llvmcpu-enable-ukernels=all",
    "--iree-opt-generalize-matmul",
    "--iree-scheduling-optimize-bindings=false",
)


@dataclass(frozen=True)
class Comparison:
    """Two sides that were compared."""

    kind: str  # `release steps`, `flags` or `edits`
    name: str
    out: Path  # the report's directory
    compilers: Mapping[str, str]  # side → release
    # side → what `measure` needs beside the compiler to measure that side
    words: Mapping[str, Sequence[str]]
    homes: Mapping[str, Path]  # side → where the printed paths may be relative to

    def report(self) -> Mapping[str, Any]:
        """Return the comparison's `report.json`."""
        document: Mapping[str, Any] = json.loads(
            (self.out / "report.json").read_text(encoding="utf-8")
        )
        return document


def of_steps(
    work: Work, part: str = "alarms", whole: tuple[str, str] = PAIR
) -> Iterator[Comparison]:
    """Yield the steps between neighbours, and `whole` if both its releases are there.

    If a release cannot be had, or gives no verdict, the other steps are not
    affected.
    """
    config = ["--config", str(work.config)]
    steps = list(pairwise(work.releases))
    for base, head in dict.fromkeys(
        [*([whole] if set(whole) <= set(work.releases) else []), *steps]
    ):
        out = work.folder(part) / f"{work.suite}-{base}-{head}"
        if compared(work, out, base, head):
            homes = dict.fromkeys(SIDES, work.config.parent)
            options = {
                "base": config,
                "head": config,
            }
            yield Comparison(
                kind="release steps",
                name=f"{base} → {head}",
                out=out,
                compilers={"base": base, "head": head},
                words=options,
                homes=homes,
            )


def of_flags(work: Work, part: str = "alarms") -> Iterator[Comparison]:
    """Yield comparisons with a flag on head alone.

    It ends when enough flags have changed a cell.
    """
    changing = 0
    for number, flag in enumerate(FLAGS):
        if changing == WANTED:
            return
        out = work.folder(part) / f"flag-{number}"
        if not compared(work, out, PAIR[1], PAIR[1], f"--flags={flag}"):
            continue
        config = ["--config", str(work.config)]
        options = {"base": config, "head": [*config, f"--flags={flag}"]}
        homes = dict.fromkeys(SIDES, work.config.parent)
        comparison = Comparison(
            kind="flags",
            name=flag,
            out=out,
            compilers=dict.fromkeys(SIDES, PAIR[1]),
            words=options,
            homes=homes,
        )
        if any(
            cell["state"] not in ("same", "broken", "unmeasured")
            for cell in comparison.report()["cells"]
        ):
            changing += 1
            yield comparison


def compared(work: Work, out: Path, base: str, head: str, *words: str) -> bool:
    """Return whether there is a verdict.

    A report that an interrupted run left is not made again.
    """
    try:
        if not (out / "report.json").is_file():
            work.compared(out, "--base", base, "--head", head, *words)
    except ValueError as error:
        work.say(f"{base} → {head} {' '.join(words)} was not compared: {error}")
        return False
    return True


def of_edits(work: Work, edits: Sequence[Edit] = EDITS) -> Iterator[Comparison]:
    """Yield comparisons of a model before and after each edit, on all targets."""
    for number, edit in enumerate(edits):
        home = work.folder("alarms", f"edit-{number}")
        configs = {
            side: written(home / side, edit.model, text)
            for side, text in zip(SIDES, edit.texts, strict=True)
        }
        out = work.folder("alarms") / f"edited-{number}"
        pair = [f"--config={configs['base']}", f"--head-config={configs['head']}"]
        replace(work, selectors=work.targets).compared(
            out, "--compiler", PAIR[1], *pair
        )
        options = {side: ["--config", str(path)] for side, path in configs.items()}
        homes = {side: path.parent for side, path in configs.items()}
        name = f"{edit.model}: {edit.name}"
        yield Comparison(
            kind="edits",
            name=name,
            out=out,
            compilers=dict.fromkeys(SIDES, PAIR[1]),
            words=options,
            homes=homes,
        )


def written(home: Path, name: str, text: str) -> Path:
    """Write a configuration of one model, and return its path."""
    shutil.rmtree(home, ignore_errors=True)
    (home / "models").mkdir(parents=True)
    (home / "models" / f"{name}.mlir").write_text(text, encoding="utf-8")
    config = {"schema": "code-size-config/1", "models": ["models/*.mlir"]}
    (home / "code-size.yml").write_text(json.dumps(config), encoding="utf-8")
    return home / "code-size.yml"
