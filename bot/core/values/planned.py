"""The plan: which cells a run measures, with which flags, and how they are split over shards."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.core.backends import backend_of
from bot.core.selecting import kept, require_matches, short_names
from bot.core.values.snapshot import CellKey, Snapshot

SIDES = ("base", "head")
COMMON_FLAGS = (
    "--iree-dispatch-creation-enable-aggressive-fusion",
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-bytecode-module-strip-source-map",
    "--iree-vm-emit-polyglot-zip=false",
)
"""Aggressive fusion, and the three flags without which an artifact's size depends on the path of its input."""

LIFTED_LIMIT_FLAG = "--iree-llvmcpu-stack-allocation-limit=1073741824"
"""Lifts the compiler's 32 KiB stack gate (a power of two, 1 GiB), so that a refused cell can be measured."""

LIFTED = "with the stack limit lifted: "
"""Begins the reason of a cell that the gate refused, and that fails without it, too: so does its command."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model file.

    Attributes:
        shown: the path to print: relative to the repository or to the configuration.
        digest: SHA-256 (hex) of its bytes; empty where they are not at hand.
        size_bytes: of the file, the first guess at what it costs to compile.
        url: where its bytes are fetched from; empty for a file that is here.
        missing: why they cannot be had; empty where they can, or were not wanted yet.
    """

    name: str
    path: str
    shown: str
    digest: str
    size_bytes: int
    url: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A target backend with its flags.

    Attributes:
        unsupported: why it cannot compile stand-alone.
        extends: the target that it was derived from, of which backend and flags have what was inherited.
        whole: True where the flags name the backend themselves and the house adds none: they are those of one module of
            a suite, whose figures are only comparable if nothing else is on the command line.
        releases: ranges of releases (`<3.11`), each with what stands there in place of the flags; the first that has
            the compiler's release counts.
    """

    name: str
    backend: str
    flags: tuple[str, ...] = ()
    unsupported: str | None = None
    extends: str | None = None
    whole: bool = False
    releases: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The backend's option and its flags."""
        return self.flags if self.whole else (f"--iree-hal-target-backends={self.backend}", *self.flags)


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One cell to be measured; `user_flags` are the user's, in order: for a suite's cell those of this run alone."""

    model: Model
    target: Target
    user_flags: tuple[str, ...] = ()

    @property
    def key(self) -> CellKey:
        """The cell's model and target."""
        return CellKey(self.model.name, self.target.name)

    @property
    def argv(self) -> tuple[str, ...]:
        """All flags of the cell, without program, input and output; the user's come last, and so have the last word."""
        return (*self._common, *self.target.argv, *self.user_flags)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that every cell of its kind has."""
        return (*self._common, *self.user_flags)

    @property
    def _common(self) -> tuple[str, ...]:
        return () if self.target.whole else COMMON_FLAGS

    @property
    def hindered(self) -> bool:
        """True where it is known, before any compile, that there is nothing to compile."""
        return bool(self.target.unsupported or self.model.missing)

    @property
    def cost(self) -> float:
        """What it is expected to cost, in no particular unit; only the order matters."""
        return self.model.size_bytes * backend_of(self.target.backend).cost

    def command(self, *, lifted: bool = False) -> str:
        """The command line that gives the cell's artifact; the input's path must not reach the compiler."""
        extra = (LIFTED_LIMIT_FLAG,) if lifted else ()
        words = ("iree-compile", "-", *self.argv, *extra, "-o", f"{self.model.name}.vmfb")
        source = self.model.shown
        if self.model.url:
            return f"curl -fsSL {shlex.quote(self.model.url)} | {shlex.join(words)}"
        if not source.endswith(".onnx"):
            return f"{shlex.join(words)} < {shlex.quote(source)}"
        imported = shlex.quote(f"{self.model.name}.mlir")
        return f"iree-import-onnx {shlex.quote(source)} -o {imported} && {shlex.join(words)} < {imported}"


def select(
    models: Sequence[Model],
    targets: Sequence[Target],
    *,
    model_globs: Sequence[str] = (),
    target_globs: Sequence[str] = (),
) -> tuple[tuple[Model, ...], tuple[Target, ...]]:
    """Keep what the globs name (all, where there are none); a glob that matches nothing is an error."""
    model_names, target_names = [model.name for model in models], [target.name for target in targets]
    short = short_names(target_names, {target.name: target.backend for target in targets})
    require_matches(model_names, model_globs, "model")
    require_matches(target_names, target_globs, "target", short)
    kept_models, kept_targets = kept(model_names, model_globs), kept(target_names, target_globs, short)
    return (
        tuple(model for model in models if model.name in kept_models),
        tuple(target for target in targets if target.name in kept_targets),
    )


def narrowed(
    sides: Mapping[str, Snapshot],
    *,
    model_globs: Sequence[str] = (),
    target_globs: Sequence[str] = (),
    must_match: bool = True,
) -> dict[str, Snapshot]:
    """Snapshots with what the globs name alone, as if no more had been measured.

    Args:
        must_match: whether a glob that matches nothing on any side is an error.
    """
    models = sorted({name for side in sides.values() for name in (*side.models, *(c.key.model for c in side.cells))})
    targets = sorted({name for side in sides.values() for name in (*side.targets, *(c.key.target for c in side.cells))})
    short = short_names(targets, {name: backend for side in sides.values() for name, backend in side.targets.items()})
    if must_match:
        require_matches(models, model_globs, "model")
        require_matches(targets, target_globs, "target", short)
    chosen_models, chosen_targets = kept(models, model_globs), kept(targets, target_globs, short)
    return {
        label: replace(
            side,
            cells=tuple(
                cell for cell in side.cells if cell.key.model in chosen_models and cell.key.target in chosen_targets
            ),
            models={name: digest for name, digest in side.models.items() if name in chosen_models},
            targets={name: backend for name, backend in side.targets.items() if name in chosen_targets},
            only={
                name: target for name, target in side.only.items() if name in chosen_models and target in chosen_targets
            },
        )
        for label, side in sides.items()
    }


def plan(models: Sequence[Model], targets: Sequence[Target], user_flags: Sequence[str] = ()) -> tuple[PlannedCell, ...]:
    """Every model on every target, sorted by key."""
    cells = [PlannedCell(model, target, tuple(user_flags)) for model in models for target in targets]
    return tuple(sorted(cells, key=lambda cell: cell.key))
