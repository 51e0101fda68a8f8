"""Judge and post the measurement of a pull request.

This job has a token that may write, so it runs no compiler and no file of a pull
request. It takes snapshots from the job that measured, and checks them like any
untrusted file. For everything else it asks the repository and its store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from msgspec import structs

from bot.config.configuration import Config
from bot.core.flag_changes import with_trials
from bot.core.report import Adoption, Baseline, Report
from bot.core.snapshot import Snapshot
from bot.errors import BotError, InputError, Interrupted, UsageError
from bot.github.base_side import older_note
from bot.github.delivering import deliver, failure_delivered
from bot.github.destination import Destination
from bot.github.measured import Handed
from bot.github.missing_pin import missing_pin
from bot.github.opening import Opened, judging, opened, without_templates
from bot.github.pushes import handed_over, require_commit
from bot.github.repository import require_open_conversation
from bot.github.reviewing import changed_thresholds
from bot.github.services import Services, require_token
from bot.github.sides import Wanted, wanted_sides
from bot.github.stores import store_of
from bot.github.suspected import suspected
from bot.github.trusted_base import trusted_base
from bot.store.entries import by_commit
from bot.study.comparison import adopting, held_to_limits, reported
from bot.system.files import require_writable


def report(services: Services) -> int:
    """Judge what the measuring job of this run handed over, and deliver the report.

    If there is no report, the reason is delivered. Raises UsageError if there is no
    token.
    """
    hub = require_token(services)
    require_writable(services.out)
    has_compiler = bool(services.inputs.head)
    services = without_files(services)
    with failure_delivered(services, lambda: [Destination.by_judging_rules(services)]):
        number = services.inputs.pull_request
        if services.context.pull:
            number = services.context.pull.number
        if number is not None:
            require_open_conversation(hub, number)
        handed = handed_over(services)
        if set(handed.sides) != {"base", "head"}:
            raise InputError(
                "is not that of a comparison",
                where="artifact measured.json",
                hint="run it again",
            )
        base, head = wanted_sides(services)
        with _judge(services, base, head) as (opened_base, opened_head, judge):
            final = _judged(
                services,
                opened_base=opened_base,
                opened_head=opened_head,
                config=judge.config,
                handed=handed,
                has_compiler=has_compiler,
            )
            return deliver(
                final,
                services,
                Destination.of(services, judge.config, judge.config_name),
            )


def without_files(services: Services) -> Services:
    """Return the services without inputs that name files of the job that measured.

    Those files do not exist in this job.
    """
    inputs = services.inputs
    for fewer in (inputs, replace(inputs, head=""), replace(inputs, head="", base="")):
        reduced = replace(services, inputs=fewer)
        try:
            wanted_sides(reduced)
        except UsageError:
            continue
        except InputError:
            break  # raised again where a report can show it
        return reduced
    return services


@contextmanager
def _judge(
    services: Services, base: Wanted, head: Wanted
) -> Iterator[tuple[Opened, Opened, Opened]]:
    """Yield both sides, and the one whose configuration judges.

    That is the base, for a pull request. A pull request that brings the configuration
    is judged by its own, and drawn by the packaged templates.
    """
    with (
        opened(services, head, base) as (opened_base, opened_head),
        judging(services, opened_base, opened_head) as judge,
    ):
        if services.context.is_proposal and opened_base.adopts:
            judge = without_templates(judge)
        yield opened_base, opened_head, judge


def _judged(
    services: Services,
    opened_base: Opened,
    opened_head: Opened,
    config: Config,
    handed: Handed,
    has_compiler: bool,
) -> Report:
    """Return the report from snapshots.

    Facts of the repository and its store are not taken from the snapshots.

    `has_compiler`: True if an input names the head compiler. The base compiler is then
    unknown.
    """
    measured = handed.measured
    head = handed.sides["head"]
    if opened_head.wanted.snapshot is None:
        require_commit(head, opened_head.wanted.sha)
    base, baseline, notes = _base(
        services, opened_base=opened_base, handed=handed, has_compiler=has_compiler
    )
    final = reported(
        config, base=base, head=head, baseline=baseline, texts=handed.texts
    )
    final = suspected(
        final, services, config, *_ends(services, opened_base, opened_head)
    )
    added = [note for note in measured.notes if note not in notes]
    if measured.unread and _has_baselines(services, config):
        added.append(
            "the job that measures could not read the stored baselines: give it the"
            " input baselines"
        )
    notes = (
        *asked_notes(services),
        *notes,
        *added,
        *final.notes,
        *changed_thresholds(services, opened_base, opened_head),
    )
    final = structs.replace(
        final,
        notes=notes,
        changed_flags=with_trials(final.changed_flags, measured.changed_flags),
        changed_defaults=measured.changed_defaults,
        run_times=measured.run_times,
    )
    if opened_base.adopts:
        return adopting(final, Adoption(opened_head.config_name))
    if base.compiler.digest:
        return structs.replace(final, broke=measured.broke)
    if not base.models and not measured.broke:
        no_compiler = missing_pin(
            opened_base.config,
            config_name=opened_base.config_name,
            tree=opened_base.tree,
            cancel=services.cancel,
        )
        if no_compiler:
            return held_to_limits(final, Adoption(opened_head.config_name, no_compiler))
    return structs.replace(
        final, broke=measured.broke or "No baseline: the job that measures found none"
    )


def asked_notes(services: Services) -> Iterator[str]:
    """Yield who asked for this report in a comment.

    Of a fork's report also yield that its numbers cannot be checked.
    """
    command = services.context.asked
    if command is None:
        return
    yield f"{command.who} asked for this report: {command.line}"
    if command.head_repository.casefold() != services.context.repository.casefold():
        yield (
            "The compiler and the models of this fork ran here; this report cannot"
            " check its numbers."
        )


def _has_baselines(services: Services, config: Config) -> bool:
    """Return whether baselines of this report are stored.

    False if the store cannot be asked; another part of the report says that.
    """
    try:
        return bool(by_commit(store_of(services, config), config.report_id))
    except Interrupted:
        raise
    except BotError:
        return False


def _ends(
    services: Services, opened_base: Opened, opened_head: Opened
) -> tuple[str, str]:
    """Return the commits between which a pull request goes; empty for another event."""
    if not services.context.is_proposal:
        return "", ""
    return opened_base.wanted.sha, opened_head.wanted.sha


def _base(
    services: Services, opened_base: Opened, handed: Handed, has_compiler: bool
) -> tuple[Snapshot, Baseline, tuple[str, ...]]:
    """Return the base side, how it was found, and notes that a reader must not miss.

    If the measuring job says that there is a stored snapshot, it is loaded again.
    """
    claimed = handed.sides["base"]
    wanted_base = opened_base.wanted
    base_sha = wanted_base.sha
    if wanted_base.snapshot:
        return claimed, Baseline(wanted_base.rule, claimed.source.sha), ()
    if opened_base.adopts or not claimed.compiler.digest:
        return claimed, Baseline(wanted_base.rule, base_sha), ()
    if wanted_base.spec:
        require_commit(claimed, base_sha, "base")
        rule = f"{wanted_base.rule}; measured in this run"
        return claimed, Baseline(rule, base_sha), ()
    return _trusted(services, opened_base, handed, has_compiler=has_compiler)


def _trusted(
    services: Services, opened_base: Opened, handed: Handed, *, has_compiler: bool
) -> tuple[Snapshot, Baseline, tuple[str, ...]]:
    """Return the base side after a check against the stored baselines."""
    claimed = handed.sides["base"]
    base_sha = opened_base.wanted.sha
    rule = opened_base.wanted.rule
    keys = opened_base.config.compiler
    knows_base_compiler = keys.names_compiler and not has_compiler
    claimed_sha = claimed.source.sha or ""
    # A baseline of an ancestor whose compiler may be another one. Only the builds whose
    # models are the same are compared.
    partly = claimed_sha != base_sha and not knows_base_compiler
    ancestors: tuple[str, ...] = ()
    if claimed_sha != base_sha:
        ancestors = services.git.ancestors(
            base_sha, opened_base.config.baseline.ancestors
        )
    trusted = trusted_base(
        services,
        config=opened_base.config,
        sha=base_sha,
        claimed=claimed,
        partly=partly,
        is_older=lambda older: older in ancestors,
        selected=lambda snapshot: opened_base.work.selected(
            {"base": snapshot}, must_match=False
        )["base"],
        digest=handed.measured.digest,
    )
    base = trusted.snapshot
    notes = trusted.notes
    if not trusted.is_stored:
        return base, Baseline(f"{rule}; measured in this run", base_sha), notes
    distance = 0
    if claimed_sha in ancestors:
        distance = ancestors.index(claimed_sha) + 1
    if partly:
        baseline = Baseline(
            f"{rule}; snapshot stored for an ancestor", base_sha, distance
        )
        return base, baseline, (older_note(distance), *notes)
    return base, Baseline(f"{rule}; stored snapshot", base_sha, distance), notes
