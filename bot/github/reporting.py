"""Report or store what was measured.

`report` judges and posts, `store` keeps the snapshot of a push: these are the jobs after
measuring.

They have a token that may write, so they run no compiler and no file of a pull request.
They take snapshots from the job that measured, check them as anybody's, and ask the
repository and its store for everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from msgspec import structs

from bot.config.configuration import Config
from bot.core.acceptance import accept
from bot.core.baseline import Entry
from bot.core.report import Adoption, Baseline, Report
from bot.core.snapshot import Accepted, Snapshot
from bot.errors import BotError, InputError, Interrupted, UsageError
from bot.github.baselines import missing_pin, older_note
from bot.github.delivering import Destination, deliver, failure_delivered, suspected
from bot.github.measured import Handed
from bot.github.merged_pulls import merges_of
from bot.github.opening import (
    Opened,
    Services,
    Wanted,
    judging,
    opened,
    other_repository,
    require_fitting_token,
    store_of,
    wanted_sides,
    without_templates,
)
from bot.github.posting import trusted_base
from bot.github.pushes import (
    Push,
    compared_with_before,
    handed_over,
    opened_push,
    push_commits,
    pushed_side,
    require_commit,
    require_token,
)
from bot.github.repository import require_open_conversation
from bot.github.reviewing import changed_thresholds
from bot.show.comment import write_snapshot
from bot.store.entries import by_commit
from bot.study.comparison import adopting, held_to_limits, reported
from bot.study.prepare import require_writable


def report(services: Services) -> int:
    """Judge what the measuring job of this run handed over, and deliver the report.

    Where there is no report, the reason is delivered.

    Raises:
        UsageError: there is no token.
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


def store(services: Services) -> int:
    """Store the snapshot of the pushed commit, and report what it changed.

    The job's summary has the report.

    It is compared with the newest snapshot of its nearest ancestor: what pull requests
    do together is seen here first. The verdict stops nothing, as all is merged.

    Raises:
        InputError: what was measured is of another commit, or is not whole.
        UsageError: another repository stores the baselines, and there is no token for
            it; or the reverse.
    """
    require_writable(services.out)
    handed = handed_over(services)
    if handed.measured.standing:
        services.show.say(handed.measured.standing)
    with opened_push(services) as head:
        config = head.config
        _require_store_token(services, config)
        store = store_of(services, config)
        push = pushed_side(services, store=store, config=config, handed=handed)
        if push is None:
            return 0
        compared = compared_with_before(
            services, config=config, push=push, texts=handed.texts
        )
        final, snapshot = _with_acceptance(
            services, config=config, push=push, report=compared
        )
        write_snapshot(services.out / "head.json", snapshot)
        entry = Entry(config.report_id, services.context.sha, handed.measured.digest)
        is_new = store.save(entry, snapshot, push.ir)
        services.show.say("stored" if is_new else "was stored already")
        if final is None:
            return 0
        rules = structs.replace(config, fail_job=False)
        return deliver(
            final,
            services,
            Destination(
                pull=None,
                head_sha="",
                run_id=services.context.run_id,
                config=rules,
                config_name=head.config_name,
            ),
        )


def _with_acceptance(
    services: Services, config: Config, push: Push, report: Report | None
) -> tuple[Report | None, Snapshot]:
    """Return the report and the snapshot with what merged pull requests accepted.

    GitHub is asked only if a finding fails the check, and if there is a token.
    """
    if report is None or services.hub is None or not report.verdict.failing:
        return report, push.snapshot
    merges = merges_of(
        services, hub=services.hub, config=config, commits=push_commits(services, push)
    )
    verdict = accept(report.verdict, merges.acceptance)
    people = set[str]()
    reasons = set[str]()
    for finding in verdict.findings:
        if finding.accepted:
            people.add(finding.accepted)
            if finding.reason:
                reasons.add(finding.reason)
    if not people:
        return report, push.snapshot
    accepted = Accepted(", ".join(sorted(people)), "; ".join(sorted(reasons)))
    snapshot = structs.replace(push.snapshot, accepted=accepted)
    return structs.replace(report, verdict=verdict), snapshot


def _require_store_token(services: Services, config: Config) -> None:
    repository = other_repository(services, config)
    if repository and not services.inputs.store_token:
        hint = (
            f"give the action a token that may write to {repository}, such as a deploy"
            " token kept as a secret"
        )
        raise UsageError("is missing", where="input store-token", hint=hint)
    require_fitting_token(services, config)


def without_files(services: Services) -> Services:
    """Return the services without inputs that name files of the job that measured.

    Those files are not here.
    """
    inputs = services.inputs
    for fewer in (inputs, replace(inputs, head=""), replace(inputs, head="", base="")):
        reduced = replace(services, inputs=fewer)
        try:
            wanted_sides(reduced)
        except UsageError:
            continue
        except InputError:
            break  # its own words come where a report can say them
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

    What the repository and its store know is not taken from the snapshots.

    `has_compiler`: an input names the head's compiler, so that nobody knows the base's.
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

    False where the store cannot be asked, which others say.
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
    """Return the commits that a pull request goes from and to; empty for no proposal."""
    if not services.context.is_proposal:
        return "", ""
    return opened_base.wanted.sha, opened_head.wanted.sha


def _base(
    services: Services, opened_base: Opened, handed: Handed, has_compiler: bool
) -> tuple[Snapshot, Baseline, tuple[str, ...]]:
    """Return the base side, how it was found, and notes that a reader must not miss.

    A stored snapshot is loaded from the store again, where the measuring job says that
    there is one.
    """
    claimed = handed.sides["base"]
    wanted_base = opened_base.wanted
    base_sha = wanted_base.sha
    if wanted_base.snapshot:
        return claimed, Baseline(wanted_base.rule, claimed.source.sha), ()
    if opened_base.adopts or not claimed.compiler.digest:
        return claimed, Baseline(wanted_base.rule, base_sha), ()
    rule = wanted_base.rule
    if wanted_base.spec:
        require_commit(claimed, base_sha, "base")
        return claimed, Baseline(f"{rule}; measured in this run", base_sha), ()
    keys = opened_base.config.compiler
    is_known = bool(keys.requirements or keys.head or keys.base) and not has_compiler
    claimed_sha = claimed.source.sha or ""
    partly = claimed_sha != base_sha and not is_known
    ancestors: tuple[str, ...] = ()
    if claimed_sha != base_sha:
        ancestors = services.git.ancestors(
            base_sha, opened_base.config.baseline.ancestors
        )
    base, rule_of_base, notes = trusted_base(
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
    if "stored snapshot" not in rule_of_base:
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
