"""Measure the releases or stored baselines of a history together, and explain its moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs
from packaging.version import InvalidVersion, Version

from bot.compiler.compiler import Session
from bot.compiler.iree import flags_of
from bot.config.configuration import BaselineChoice, Config
from bot.core.baseline import Entry
from bot.core.explanation import Step
from bot.core.history import TRACKED, History, Move, totals_of
from bot.core.planned import LIFTED_LIMIT_FLAG
from bot.core.report import Baseline, Report
from bot.core.slow_growth import Growth
from bot.core.snapshot import Cell, CellKey, Snapshot
from bot.core.spec import release_in
from bot.core.study import SHORT, Study, Variant, named_apart, neighbours, of_commit
from bot.errors import CompilerUnavailable, InputError, UsageError
from bot.explain.texts import Texts, no_texts
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import Store
from bot.study.comparison import reported, step_of
from bot.study.prepare import Work, is_snapshot, load_snapshot
from bot.study.run import SidePlan, measure_sides, recheck, repeat_unsteady
from bot.study.slow_growth import growth_of, line_of
from bot.system.files import temporary_directory
from bot.system.git import Git
from bot.system.processes import Meter


def release_study(specs: Sequence[str], work: Work) -> Study:
    """Return each release with its snapshot, or the reason why there is none.

    They are sorted by version. Those that can be had are measured together and fill the
    processors.

    Raises:
        InputError: a snapshot cannot be read.
        UsageError: nothing is selected.
        CompilerUnavailable: not one of them can be had.
    """
    specs = tuple(dict.fromkeys(work.release(spec) or spec for spec in specs))
    snapshots = {spec: load_snapshot(Path(spec)) for spec in specs if is_snapshot(spec)}
    snapshots = work.selected(snapshots, must_match=len(snapshots) == len(specs))
    plans, missing = _plans([spec for spec in specs if spec not in snapshots], work)
    sides = _sides(plans, snapshots, work)
    variants = []
    for spec in specs:
        shown_spec = spec
        if spec in plans:
            shown_spec = plans[spec].compiler.info.spec
        elif is_snapshot(spec):
            shown_spec = Path(spec).name
        side = sides.get(spec)
        if side is None:
            name = release_in(spec) or Path(spec).name
            variants.append(Variant(name, shown_spec, reason=missing[spec]))
        else:
            compiler = side.compiler
            name = (
                release_in(compiler.spec)
                or compiler.spec
                or compiler.version
                or shown_spec
            )
            variants.append(Variant(name, shown_spec, side))
    study = named_apart(_each_once(variants, work.show.say))
    if len(missing) == len(specs):
        first = study.variants[0]
        raise CompilerUnavailable(
            "no release is available", where=first.spec, hint=first.reason
        )
    return _by_version(study, work.show.say)


def _by_version(study: Study, say: Callable[[str], None]) -> Study:
    """Return the study sorted by version; as it is where a variant has no version."""
    versions: dict[str, Version] = {}
    for variant in study.variants:
        version = _version(variant.snapshot or variant.name)
        if version is None:
            say(
                f"{variant.name} has a version that cannot be ordered: releases keep the"
                " order of the command"
            )
            return study
        versions[variant.name] = version
    return Study(
        tuple(sorted(study.variants, key=lambda variant: versions[variant.name]))
    )


def _each_once(
    variants: Sequence[Variant], say: Callable[[str], None]
) -> list[Variant]:
    """Return the variants with each compiler once, the last that was named.

    What is left out is said.
    """
    last = dict[object, Variant]()
    for place, variant in enumerate(variants):
        # of a gap, or of a compiler without a digest, nobody knows
        same: object = place
        if (side := variant.snapshot) and side.compiler.digest:
            same = (
                side.compiler.digest,
                side.flags,
                frozenset(side.models.items()),
                frozenset(side.targets.items()),
            )
        if before := last.pop(same, None):
            say(
                f"left out: {before.spec}: the same compiler, models, targets and flags"
                f" as {variant.spec}"
            )
        last[same] = variant
    return list(last.values())


def _plans(
    specs: Sequence[str], work: Work
) -> tuple[dict[str, SidePlan], dict[str, str]]:
    """Return SPEC → the side, ready to be measured; and SPEC → why it cannot be."""
    plans: dict[str, SidePlan] = {}
    missing: dict[str, str] = {}
    if specs:
        work.planned()  # what is wrong with the selectors is wrong for all releases
    for spec in dict.fromkeys(specs):
        try:
            plan = work.prepare(release_in(spec) or Path(spec).name, spec)
            _require_start(plan, work)
            plans[spec] = replace(plan, label=spec)
        except (CompilerUnavailable, UsageError) as error:
            # gone from the page, or without an option of the flags
            missing[spec] = error.line
            work.show.say(f"left out: {error.line}")
    return plans, missing


def _require_start(plan: SidePlan, work: Work) -> None:
    """Start the compiler of a side once: one that cannot start would end all."""
    with temporary_directory("run-") as scratch:
        session = Session(
            scratch=scratch,
            timeout_seconds=work.config.timeout_seconds,
            cancel=work.cancel,
            meter=Meter(),
        )
        with plan.compiler.at_work(session):
            pass


def _sides(
    plans: dict[str, SidePlan], snapshots: dict[str, Snapshot], work: Work
) -> dict[str, Snapshot]:
    """Return all snapshots; recheck those measured here, each against the one before."""
    if not plans:
        return snapshots
    with work.resources() as resources:
        sides = {**snapshots, **measure_sides(list(plans.values()), resources)}
        before: Snapshot | None = None
        for spec in sorted(sides, key=lambda spec: _version(sides[spec]) or _ZERO):
            if spec in plans and before is not None:
                pair = {"base": before, "head": sides[spec]}
                sides[spec] = recheck(
                    [replace(plans[spec], label="head")],
                    sides=pair,
                    rules=work.config,
                    resources=resources,
                )["head"]
            before = sides[spec]
        return repeat_unsteady(
            list(plans.values()), sides=sides, rules=work.config, resources=resources
        )


_ZERO = Version("0")


def _version(of: Snapshot | str) -> Version | None:
    """Return the version of a compiler's release, else what it calls itself.

    Wheels of 3.13.0 say `3.13.0rc20261016`. None where that is no version.
    """
    name = of
    if not isinstance(name, str):
        name = release_in(name.compiler.spec) or name.compiler.version
    try:
        return Version(name)
    except InvalidVersion:
        return None


# Stored baselines along the first parents of a branch, and those of one report as a
# history in the order of commits.

CONFIGURED = "configured"  # In place of the name of a store: the configuration's own


class StoredStudy(NamedTuple):
    """Stored baselines as a study, and the growth of the branch since older ones."""

    study: Study
    growths: tuple[Growth, ...] = ()


def last_stored(where: str, last: int, work: Work) -> StoredStudy:
    """Return the last so many baselines of the configuration's report, oldest first.

    A damaged one has its reason.

    Baselines of other commits than those of the default branch are left out, and that
    is said; where none is of one of these, all are in the order in which they were
    stored.

    `where`: CONFIGURED, `data-branch`, or a directory. `auto` is the directory of the
    configuration where that is there, else the data branch.

    Raises:
        UsageError: there is none, or a selector matches nothing.
        NetworkError: the store cannot be asked.
    """
    choice = work.config.baseline
    config = work.request.config
    directory = _directory_of(where, choice)
    git = Git(config.resolve().parent if config else Path.cwd(), work.cancel)
    name = git.default_branch()
    with (
        _branch(git, choice, name)
        if directory is None
        else nullcontext(DirectoryStore(directory))
    ) as store:
        commits = _commits_of(git, name, choice.ancestors)
        entries = _entries_of_report(store, work.config.report_id)
        stored = store.in_order(entries)
        on_line = _entries_of(commits, stored)
        _say_left_out(len(stored), on_line=len(on_line), say=work.show.say)
        held_cells: dict[CellKey, Cell] = {}
        shown_entries = (on_line or stored)[-last:]
        variants = [_loaded(entry, store, held_cells) for entry in shown_entries]
        study = named_apart(variants)
        chosen = work.selected(
            {
                variant.name: variant.snapshot
                for variant in study.variants
                if variant.snapshot
            }
        )
        loaded = [
            (entry.sha, chosen[variant.name])
            for entry, variant in zip(shown_entries, study.variants, strict=True)
            if variant.name in chosen
        ]
        growths: tuple[Growth, ...] = ()
        if on_line and loaded:
            growths = _growths(
                git, commits=commits, on_line=on_line, loaded=loaded[::-1], store=store
            )
    chosen_variants = [
        structs.replace(variant, snapshot=chosen.get(variant.name))
        for variant in study.variants
    ]
    return StoredStudy(Study(tuple(chosen_variants)), growths)


def _directory_of(where: str, choice: BaselineChoice) -> Path | None:
    """Return the directory of the baselines; None where the data branch has them."""
    if where == "data-branch":
        return None
    if where != CONFIGURED:
        return Path(where)
    directory = Path(choice.directory)
    if choice.store == "directory":
        return directory
    if choice.store == "auto" and directory.is_dir():
        return directory
    return None


def _commits_of(git: Git, branch: str, most_ancestors: int) -> tuple[str, ...]:
    """Return the commits of a branch, the newest first; none where it is unknown."""
    if not branch:
        return ()
    newest_sha = git.resolve(f"origin/{branch}") or git.resolve(branch)
    if not newest_sha:
        return ()
    return (newest_sha, *git.ancestors(newest_sha, most_ancestors))


def _entries_of_report(store: Store, report_id: str) -> list[Entry]:
    """Return the stored baselines of a report.

    Raises:
        UsageError: there is none.
    """
    entries = [entry for entry in store.entries() if entry.report_id == report_id]
    if not entries:
        hint = (
            "the first push to the default branch stores one; check `report_id` in the"
            " configuration"
        )
        raise UsageError(
            f"no baseline of report {report_id!r} is stored", where="--store", hint=hint
        )
    return entries


def _entries_of(commits: Sequence[str], stored: Sequence[Entry]) -> list[Entry]:
    """Return the baselines of these commits, the oldest first."""
    ages = {sha: age for age, sha in enumerate(commits)}
    entries = [entry for entry in stored if entry.sha in ages]
    return sorted(entries, key=lambda entry: -ages[entry.sha])


def _say_left_out(stored: int, on_line: int, say: Callable[[str], None]) -> None:
    """Say how many stored baselines do not belong to the default branch."""
    if not on_line:
        say(
            "no stored baseline belongs to this default branch: baselines keep the"
            " order of storage"
        )
    elif stored > on_line:
        say(
            f"left out: {stored - on_line} of {stored} stored baselines, which do not"
            " belong to this default branch"
        )


def _loaded(entry: Entry, store: Store, held_cells: dict[CellKey, Cell]) -> Variant:
    """Return a stored baseline as a variant; a damaged one has its reason."""
    try:
        return of_commit(entry.sha, _held_once(store.load(entry), held_cells))
    except InputError as error:
        return Variant(entry.sha[:SHORT], entry.sha, reason=error.line)


def _growths(
    git: Git,
    commits: Sequence[str],
    on_line: Sequence[Entry],
    loaded: Sequence[tuple[str, Snapshot]],
    store: Store,
) -> tuple[Growth, ...]:
    """Return the growth of a branch.

    `commits`: of the branch, the newest first; `on_line`: its baselines, the oldest
    first; `loaded`: those that are shown, the newest first.
    """
    entries = {entry.sha: entry for entry in on_line}

    def load(sha: str) -> Snapshot | None:
        try:
            return store.load(entries[sha])
        except InputError:
            return None

    newest_first = list(dict.fromkeys(entry.sha for entry in reversed(on_line)))
    return growth_of(
        line_of(git, commits[0], len(commits) - 1),
        stored=newest_first,
        loaded=loaded,
        load=load,
    )


def _branch(git: Git, choice: BaselineChoice, default_branch: str) -> DataBranch:
    """Return the data branch with the baselines.

    It is in the repository, or in the one beside it that the configuration names.
    """
    if not choice.repository:
        return DataBranch(git, choice.branch, default_branch=default_branch)
    return DataBranch(
        git, choice.branch, address=git.address_beside_origin(choice.repository)
    )


_OF_CELLS = Cell.__struct_fields__


def _held_once(side: Snapshot, held_cells: dict[CellKey, Cell]) -> Snapshot:
    """Return the snapshot with what a cell has in common with its last one as one object.

    In a night few cells move.

    `held_cells`: the last cell of each key, which becomes this snapshot's.
    """
    for cell in side.cells:
        last = held_cells.get(cell.key, cell)
        same = {
            name: old
            for name in _OF_CELLS
            if (old := getattr(last, name)) == getattr(cell, name)
        }
        if len(same) < len(_OF_CELLS):
            last = structs.replace(cell, **same)
        held_cells[cell.key] = last
    return structs.replace(
        side, cells=tuple(held_cells[cell.key] for cell in side.cells)
    )


# What moved in each release, and why, as the report of each step tells it.

_CAUSES = 10
Moves = dict[tuple[str, CellKey], Move]  # Release and cell → what moved


def explained_history(
    study: Study,
    config: Config,
    texts: Texts = no_texts,
    growths: tuple[Growth, ...] = (),
) -> History:
    """Explain what happened between neighbours that could be had.

    `growths`: of stored baselines.
    """
    steps: list[Step] = []
    moves = Moves()
    for (before, base), (name, head), gaps in neighbours(study.variants):
        report = reported(
            config, base=base, head=head, baseline=Baseline(before), texts=texts
        )
        steps.append(
            step_of(report, base=before, head=name, gaps=gaps, most_causes=_CAUSES)
        )
        moves |= _moves(before, name, report)
    return History(
        study=study,
        moves=moves,
        steps=tuple(steps),
        totals=totals_of(study),
        growths=growths,
    )


def _moves(since: str, name: str, report: Report) -> Moves:
    """Return what moved in the cells of a report that both sides measured.

    Of a number with several values nothing is told.
    """
    moves = Moves()
    for delta in report.deltas:
        if not (
            delta.base and delta.head and delta.base.measured and delta.head.measured
        ):
            continue
        numbers = [delta.metrics[id_] for id_ in TRACKED]
        changes = {
            number.id: number.change
            for number in numbers
            if number.change and number.seen is None
        }
        if not changes:
            continue
        sentences = [_flags(delta.base.command, delta.head.command)]
        cause = None
        if explanation := report.explanations.get(delta.key):
            cause = explanation.cause
            sentences.append(explanation.why)
        moves[name, delta.key] = Move(
            since=since,
            changes=changes,
            cause=cause,
            why="; ".join(filter(None, sentences)),
        )
    return moves


def _flags(older_command: str, newer_command: str) -> str:
    """Return the note that flags changed between two commands, other than by name.

    Empty where they did not.
    """
    older = [flag for flag in flags_of(older_command) if flag != LIFTED_LIMIT_FLAG]
    newer = [flag for flag in flags_of(newer_command) if flag != LIFTED_LIMIT_FLAG]
    gone = [flag for flag in older if flag not in newer]
    new = [flag for flag in newer if flag not in older]
    if not (older and newer) or not (gone or new):
        return ""
    changes = [*(f"without {flag}" for flag in gone), *new]
    return f"compiled with other flags ({', '.join(changes)})"
