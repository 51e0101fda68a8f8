"""Compile head with base's value of each changed default of a compiler option.

A default is tried on the largest changed dispatch of its backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from bot.compiler.defaults import kept_defaults
from bot.compiler.iree import Iree
from bot.core.backends import backend_of_option
from bot.core.defaults import (
    MOST_CHANGED,
    DefaultChange,
    DefaultTrial,
    TriedDefault,
    compare_defaults,
)
from bot.core.delta import diff
from bot.core.explanation import DispatchDelta, code_differs, moved_bytes
from bot.core.proof import MOST_WORDS, KnobProof
from bot.core.snapshot import CellKey, Dispatch, Failure, Snapshot
from bot.explain.explanations import explanations
from bot.show.filters import plural
from bot.study.changed_dispatches import Moved
from bot.study.prepare import Work
from bot.study.program_side import ProgramSide
from bot.study.proving_defaults import (
    BuildSide,
    base_default,
    most_search_compiles,
    prove_default,
    why_set,
)
from bot.study.side_plan import SidePlan
from bot.study.tracing import SideTracer, side_tracers

MOST_COMPILES = 20
"""Compiles of all experiments with changed defaults together."""
_PROOF_COMPILES = 2


def changed_defaults(
    plans: Sequence[SidePlan], sides: Mapping[str, Snapshot], work: Work
) -> tuple[TriedDefault, ...]:
    """Return the options whose default changed, each with its experiment or why there is none.

    Options whose default only one side reports are among them.

    Only IREE's compilers are asked. They are not asked if both sides have the same
    compiler, or if no code changed.
    """
    compilers = {plan.label: plan.compiler for plan in plans}
    base = compilers.get("base")
    head = compilers.get("head")
    if (
        not isinstance(base, Iree)
        or not isinstance(head, Iree)
        or base.info.digest == head.info.digest
    ):
        return ()
    moved = _largest(sides, work)
    if not moved:
        return ()
    with work.resources() as resources:
        cache = resources.cache
        defaults_by_side = {}
        for name, compiler in (("base", base), ("head", head)):
            options = kept_defaults(
                compiler.toolchain, cache.root, work.cancel, keeps=cache.keeps
            )
            if isinstance(options, Failure):
                work.show.say(
                    f"defaults of compiler options: n/a: {name}: {options.first_line}"
                )
                return ()
            defaults_by_side[name] = options
        defaults = compare_defaults(defaults_by_side["base"], defaults_by_side["head"])
        changes = (*defaults.changed, *defaults.unreported)[:MOST_CHANGED]
        if not changes:
            return ()
        work.show.say(f"trying {plural(len(changes), 'changed default')} on head")
        with side_tracers(plans, resources) as tracers:
            trials = _Trials(sides, tracers, moved)
            tried_defaults = []
            for change in changes:
                tried_default = TriedDefault(
                    option=change.option,
                    base=change.base,
                    head=change.head,
                    tried=trials.tried(change),
                )
                tried_defaults.append(tried_default)
            return tuple(tried_defaults)


def _largest(sides: Mapping[str, Snapshot], work: Work) -> list[Moved]:
    """Return the dispatches that both sides have with different code, largest first."""
    deltas = diff(sides["base"], sides["head"])
    causes = explanations(
        sides["base"],
        head=sides["head"],
        deltas=deltas,
        sections=work.config.components,
    )
    moved = []
    for key, explanation in causes.items():
        for delta in explanation.dispatches:
            if not delta.base or not delta.head:
                continue
            if code_differs(delta.base, delta.head) and moved_bytes(delta):
                moved.append((key, delta))
    return sorted(
        moved, key=lambda pair: (-abs(moved_bytes(pair[1]) or 0), pair[0], pair[1].name)
    )


@dataclass
class _Trials:
    """The experiments with changed defaults, as many as the budget allows."""

    sides: Mapping[str, Snapshot]
    tracers: Mapping[str, SideTracer]
    moved: Sequence[Moved]
    compiles: int = 0

    def tried(self, change: DefaultChange) -> DefaultTrial:
        """Try one default on the largest changed dispatch of its backend."""
        chosen = self._chosen(change.option)
        if chosen is None:
            return DefaultTrial("not-tried", "no dispatch of its backend changed")
        key, delta = chosen
        untried = partial(
            DefaultTrial,
            "not-tried",
            moved_bytes=moved_bytes(delta),
            model=key.model,
            target=key.target,
            dispatch=delta.name,
        )
        needed_compiles = most_search_compiles(change) + _PROOF_COMPILES
        if self.compiles + needed_compiles > MOST_COMPILES:
            return untried("compile budget used up")
        if delta.base is None or delta.head is None:
            return untried("one side alone has it")
        base = self._build("base", key, delta.base)
        head = self._build("head", key, delta.head)
        if isinstance(base, str):
            return untried(base)
        if isinstance(head, str):
            return untried(head)
        if reason := why_set(base, head, change.option):
            return untried(reason)
        found = base_default(base, change)
        self.compiles += found.compiles
        if found.value is None:
            return untried(found.why)
        proof = prove_default(base, head, replace(change, base=found.value))
        self.compiles += proof.compiles
        trial = _trial(proof, key, delta)
        if change.base is None:
            trial = replace(trial, base=found.value)
        return trial

    def _chosen(self, option: str) -> Moved | None:
        """Return the largest dispatch whose backend the option is for."""
        backend = backend_of_option(option)
        backends = {**self.sides["base"].targets, **self.sides["head"].targets}
        for key, delta in self.moved:
            if backend in (None, backends.get(key.target)):
                return key, delta
        return None

    def _build(self, side: str, key: CellKey, row: Dispatch) -> BuildSide | str:
        cells = self.sides[side].by_key
        program: ProgramSide | str = self.tracers[side].program_side(cells[key])
        if isinstance(program, str):
            return f"{side}: {program}"
        return BuildSide(
            setup=program.setup, argv=program.argv, source=program.source, row=row
        )


def _trial(proof: KnobProof, key: CellKey, delta: DispatchDelta) -> DefaultTrial:
    return DefaultTrial(
        status=proof.status,  # type: ignore[arg-type]  # one of the same four words
        why=proof.why[:MOST_WORDS],
        moved_bytes=proof.moved_bytes,
        restored_bytes=proof.restored_bytes,
        model=key.model,
        target=key.target,
        dispatch=delta.name,
    )
