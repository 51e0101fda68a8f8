"""Post the report of a pull request whose own run could not write.

This is the trusted run. It executes nothing of the pull request. From the run's artifact
it takes the snapshots, the IR that the report quotes, the trials of flags and defaults,
and the reason if the run failed. It checks their format, and decides the verdict itself.
A trial changes no number and no verdict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from bot.config.configuration import Config
from bot.core.context import WorkflowRun
from bot.core.flag_changes import with_trials
from bot.core.report import Adoption, Baseline, Report
from bot.core.snapshot import Snapshot
from bot.errors import BotError, InputError, Interrupted, UsageError
from bot.explain.texts import Texts, no_texts
from bot.github.archive import LIMIT_BYTES, read_zip
from bot.github.base_side import older_note
from bot.github.baselines import stored
from bot.github.checks import results
from bot.github.configurations import configuration_of, named_from_top, workspace_rules
from bot.github.delivering import deliver, failure_delivered
from bot.github.destination import Destination
from bot.github.measured import FILE as MEASURED
from bot.github.measured import (
    TEXTS,
    Measured,
    decode,
    failure_of,
    snapshot_of,
    texts_of,
)
from bot.github.missing_pin import missing_pin
from bot.github.repository import (
    artifacts,
    base_changed_at,
    download,
    is_ancestor,
    open_pulls_with_head,
    parents,
)
from bot.github.rows import PullRequest
from bot.github.services import Services, require_token
from bot.github.stores import store_of
from bot.github.suspected import suspected
from bot.github.trusted_base import FULL_SHA, trusted_base
from bot.show.check import check_name
from bot.study.comparison import adopting, held_to_limits, reported
from bot.system.hub import Hub

_FILES = (
    "base.json",
    "head.json",
    MEASURED,
    TEXTS,
    "report.json",
    "comment.md",
    "summary.md",
    "report.html",
)


def post(services: Services) -> int:
    """Deliver the report of a finished run that could not write.

    Nothing is delivered if the pull request has other commits now. A branch may be
    the head of several pull requests, each with another base. The report then goes
    to the one whose base branch has the first parent of the merge commit. If the run
    left no report, each of these pull requests without a result gets the reason.
    """
    run = services.context.run
    if run is None:
        raise UsageError(
            "this event names no finished run", hint="run `post` on workflow_run"
        )
    hub = require_token(services)
    # those that the run can be of: opened, and given their base, before it was started
    started = datetime.fromisoformat(run.created_at.replace("Z", "+00:00"))
    pulls = open_pulls_with_head(
        hub,
        head_repository=run.head_repository,
        head_branch=run.head_branch,
        head_sha=run.head_sha,
    )
    pulls = [pull for pull in pulls if _had_its_base(hub, pull, started)]
    if not pulls:
        services.show.say(
            f"dropped: no open pull request has the head {run.head_sha[:10]} and the"
            " base of this run"
        )
        return 0
    config, config_name = workspace_rules(services)

    def to(about: PullRequest) -> Destination:
        return Destination(
            pull=about.number,
            head_sha=run.head_sha,
            run_id=run.id,
            config=config,
            config_name=config_name,
            base_ref=about.base.ref,
        )

    def without_result() -> list[Destination]:
        """Return the pull requests that a run without a report may be of.

        A single one is always returned.
        """
        if len(pulls) == 1:
            return [to(pulls[0])]
        destinations = []
        for pull in pulls:
            name = check_name(config.report_id, pull.base.ref)
            if pull.number not in results(hub, pull.head.sha, name):
                destinations.append(to(pull))
        return destinations

    reason = ""
    if run.conclusion != "success":
        reason = f"the run ended with {run.conclusion.replace('_', ' ')}"
    with failure_delivered(services, without_result, reason):
        sides, texts, measured_there = _snapshots(hub, run, config)
        about, onto = _merged_onto(hub, pulls, sides[1].source.sha or "")
    measured = dataclasses.replace(
        to(about), merge_sha=sides[1].source.sha or "", base_sha=onto
    )
    with failure_delivered(services, lambda: [measured], reason):
        report = _checked(
            services,
            hub=hub,
            about=about,
            sha=onto,
            sides=sides,
            config=config,
            config_name=config_name,
            texts=texts,
        )
        if report.base.compiler.digest:
            report = replace(
                report,
                changed_flags=with_trials(
                    report.changed_flags, measured_there.changed_flags
                ),
                changed_defaults=measured_there.changed_defaults,
            )
        return deliver(report, services, measured)


def _had_its_base(hub: Hub, pull: PullRequest, moment: datetime) -> bool:
    """Return whether a pull request existed at that moment, with the base of today."""
    if pull.created_at > moment:
        return False
    changed_at = base_changed_at(hub, pull.number)
    return changed_at is None or changed_at <= moment


def _checked(
    services: Services,
    hub: Hub,
    about: PullRequest,
    sha: str,
    sides: tuple[Snapshot, Snapshot],
    config: Config,
    config_name: str,
    texts: Texts,
) -> Report:
    """Return a report made from the snapshots and the quoted IR of a run's artifact.

    GitHub's own facts are not read from the artifact. A stored base is preferred,
    because the pull request's own run measured the other one.

    `sha`: the commit of the base branch that the head was merged onto. `sides`: as
    the artifact has them. `config_name`: the file of the configuration; empty if it is
    the packaged one.
    """
    base, head = sides
    partly = base.source.sha != sha and base.compiler.digest != head.compiler.digest
    trusted = trusted_base(
        services,
        config=config,
        sha=sha,
        claimed=base,
        partly=partly,
        is_older=lambda older: is_ancestor(hub, older, sha),
    )
    base = trusted.snapshot
    notes = trusted.notes
    distance = 0 if base.source.sha == sha else None
    if partly:
        distance = _commits_older(services, config, sha, base.source.sha or "")
        notes = (older_note(distance), *notes)
    baseline = Baseline(trusted.rule, sha, distance)
    report = suspected(
        reported(config, base=base, head=head, baseline=baseline, texts=texts),
        services=services,
        config=config,
        base=sha,
        head=head.source.sha or "",
    )
    foreign = about.head_repository != services.context.repository
    report = replace(report, untrusted=foreign, notes=(*notes, *report.notes))
    if base.compiler.digest:
        return report
    if not base.models and not config_name:
        return adopting(report, Adoption(""))
    if not base.models and (no_compiler := _no_compiler(services, config, sha)):
        return held_to_limits(report, Adoption("", no_compiler))
    return replace(report, broke="No baseline: the pull request's own run found none")


def _commits_older(
    services: Services, config: Config, sha: str, older: str
) -> int | None:
    """Return how many commits an ancestor is older than a commit.

    None if it is not one of the ancestors that are looked at.
    """
    ancestors = services.git.ancestors(sha, config.baseline.ancestors)
    if older not in ancestors:
        return None
    return ancestors.index(older) + 1


def _no_compiler(services: Services, config: Config, sha: str) -> str:
    """Return why the base's compiler does not exist.

    Empty unless the index here says that the pinned release is missing. A commit
    with a stored baseline had its compiler.
    """
    try:
        if next(
            stored(
                services,
                store=store_of(services, config),
                config=config,
                sha=sha,
                is_wanted=lambda entry: entry.sha == sha,
            ),
            None,
        ):
            return ""
        with services.git.worktree(sha) as tree, named_from_top(tree):
            own_config, name = configuration_of(services, tree)
            return missing_pin(
                own_config, config_name=name, tree=tree, cancel=services.cancel
            )
    except Interrupted:
        raise
    except BotError as error:
        services.show.say(f"the pin of the base commit is unknown: {error.line}")
        return ""


def _merged_onto(
    hub: Hub, pulls: Sequence[PullRequest], merge: str
) -> tuple[PullRequest, str]:
    """Return the pull request that a merge commit belongs to, and its first parent.

    The pull requests have one head. The first parent is a commit of the base.

    Anybody can push a merge commit to a fork, and GitHub then serves it here too.
    So its first parent must be of the base branch. If it is of several branches,
    only GitHub's own current merge says whose it is.
    """
    where = "artifact head.json"
    hint = "run it again"
    head_sha = pulls[0].head.sha
    is_known = FULL_SHA.fullmatch(merge) and is_ancestor(hub, head_sha, merge)
    made_of = parents(hub, merge) if is_known else ()
    if len(made_of) != 2 or made_of[1] != head_sha:
        raise InputError(
            "does not belong to this pull request's head", where=where, hint=hint
        )
    fitting = [pull for pull in pulls if pull.merge_commit_sha == merge]
    if not fitting:
        onto = made_of[0]
        fitting = [pull for pull in pulls if is_ancestor(hub, onto, pull.base.ref)]
    if not fitting:
        raise InputError(
            "does not belong to a merge with the base", where=where, hint=hint
        )
    if len(fitting) > 1:
        requests = [f"#{pull.number} with {pull.base.ref}" for pull in fitting]
        names = " or of ".join(requests)
        raise InputError(
            f"can belong to {names}, and the right one is unknown",
            where=where,
            hint=hint,
        )
    return fitting[0], made_of[0]


def _snapshots(
    hub: Hub, run: WorkflowRun, config: Config
) -> tuple[tuple[Snapshot, Snapshot], Texts, Measured]:
    """Return the two sides, the IR that the report quotes, and what else was measured."""
    run_id = run.id
    name = f"code-size-measured-{config.report_id}-{run.workflow}"
    matching = []
    for artifact in artifacts(hub, run_id):
        if artifact.name == name:
            matching.append(artifact)
    if not matching:
        raise InputError(
            f"has no artifact {name}", where=f"run {run_id}", hint="see the run's log"
        )
    newest = matching[-1]
    if newest.expired:
        raise InputError(
            "has expired",
            where=f"artifact {name} of run {run_id}",
            hint="run the workflow again",
        )
    if newest.size_in_bytes > LIMIT_BYTES:
        raise InputError(
            "is too large to be a report",
            where=f"artifact {name}",
            hint="see the run's log",
        )
    files = read_zip(download(hub, newest.id, LIMIT_BYTES), names=_FILES)

    measured = Measured()
    if MEASURED in files:
        measured = decode(files[MEASURED], f"artifact {MEASURED}")
        if measured.failure:
            raise failure_of(measured.failure)

    def read(file: str) -> Snapshot:
        if file not in files:
            raise InputError(
                "is missing from the artifact", where=file, hint="see the run's log"
            )
        return snapshot_of(files[file], f"artifact {file}")

    if TEXTS in files:
        texts = texts_of(files[TEXTS])
    else:
        texts = no_texts
    return (read("base.json"), read("head.json")), texts, measured
