"""Run the command `/code-size lab`: one job measures, and another one answers.

The job that measures runs compilers and has no token that writes. The job that reports runs
none: it checks what the first one handed over, and draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from msgspec import structs

from bot.config.experiments import chosen_experiment
from bot.core.asked import Asked
from bot.core.lab import Experiment, Lab
from bot.errors import InputError, NetworkError, UsageError
from bot.github.comments import publish
from bot.github.configurations import named_from_top
from bot.github.delivering import Undelivered, failure_delivered
from bot.github.destination import Destination
from bot.github.measured import Handed, Measured, write_measured
from bot.github.measured_lab import handed_lab, lab_of
from bot.github.opening import Opened, judging, opened
from bot.github.pushes import handed_over, require_commit
from bot.github.reporting import asked_notes
from bot.github.repository import require_open_conversation
from bot.github.reviewing import failure_handed
from bot.github.runner import write_summary
from bot.github.services import Services, require_token
from bot.github.sides import Wanted
from bot.show.comment import marker
from bot.show.lab import write_lab
from bot.show.lab_comment import lab_comment
from bot.show.report_files import write_snapshot
from bot.study.lab import experimented
from bot.study.lab_outcome import require_measured
from bot.study.prepare import Work
from bot.system.files import require_writable
from bot.system.hub import Hub


def measure_lab(services: Services) -> int:
    """Measure the experiment with the head compiler for the job that reports."""
    command, experiment = _experiment(services)
    require_writable(services.out)
    with (
        failure_handed(services),
        failure_delivered(services, lambda: [Destination.by_judging_rules(services)]),
        _opened(services, command) as (head, judge),
        named_from_top(head.tree),
    ):
        lab = experimented(experiment, _work(head, experiment))
        require_measured(lab, f"lab {experiment.name}")
        files = write_lab(lab, judge.config.templates, services.out)
        handed = handed_lab(lab)
        for file_name, variant in zip(handed.names, lab.study.variants, strict=True):
            if variant.snapshot:
                path = services.out / f"{file_name}.json"
                write_snapshot(path, variant.snapshot)
        write_measured(services.out, Measured(lab=handed))
        names = ", ".join(path.name for path in files)
        services.show.say(f"written to {services.out}: {names}")
    return 0


def report_lab(services: Services) -> int:
    """Answer with the experiment that was handed over, or with why there is none.

    Raises Undelivered if GitHub refuses the comment. The job summary has the answer
    then.
    """
    hub = require_token(services)
    command, experiment = _experiment(services)
    require_writable(services.out)
    with failure_delivered(services, lambda: [Destination.by_judging_rules(services)]):
        require_open_conversation(hub, command.pull_number)
        lab = _checked(command, handed_over(services), experiment)
        with _opened(services, command) as (_, judge):
            _answer(services, hub=hub, command=command, lab=lab, judge=judge)
    return 0


def _experiment(services: Services) -> tuple[Asked, Experiment]:
    """Return the command and its experiment; raises UsageError for another command."""
    command = services.context.asked
    if command is None:
        raise UsageError("this event has no command", where="event")
    return command, chosen_experiment(command.typed.experiment)


@contextmanager
def _opened(services: Services, command: Asked) -> Iterator[tuple[Opened, Opened]]:
    """Check out the merge commit, and the commit whose templates draw the answer."""
    merge_commit = Wanted(f"merge commit of #{command.pull_number}", command.merge_sha)
    with (
        opened(services, merge_commit) as (_, head),
        judging(services, head, head) as judge,
    ):
        yield head, judge


def _work(head: Opened, experiment: Experiment) -> Work:
    """Return the work, with the head compiler if a variant needs it."""
    if all(variant.spec for variant in experiment.variants):
        return head.work
    sought = head.sought
    for note in sought.notes:
        head.work.show.say(note)
    places = sought.places + head.config.places
    return replace(
        head.work,
        config=structs.replace(head.config, places=places),
        request=replace(head.work.request, specs={"head": sought.spec}),
    )


def _checked(command: Asked, handed: Handed, experiment: Experiment) -> Lab:
    """Return the experiment as it was measured.

    Raises InputError for files of another command or of another commit.
    """
    measured = handed.measured.lab
    if measured is None:
        raise InputError(
            "is not that of an experiment",
            where="artifact measured.json",
            hint="run it again",
        )
    for file_name, snapshot in handed.sides.items():
        require_commit(snapshot, command.merge_sha, file_name)
    return lab_of(measured, handed.sides, experiment)


def _answer(
    services: Services, hub: Hub, command: Asked, lab: Lab, judge: Opened
) -> None:
    """Write the files and the job summary, and then the comment."""
    to = Destination.of(services, judge.config, judge.config_name)
    templates = judge.config.templates
    notes = tuple(asked_notes(services))
    noted = structs.replace(lab, notes=(*notes, *lab.notes))
    _, summary, _ = write_lab(noted, templates, services.out)
    if services.summary:
        write_summary(services.summary, summary.read_text("utf-8"))
    services.set_outputs({"report-path": services.report_path})
    mark = marker(to.config.report_id)
    body = lab_comment(
        lab,
        mark=mark,
        notes=notes,
        run_url=services.context.run_url,
        templates=templates,
    )
    try:
        url = publish(
            hub,
            number=command.pull_number,
            marker=mark,
            body=body,
            create=True,
            still_current=lambda: True,
        )
    except NetworkError as refused:
        raise Undelivered(refused.line) from None
    services.set_outputs({"comment-url": url})
    services.show.say(f"comment: {url}")
