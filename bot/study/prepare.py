"""Cells of suites: planned with the flags of their module alone, their models fetched once into the cache.

A fetched model is kept under the SHA-256 of its bytes, beside a note of the address that gave them, and is read whole
before it is believed. One that cannot be had makes its cells `failed` with that reason; the others go on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

import msgspec
from msgspec import structs

from bot.compiler.bindings import with_reader
from bot.compiler.cell_cache import CellCache, TextStore, cell_key, digest_of
from bot.compiler.command import command_compiler
from bot.compiler.compiler import Compiler
from bot.compiler.iree import Iree
from bot.compiler.repository import Repository, repository_of
from bot.compiler.storage import touch
from bot.compiler.toolchain import resolve
from bot.config.configuration import Config
from bot.config.torch_models import SuiteModule
from bot.core.planned import Model, PlannedCell, Target, narrowed, plan, select
from bot.core.report import Report
from bot.core.sharding import assigned, shard
from bot.core.snapshot import Snapshot, from_lines
from bot.core.spec import RESOLVED, Places, Sought
from bot.errors import BotError, InputError, Interrupted, OutputError
from bot.study.run import Progress, Resources, SidePlan, measure_sides, recheck
from bot.system.defaults import private_hosts
from bot.system.downloads import pieces, shown
from bot.system.files import PART_PREFIX, is_writable, make_directory, temporary_directory, write_atomically
from bot.system.processes import Cancel

FOLDER = "models"
"""Of the cache."""
_GUESSED_BYTES = 1 << 20
"""Of a model that is not here: runners that share a plan must guess alike, whatever their caches hold."""
_READ_BYTES = 1 << 20


def suite_cells(
    modules: Iterable[SuiteModule], flags: Sequence[str], load: Callable[[Path], Model]
) -> tuple[PlannedCell, ...]:
    """A cell for each module; models behind an address are not fetched yet.

    `flags`: of this run alone: what a configuration has for its own cells would make other figures of a suite's;
    `load`: reads a model that is here.
    """
    return tuple(PlannedCell(_model(module, load), module.target, tuple(flags)) for module in modules)


def _model(module: SuiteModule, load: Callable[[Path], Model]) -> Model:
    if isinstance(module.mlir, str):
        return Model(module.name, "", shown(module.mlir), "", _GUESSED_BYTES, url=module.mlir)
    return structs.replace(load(module.mlir), name=module.name)


def with_models(
    cells: Sequence[PlannedCell],
    modules: Iterable[SuiteModule],
    cache: Path,
    say: Callable[[str], None],
    cancel: Cancel,
) -> tuple[PlannedCell, ...]:
    """The cells with their models at hand, or with why they are not."""
    by_name = {module.name: module for module in modules}
    return tuple(
        structs.replace(cell, model=_fetched(cell.model, by_name[cell.model.name], cache / FOLDER, say, cancel))
        if cell.model.url
        else cell
        for cell in cells
    )


def _fetched(model: Model, module: SuiteModule, folder: Path, say: Callable[[str], None], cancel: Cancel) -> Model:
    try:
        path = _known(model.url, module.sha256, folder) or _fetch(model.url, module, folder, say, cancel)
    except Interrupted:
        raise
    except BotError as error:
        return structs.replace(model, missing=f"not fetched: {error.line}")
    return structs.replace(model, path=str(path), digest=path.stem, size_bytes=path.stat().st_size)


def _note(url: str, folder: Path) -> Path:
    return folder / f"{hashlib.sha256(url.encode()).hexdigest()}.from"


def _known(url: str, expected: str, folder: Path) -> Path | None:
    """What the address gave before; None where that is not known, not whole, or not what is expected."""
    note = _note(url, folder)
    try:
        path = folder / note.read_text(encoding="ascii").strip()
        digest = path.stem
        with path.open("rb") as file:
            pieces_of = iter(lambda: file.read(_READ_BYTES), b"")
            sha256 = hashlib.sha256()
            for piece in pieces_of:
                sha256.update(piece)
            is_whole = sha256.hexdigest() == digest
    except (OSError, ValueError):
        return None
    if not is_whole or (expected and expected != digest):
        return None
    touch(path)
    touch(note)
    return path


def _fetch(url: str, module: SuiteModule, folder: Path, say: Callable[[str], None], cancel: Cancel) -> Path:
    say(f"fetching the model of {module.name}: {shown(url)}")
    sha256 = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for piece in pieces(url, module.max_bytes, cancel.check, private=private_hosts()):
            sha256.update(piece)
            yield piece

    make_directory(folder)
    with temporary_directory(PART_PREFIX, folder) as place:
        write_atomically(place / FOLDER, hashed())
        digest = sha256.hexdigest()
        if module.sha256 and module.sha256 != digest:
            hint = "correct sha256 of the suite, if the model was meant to change"
            raise InputError(f"has the SHA-256 {digest}, and {module.sha256} is expected", where=shown(url), hint=hint)
        if not (place / FOLDER).stat().st_size:
            raise InputError("is empty", where=shown(url), hint="a model holds at least one function")
        is_bytecode = url.partition("?")[0].endswith(".mlirbc")
        path = folder / f"{digest}{'.mlirbc' if is_bytecode else '.mlir'}"
        os.replace(place / FOLDER, path)
    write_atomically(_note(url, folder), f"{path.name}\n".encode())
    return path


def only(cells: Iterable[PlannedCell]) -> Mapping[str, str]:
    """Model → the one target that it is planned for, of a suite's cells."""
    return {cell.model.name: cell.target.name for cell in cells if cell.target.whole}


# From a request, a configuration and a repository state to planned sides, and to the snapshots of both.


_FAILED_AT_ONCE = 40


class Show(Protocol):
    """What a story tells while it goes on."""

    def say(self, line: str) -> None:
        """One line of news."""

    def report(self, report: Report, files: Sequence[Path]) -> None:
        """The outcome, and where it was written."""

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """The display of long work."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for.

    Attributes:
        specs: side, or `both` → SPEC; a side that is not named comes from the configuration.
        flags: for every cell, beside the configuration's.
        shard: (index from 1, count) of the part to measure.
        plan: the text that `plan --shards` printed; without it cells are spread by size.
        plan_at: where that text stands, for what is said of it.
        tried: flags for the cells of the head side alone.
        configs: side → a configuration of its own, in place of `config`; None is the packaged one.
        releases: `latest` or `nightly` → the release that it is for all runners of a plan.
        suspects: whether the compiler's commits are looked up on GitHub.
        source: a clone of the compiler's repository in which they are looked up instead; None for none.
    """

    specs: dict[str, str] = field(default_factory=dict)
    config: Path | None = None
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    jobs: int = 1
    cache: Path = Path(".cache")
    out: Path = Path("out")
    shard: tuple[int, int] = (1, 1)
    plan: str | None = None
    plan_at: str = ""
    tried: tuple[str, ...] = ()
    configs: Mapping[str, Path | None] = field(default_factory=dict)
    releases: Mapping[str, str] = field(default_factory=dict)
    suspects: bool = False
    source: Path | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """What a request selects: models, targets, and its shard of their cells.

    Attributes:
        models, targets: with those of suites; what is the target of several modules stands there without their flags.
        only: model of a suite → its target.
    """

    models: tuple[Model, ...]
    targets: tuple[Target, ...]
    cells: tuple[PlannedCell, ...]
    only: Mapping[str, str] = field(default_factory=dict)


def planned(request: Request, config: Config, repository: Repository) -> Planned:
    """The models, targets and cells that a request selects of a configuration."""
    top = repository.top.resolve() if repository.top else None
    models, targets = load_models(config.models, repository.top, config.import_flags), config.targets
    suite = suite_cells(config.suites, request.flags, lambda path: _load_model(path, top))
    models, targets, suite = _selected(models, targets if models or not suite else (), suite, request)
    product = plan(models, targets, (*config.flags, *request.flags))
    cells = tuple(sorted((*product, *suite), key=lambda cell: cell.key))
    if request.plan is None:
        cells = shard(cells, *request.shard)
    else:
        cells = assigned(cells, request.plan, *request.shard, where=request.plan_at or "the plan")
    models += tuple(cell.model for cell in suite)
    return Planned(models, (*targets, *_targets_of(suite)), cells, only(suite))


def _selected(
    models: tuple[Model, ...], targets: tuple[Target, ...], suite: tuple[PlannedCell, ...], request: Request
) -> tuple[tuple[Model, ...], tuple[Target, ...], tuple[PlannedCell, ...]]:
    every = (*models, *(cell.model for cell in suite)), (*targets, *_targets_of(suite))
    chosen = select(*every, model_globs=request.models, target_globs=request.targets)
    names = [{one.name for one in some} for some in chosen]
    models = tuple(model for model in models if model.name in names[0])
    targets = tuple(target for target in targets if target.name in names[1])
    suite = tuple(cell for cell in suite if cell.key.model in names[0] and cell.key.target in names[1])
    return (models, targets, suite) if models and targets else ((), (), suite)


def _targets_of(suite: Sequence[PlannedCell]) -> tuple[Target, ...]:
    by_name = {cell.target.name: cell.target for cell in suite}
    return tuple(structs.replace(by_name[name], flags=()) for name in sorted(by_name))


def load_models(paths: Sequence[Path], top: Path | None, import_flags: tuple[str, ...] = ()) -> tuple[Model, ...]:
    """Read every model once; raises InputError for one that is missing, empty or unreadable.

    `top` is the repository's work tree: paths are printed relative to it, or to the configuration's directory.
    """
    models = (_load_model(path, top.resolve() if top else None) for path in paths)
    return tuple(structs.replace(m, import_flags=import_flags) if m.path.endswith(".onnx") else m for m in models)


def _load_model(path: Path, top: Path | None) -> Model:
    try:
        data = path.read_bytes()
    except OSError as error:
        hint = "check `models` of the configuration"
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from None
    if not data.strip():
        raise InputError("is empty", where=str(path), hint="a model holds at least one function")
    whole = path.resolve()
    inside = top is not None and whole.is_relative_to(top)
    shown = whole.relative_to(top).as_posix() if top and inside else f"{whole.parent.name}/{whole.name}"
    try:
        shown.encode()
    except UnicodeEncodeError:
        raise InputError("has a name that is not UTF-8", where=ascii(shown), hint="rename it") from None
    return Model(path.stem, str(whole), shown, hashlib.sha256(data).hexdigest(), len(data))


def repository_at(config: Path | None, cancel: Cancel) -> Repository:
    """The repository that holds the configuration, else the current directory."""
    return repository_of(config.resolve().parent if config else Path.cwd(), cancel)


def prepare(
    side: str, spec: str | Sought, request: Request, config: Config, repository: Repository, show: Show, cancel: Cancel
) -> SidePlan:
    """One side, ready to be measured: its compiler fetched, its options under the names which that compiler knows."""
    chosen = planned(request, config, repository)
    compiler = fetched(spec, request, config, show, cancel)
    cells = with_models(chosen.cells, config.suites, request.cache.absolute(), show.say, cancel)
    cells = tuple(
        structs.replace(cell, target=structs.replace(cell.target, unsupported=compiler.refuses(cell.target)))
        for cell in cells
    )
    cells = compiler.in_its_words(side, cells, cancel)
    at_hand = {cell.model.name: cell.model for cell in cells}
    return SidePlan(
        label=side,
        compiler=compiler,
        cells=cells,
        source=repository.source,
        models=tuple(at_hand.get(model.name, model) for model in chosen.models),
        targets=chosen.targets,
        only=chosen.only,
        flags=request.flags if chosen.only else None,
    )


def fetched(spec: str | Sought, request: Request, config: Config, show: Show, cancel: Cancel) -> Compiler:
    """A side's compiler, from where it says that wheels are or its configuration does; raises CompilerUnavailable."""
    sought = spec if isinstance(spec, Sought) else Sought(spec)
    for note in sought.notes:
        show.say(note)
    if config.compiler.command:
        places = sought.places + Places(config.compiler.find_links)
        return command_compiler(config.compiler.command, sought.spec, request.cache, places, show.say, cancel)
    name, places = request.releases.get(sought.spec, sought.spec), sought.places + Places(config.compiler.find_links)
    toolchain = resolve(name, request.cache, cancel, show.say, places, config.timeout_seconds)
    toolchain = with_reader(toolchain, request.cache, cancel, show.say)
    if name != sought.spec:
        shown = f"{sought.spec}{RESOLVED}{toolchain.info.spec}"
        toolchain = replace(toolchain, info=msgspec.structs.replace(toolchain.info, spec=shown))
    return Iree(toolchain)


def measured(
    plans: Sequence[SidePlan],
    known: Mapping[str, Snapshot],
    request: Request,
    rules: Config,
    show: Show,
    cancel: Cancel,
) -> dict[str, Snapshot]:
    """Measure the planned sides, beside those that are known, and compile again what `bot.study.run` says.

    The request's selectors hold for the known ones, too. Where there is a plan, it has shown that they match something.
    """
    known = selected(known, request, must_match=not plans)
    if not plans:
        return known
    with open_resources(request, rules, show, cancel) as resources:
        new = [plan for plan in plans if plan.label not in known]
        sides = {**known, **(measure_sides(new, resources) if new else {})}
        return recheck(plans, sides, rules, resources)


@contextmanager
def open_resources(request: Request, rules: Config, show: Show, cancel: Cancel) -> Iterator[Resources]:
    """What measuring needs beside the plans; the display of progress ends with the context."""
    with show.progress() as progress:
        keeps = is_writable(request.cache.absolute())
        if not keeps:
            show.say(f"the cache {request.cache} is read-only: it is used, and nothing that this run measures is kept")
        cache, texts = CellCache(request.cache, keeps), TextStore(request.cache, keeps)
        yield Resources(cache, request.jobs, rules.timeout_seconds, cancel, progress, texts)


def selected(sides: Mapping[str, Snapshot], request: Request, *, must_match: bool = True) -> dict[str, Snapshot]:
    """What the request's selectors leave of snapshots; raises UsageError for a glob that matches nothing."""
    return narrowed(sides, model_globs=request.models, target_globs=request.targets, must_match=must_match)


def say_failed(snapshot: Snapshot, show: Show) -> None:
    """Name the cells that could not be measured, a line each: in a shard nobody else does."""
    failed = [cell for cell in snapshot.cells if not cell.measured and cell.status != "unsupported"]
    for cell in failed[:_FAILED_AT_ONCE]:
        show.say(f"{cell.status}: {cell.key}: {cell.failure.first_line if cell.failure else ''}")
    if len(failed) > _FAILED_AT_ONCE:
        show.say(f"and {len(failed) - _FAILED_AT_ONCE} more: the snapshot has them all")


def is_snapshot(spec: str) -> bool:
    """True for a SPEC that names a snapshot measured earlier."""
    return spec.endswith(".json")


def load_snapshot(path: Path) -> Snapshot:
    """Read one snapshot file; raises InputError."""
    try:
        with path.open("rb") as file:
            return from_lines(file, str(path))
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text, so no snapshot", where=str(path)) from None
    except OSError as error:
        hint = "measure one with: code-size-bot measure --compiler SPEC --out FILE"
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from None


def require_writable(directory: Path) -> None:
    """Find out before an hour of compiles, not after."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=directory):
            pass
    except OSError as error:
        hint = "choose another place with --out"
        raise OutputError(f"cannot be written to: {error.strerror}", where=str(directory), hint=hint) from None


def plan_digest(side: SidePlan) -> str:
    """SHA-256 (hex) of all that a side's measurements depend on: compiler, models, targets and flags, by name."""
    keys = [f"{cell.key}\n{cell_key(side.compiler.info.digest, cell)}" for cell in side.cells]
    return digest_of(sorted(keys))
