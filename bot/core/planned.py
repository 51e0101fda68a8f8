"""Plan the builds, and find the names that a selector matches.

A selector is a glob of names. If no name matches, it is a glob of the short names that
reports show.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product

from msgspec.structs import replace

from bot.core.backends import backend_of
from bot.core.mappings import only_named
from bot.core.near import near_or_known
from bot.core.record import Small
from bot.core.snapshot import UNLISTED, CellKey, Snapshot
from bot.errors import UsageError

_SHOWN_CELLS = 4


def short_names(targets: Iterable[str], backends: Mapping[str, str]) -> dict[str, str]:
    """Return target → its name without the backend it shares with others.

    The name stays whole if two names would become equal.
    """
    full = sorted(targets)
    short = {}
    for target in full:
        backend = backends.get(target, "")
        if backend and target.startswith(backend):
            tail = target[len(backend) :].lstrip("-_")
        else:
            tail = ""
        short[target] = tail or target.removesuffix("-spirv")
    names = [*short.values(), *full]
    for target in full:
        name = short[target]
        if name != target and names.count(name) > 1:
            short[target] = target
    return short


def matching(
    names: Sequence[str], selector: str, short: Mapping[str, str] | None = None
) -> list[str]:
    """Return the names that a selector matches; an exact name matches only itself.

    `…` stands for the part of a name that a report leaves out. `short`: name → its
    short name, if it has one.
    """
    if selector in names:
        return [selector]
    glob = selector.replace("…", "*")
    short = short or {}
    by_name = [name for name in names if fnmatchcase(name, glob)]
    by_short = [name for name in names if fnmatchcase(short.get(name, name), glob)]
    return by_name or by_short


def beginning(
    names: Sequence[str], start: str, short: Mapping[str, str] | None = None
) -> list[str]:
    """Return the names, or short names, in which a text begins a word: first or after a `_`.

    So the function of a dispatch may be left out, as in `dispatch_9`. If no name has the
    text, it is a glob for what follows the function. Names with a `_` after the text
    win: `dispatch_1` does not mean `main_dispatch_10_matmul` if there is a
    `main_dispatch_1_matmul`. Dispatches of initializers are left out if others match.
    """
    begun = []
    for name in names:
        short_name = (short or {}).get(name, name)
        if f"_{start}" in f"_{name} _{short_name}":
            begun.append(name)
    begun = begun or matching(names, f"*_{start}", short)
    whole = []
    for name in begun:
        after = f"{name}_".partition(start)[2]
        if after.startswith("_"):
            whole.append(name)
    whole = whole or begun
    return [name for name in whole if not name.startswith("_initializer_")] or whole


def kept(
    names: Sequence[str],
    selectors: Sequence[str],
    short: Mapping[str, str] | None = None,
) -> set[str]:
    """Return the names that any selector matches; all names without a selector."""
    if not selectors:
        return set(names)
    result = set[str]()
    for selector in selectors:
        result.update(matching(names, selector, short))
    return result


def require_matches(
    names: Sequence[str],
    selectors: Iterable[str],
    noun: str,
    short: Mapping[str, str] | None = None,
) -> None:
    """Raise UsageError with the nearest names for a selector that matches nothing.

    `noun` is `model` or `target`.
    """
    for selector in selectors:
        if not matching(names, selector, short):
            hint = near_or_known(selector, names, short)
            raise UsageError(
                f"matches no {noun}", where=f"--{noun} {selector}", hint=hint
            )


SIDES = ("base", "head")
# models of this size take as long to compile as an empty one: 0.2 CPU seconds
_NEXT_TO_NOTHING_BYTES = 8 << 10
COMMON_FLAGS = (
    "--iree-dispatch-creation-enable-aggressive-fusion",
    "--iree-llvmcpu-debug-symbols=false",
    "--iree-vm-bytecode-module-strip-source-map",
    "--iree-vm-emit-polyglot-zip=false",
)
"""Flags of every compile.

Aggressive fusion, and the three flags without which an artifact's size depends on the
path of its input.
"""

LIBRARY_PATH_OPTION = "--iree-llvmcpu-static-library-output-path"
"""Where a static library goes: a relative path, in the folder of the compile."""

LIFTED_LIMIT_FLAG = "--iree-llvmcpu-stack-allocation-limit=1073741824"
"""Lifts the compiler's 32 KiB stack gate (a power of two, 1 GiB).

With this flag a refused cell can be measured.
"""

LIFTED = "with the stack limit lifted: "
"""Begins a failure's message if the cell still fails with the stack gate lifted."""


Places = tuple[tuple[str, str], ...]
"""Flags that name a path: each as it is printed, and with the absolute path."""


class Model(Small, frozen=True):
    """One model file."""

    name: str
    path: str
    shown: str  # the path to print: relative to the repository or to the configuration
    digest: str  # SHA-256 (hex) of its bytes
    size_bytes: int  # size of the file, the first estimate of the compile's cost
    # options of the importer of ONNX; () for any other model
    import_flags: tuple[str, ...] = ()
    import_places: Places = ()  # those of them that name a path, each with the absolute one

    @property
    def import_argv(self) -> tuple[str, ...]:
        """Return the options for the importer, with absolute paths."""
        places = dict(self.import_places)
        return tuple(places.get(flag, flag) for flag in self.import_flags)


class Target(Small, frozen=True):
    """A target backend with its flags."""

    name: str
    backend: str
    flags: tuple[str, ...] = ()
    unsupported: str | None = None  # why it cannot compile stand-alone
    # ranges of releases (`<3.11`), each with what stands there in place of the flags;
    # the first that has the compiler's release counts
    releases: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the backend's option and its flags."""
        return (f"--iree-hal-target-backends={self.backend}", *self.flags)


class PlannedCell(Small, frozen=True):
    """One cell to be measured; `user_flags` are the user's, in order.

    `run`: the words of the compiler that is a command, in place of `iree-compile` and
    what it always gets.
    """

    model: Model
    target: Target
    user_flags: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    places: Places = ()
    # SHA-256 (hex) of the files that it reads beside its model; empty for none
    inputs: str = ""
    # why not all of these files are known, so that nothing of it is reused
    unlisted: str = ""

    @property
    def key(self) -> CellKey:
        """Return the cell's model and target."""
        return CellKey(self.model.name, self.target.name)

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the flags for the compiler: the printed ones, with absolute paths."""
        places = dict(self.places)
        return tuple(places.get(flag, flag) for flag in self.printed)

    def argv_for(self, status: str) -> tuple[str, ...]:
        """Return these flags, and for a cell with status `over-stack-limit` one that lifts it."""
        if status == "over-stack-limit":
            return (*self.argv, LIFTED_LIMIT_FLAG)
        return self.argv

    @property
    def printed(self) -> tuple[str, ...]:
        """Return all flags of the cell, without program, input and output.

        The user's come last, and so have the last word.
        """
        if self.run:
            return (*self.run, *self.target.flags, *self.user_flags)
        return (*self._common, *self.target.argv, *self.user_flags)

    @property
    def known_inputs(self) -> str:
        """Return the files that it reads beside its model as a snapshot names them."""
        if self.unlisted:
            return UNLISTED
        return self.inputs

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags that every cell of its kind has."""
        return (*self._common, *self.user_flags)

    @property
    def _common(self) -> tuple[str, ...]:
        if self.run:
            return ()
        return COMMON_FLAGS

    @property
    def cost(self) -> float:
        """Return the expected cost, in no particular unit: only the order matters."""
        return (self.model.size_bytes + _NEXT_TO_NOTHING_BYTES) * backend_of(
            self.target.backend
        ).cost

    def command(self, *, lifted: bool = False) -> str:
        """Return the command line that gives the cell's artifact.

        The compiler must not see the path of the input.
        """
        if self.run:
            return shlex.join(self.printed)
        extra = (LIFTED_LIMIT_FLAG,) if lifted else ()
        arguments = (
            "iree-compile",
            "-",
            *self.printed,
            *extra,
            "-o",
            f"{self.model.name}.vmfb",
        )
        source = self.model.shown
        if not source.endswith(".onnx"):
            return f"{shlex.join(arguments)} < {shlex.quote(source)}"
        imported = shlex.quote(f"{self.model.name}.mlir")
        importer = shlex.join(
            ("iree-import-onnx", source, *self.model.import_flags, "-o")
        )
        return f"{importer} {imported} && {shlex.join(arguments)} < {imported}"


def select(
    models: Sequence[Model],
    targets: Sequence[Target],
    *,
    model_globs: Sequence[str] = (),
    target_globs: Sequence[str] = (),
) -> tuple[tuple[Model, ...], tuple[Target, ...]]:
    """Keep the models and targets that the globs name; all without globs.

    A glob that matches nothing is an error.
    """
    model_names = [model.name for model in models]
    backends = {target.name: target.backend for target in targets}
    target_names = [target.name for target in targets]
    short = short_names(target_names, backends)
    require_matches(model_names, model_globs, "model")
    require_matches(target_names, selectors=target_globs, noun="target", short=short)
    kept_models = kept(model_names, model_globs)
    kept_targets = kept(target_names, target_globs, short)
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
    """Return snapshots with only what the globs name, as if no more had been measured.

    `must_match`: whether a glob that matches nothing on any side is an error.
    """
    if not (model_globs or target_globs):
        return dict(sides)
    model_names = set[str]()
    backends = dict[str, str]()
    target_names = set[str]()
    for side in sides.values():
        backends |= side.targets
        model_names.update(side.models, (cell.key.model for cell in side.cells))
        target_names.update(side.targets, (cell.key.target for cell in side.cells))
    models = sorted(model_names)
    targets = sorted(target_names)
    short = short_names(targets, backends)
    if must_match:
        require_matches(models, model_globs, "model")
        require_matches(targets, selectors=target_globs, noun="target", short=short)
    chosen_models = kept(models, model_globs)
    chosen_targets = kept(targets, target_globs, short)

    def part(side: Snapshot) -> Snapshot:
        cells = []
        for cell in side.cells:
            if cell.model in chosen_models and cell.target in chosen_targets:
                cells.append(cell)
        return replace(
            side,
            cells=tuple(cells),
            models=only_named(side.models, chosen_models),
            targets=only_named(side.targets, chosen_targets),
        )

    return {label: part(side) for label, side in sides.items()}


def only_cell(keys: Collection[CellKey]) -> CellKey:
    """Return the only cell; raises UsageError if there are several, or none."""
    if len(keys) == 1:
        return next(iter(keys))
    listed = ", ".join(map(str, sorted(keys)[:_SHOWN_CELLS])) + (
        ", …" if len(keys) > _SHOWN_CELLS else ""
    )
    if keys:
        message = f"{len(keys)} builds match: {listed}"
    else:
        message = "no build matches"
    raise UsageError(
        message, where="--model and --target", hint="name one model and one target"
    )


def plan(
    models: Sequence[Model], targets: Sequence[Target], user_flags: Sequence[str] = ()
) -> tuple[PlannedCell, ...]:
    """Return every model on every target, sorted by key."""
    flags = tuple(user_flags)
    pairs = product(models, targets)
    cells = [PlannedCell(model, target, flags) for model, target in pairs]
    return tuple(sorted(cells, key=lambda cell: cell.key))


def covers(wide: str, narrow: str) -> bool:
    """Return whether `wide` certainly matches every name that `narrow` matches.

    If `*` is the only wildcard of `wide`, matching the globs as text proves it. A
    character class in `narrow` proves nothing: its text is longer than what it matches.
    """
    if wide in (narrow, "*"):
        return True
    if not set(narrow) & set("*?["):
        return fnmatchcase(narrow, wide)
    return not set(wide) & set("?[") and "[" not in narrow and fnmatchcase(narrow, wide)
