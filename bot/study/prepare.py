"""Plan and measure the sides that a request asks for.

Models are read, compilers are fetched, and cells are planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec

from bot.compiler import inputs
from bot.compiler.cell_cache import CellCache, TextStore
from bot.compiler.command import command_compiler
from bot.compiler.compiler import Compiler, Session
from bot.compiler.importing import with_known_importer
from bot.compiler.inputs import not_cached
from bot.compiler.iree import Iree
from bot.compiler.measuring_code import remember_digest_in
from bot.compiler.toolchain import resolve
from bot.config.configuration import Config
from bot.config.targets import unfit_for_iree
from bot.core.planned import Model, PlannedCell, Target, narrowed, plan, select
from bot.core.sharding import assigned, shard
from bot.core.snapshot import Snapshot
from bot.core.spec import RESOLVED, Places, Sought
from bot.core.study import Pair, Sides
from bot.errors import UsageError
from bot.study.commits import Commit, as_commit, open_commit
from bot.study.measuring import measure_sides
from bot.study.model_files import load_models
from bot.study.rechecking import recheck
from bot.study.request import Request, Show
from bot.study.resources import Resources
from bot.study.side_plan import SidePlan
from bot.study.snapshot_files import stored_sides
from bot.system.cancel import Cancel
from bot.system.files import is_writable
from bot.system.git import Repository, repository_of
from bot.system.meter import Meter


@dataclass(frozen=True, slots=True)
class Planned:
    """The models and targets that a request selects, and its shard of their cells."""

    models: tuple[Model, ...]
    targets: tuple[Target, ...]
    cells: tuple[PlannedCell, ...]


@dataclass(frozen=True)
class Work:
    """A request of a configuration, which plans sides and measures them."""

    request: Request
    config: Config  # its thresholds judge the measured sides
    show: Show
    cancel: Cancel
    # the repository of the configuration; None to look for it
    checkout: Repository | None = None
    # the commit of the side; None for the files of the work tree
    commit: Commit | None = None

    def __post_init__(self) -> None:
        """Raise UsageError if IREE does not know a flag of the request."""
        if self.config.command:
            return
        for flag in self.request.flags:
            unfit = unfit_for_iree(flag)
            if unfit:
                raise UsageError(unfit[0], where="flags", hint=unfit[1])

    @cached_property
    def repository(self) -> Repository:
        """Return the repository of the configuration, else of the current directory."""
        if self.checkout:
            return self.checkout
        config_path = self.request.config
        if config_path:
            folder = config_path.resolve().parent
        else:
            folder = Path.cwd()
        return repository_of(folder, self.cancel)

    @property
    def texts(self) -> Callable[[str], str | None]:
        """Return the function that finds IR in the cache, for `bot.explain.texts`."""
        return TextStore(self.request.cache).load

    @property
    def places(self) -> Places:
        """Return where the configuration looks for wheels, beside the index."""
        return self.config.places

    def release(self, spec: str) -> str | None:
        """Return the release that a SPEC names, in its full form.

        A command without a package has no releases.
        """
        command = self.config.command
        if command is not None and not command.package:
            return None
        return self.places.release(spec)

    def planned(self) -> Planned:
        """Return the models, targets and cells that the request selects.

        The models are read only once.
        """
        return self._planned

    @cached_property
    def _planned(self) -> Planned:
        request = self.request
        config = self.config
        models, targets = select(
            load_models(config.models, self.repository.top, config.import_flags),
            config.targets,
            model_globs=request.models,
            target_globs=request.targets,
        )
        cells = plan(models, targets, (*config.flags, *request.flags))
        if request.plan is None:
            cells = shard(cells, *request.shard)
        else:
            cells = assigned(cells, request.plan, *request.shard, where="the plan")
        return Planned(models, targets, cells)

    def compiler(self, spec: str | Sought) -> Compiler:
        """Return the compiler of a SPEC.

        Its wheels are looked for in the places of the SPEC and of the configuration.
        Raises CompilerUnavailable.
        """
        sought = spec if isinstance(spec, Sought) else Sought(spec)
        request = self.request
        cancel = self.cancel
        say = self.show.say
        places = sought.places + self.places
        for note in sought.notes:
            say(note)
        if is_writable(request.cache.absolute()):
            remember_digest_in(request.cache)
        name = request.releases.get(sought.spec, sought.spec)
        if self.config.command:
            moving = sought.spec if name != sought.spec else ""
            sha = self.commit.sha if self.commit else ""
            return command_compiler(
                self.config.command,
                spec=name,
                cache=request.cache,
                places=places,
                say=say,
                cancel=cancel,
                moving=moving,
                commit=sha,
            )
        toolchain = resolve(
            name,
            cache=request.cache,
            cancel=cancel,
            say=say,
            places=places,
            timeout_seconds=self.config.timeout_seconds,
        )
        if name != sought.spec:
            spec = f"{sought.spec}{RESOLVED}{toolchain.info.spec}"
            toolchain = replace(
                toolchain, info=msgspec.structs.replace(toolchain.info, spec=spec)
            )
        return Iree(toolchain)

    def at_commit(
        self, spec: str | Sought, given_compiler: str = ""
    ) -> tuple[Work, Sought]:
        """Return a side's work and compiler; for `ref:NAME` those of that commit.

        `given_compiler`: used instead of the compiler that the commit pins.
        """
        sought = spec if isinstance(spec, Sought) else Sought(spec)
        request = self.request
        if self.commit is not None:
            return self, sought
        commit_spec = as_commit(
            sought.spec,
            config=self.config,
            config_path=request.config,
            cancel=self.cancel,
        )
        if not commit_spec:
            return self, sought
        commit = open_commit(
            commit_spec,
            config_path=request.config,
            cancel=self.cancel,
            stack=request.closing,
        )
        if not commit.brings_configuration:
            name = commit.config_path.name
            self.show.say(
                f"{commit_spec} has no {name}: the file of the work tree is used"
            )
        work = replace(
            self,
            request=replace(request, config=commit.config_path),
            config=commit.config,
            checkout=commit.repository,
            commit=commit,
        )
        return work, commit.compiler(given_compiler)

    def prepare(self, side: str, spec: str | Sought) -> SidePlan:
        """Return one side, ready to be measured.

        Its compiler is fetched. Its options have the names that this compiler knows.
        """
        work, sought = self.at_commit(spec)
        with work.commit.named() if work.commit else nullcontext():
            return work._prepared(side, sought)

    def with_inputs(
        self, cells: Sequence[PlannedCell], compiler: Compiler | None = None
    ) -> tuple[PlannedCell, ...]:
        """Return the builds with the files that each reads beside its model.

        `compiler`: None if it is not here.
        """
        if self.config.command:
            return tuple(cells)  # a command compiler finds its input files itself
        path = self.request.config
        folder = path.absolute().parent if path else Path.cwd()
        listed = inputs.with_inputs(cells, folder, self.repository.top)
        if isinstance(compiler, Iree):
            return with_known_importer(listed, compiler.toolchain.python)
        return listed

    def _prepared(self, side: str, sought: Sought) -> SidePlan:
        chosen = self.planned()
        compiler = self.compiler(sought)
        cells = compiler.in_its_words(side, chosen.cells, self.cancel)
        cells = self.with_inputs(cells, compiler)
        for line in not_cached(cells):
            self.show.say(line)
        return SidePlan(
            label=side,
            compiler=compiler,
            cells=cells,
            source=self.repository.source,
            models=chosen.models,
            targets=chosen.targets,
            is_temporary=self.commit is not None,
        )

    def sides(
        self, specs: Mapping[str, str], known: Sides | None = None
    ) -> dict[str, Snapshot]:
        """Return each side's snapshot: read if its SPEC is a snapshot, else measured.

        `known`: snapshots of other sides, which are returned, too.
        """
        snapshots = {**(known or {}), **stored_sides(specs)}
        plans = []
        for side, spec in specs.items():
            if side not in snapshots:
                plans.append(self.prepare(side, spec))
        return self.measured(plans, snapshots)

    def measured(
        self, plans: Sequence[SidePlan], snapshots: Sides | None = None
    ) -> dict[str, Snapshot]:
        """Measure the planned sides, narrow the others, and recheck base with head.

        The others are narrowed to the request's selectors. Without a plan, each
        selector must match something.

        `snapshots`: the sides that are measured already.
        """
        known = self.selected(snapshots or {}, must_match=not plans)
        return self.measured_variants(plans, known, _both_sides)

    def measured_variants(
        self,
        plans: Sequence[SidePlan],
        known: Sides,
        pairs: Callable[[Sides], Iterable[Pair]],
        *,
        together: bool = True,
    ) -> dict[str, Snapshot]:
        """Measure the variants of a study, and recheck each pair that it compares.

        Every question about several variants is measured here.

        `known`: the variants that are not measured now; `pairs`: which variants are
        compared, of all that are measured; `together`: False to measure one variant
        after the other, so that no more than one reads IR at a time.
        """
        sides = dict(known)
        if not plans:
            return sides
        new = [plan for plan in plans if plan.label not in known]
        with self.resources() as resources:
            if together and new:
                sides |= measure_sides(new, resources)
            elif not together:
                for plan in new:
                    self.show.say(f"variant {plan.label}")
                    sides |= measure_sides([plan], resources)
            return recheck(
                plans,
                sides=sides,
                rules=self.config,
                resources=resources,
                pairs=pairs(sides),
            )

    def session(self, scratch: Path) -> Session:
        """Return the session of a compiler that works with its files in a folder."""
        return Session(
            scratch=scratch,
            timeout_seconds=self.config.timeout_seconds,
            cancel=self.cancel,
            meter=Meter(),
        )

    @contextmanager
    def resources(self) -> Iterator[Resources]:
        """Yield the cache, the display and the limits that measuring needs.

        The display of progress ends with the context.
        """
        request = self.request
        with self.show.progress() as progress:
            keeps = is_writable(request.cache.absolute())
            if not keeps:
                consequence = "new builds are not kept"
                self.show.say(f"the cache {request.cache} is read-only: {consequence}")
            yield Resources(
                cache=CellCache(request.cache, keeps),
                jobs=request.jobs,
                timeout_seconds=self.config.timeout_seconds,
                cancel=self.cancel,
                progress=progress,
                texts=TextStore(request.cache, keeps),
            )

    def selected(
        self, sides: Mapping[str, Snapshot], *, must_match: bool = True
    ) -> dict[str, Snapshot]:
        """Return the snapshots with only the cells that the request selects.

        Raises UsageError for a glob that matches nothing.
        """
        return narrowed(
            sides,
            model_globs=self.request.models,
            target_globs=self.request.targets,
            must_match=must_match,
        )

    def say_failed(self, snapshot: Snapshot) -> None:
        """Print the cells that could not be measured, one per line.

        A shard has no report that would list them.
        """
        for cell in snapshot.cells:
            if not cell.measured and cell.status != "unsupported":
                reason = cell.failure.first_line if cell.failure else ""
                self.show.say(f"{cell.status}: {cell.key}: {reason}")


def _both_sides(sides: Sides) -> list[Pair]:
    """Return the pair of base and head if both are there."""
    if {"base", "head"} <= sides.keys():
        return [Pair("base", "head")]
    return []
