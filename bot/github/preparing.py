"""Check and fetch with tokens that the measuring job may not have.

This is the job before measuring.

It runs no compiler and no file of the pull request. It hands over files: the stored
baselines of another repository.
"""

from __future__ import annotations

from bot.config.configuration import Config
from bot.core.baseline import Entry
from bot.errors import BotError, Interrupted, UsageError
from bot.github.configurations import judging_rules
from bot.github.reporting import without_files
from bot.github.repository import require_open_conversation
from bot.github.services import Services
from bot.github.sides import wanted_sides
from bot.github.stores import branch_of, other_repository, require_fitting_token
from bot.show.filters import plural
from bot.store.entries import by_commit
from bot.system.files import require_writable


def prepare(services: Services) -> None:
    """Check that the report can be posted, and copy baselines to `out`.

    The baselines are those of another repository.

    Raises:
        UsageError: there is nothing to do, or a token for no other repository.
        NetworkError: the pull request is missing or locked, or the other repository
            cannot be read.
    """
    context = services.context
    inputs = services.inputs
    say = services.show.say
    if context.story == "nothing":
        say(f"nothing to do: {context.why}")
        return
    number = inputs.pull_request
    if context.pull:
        number = context.pull.number
    if services.hub is not None and number is not None:
        require_open_conversation(services.hub, number)
        say(f"the report can be posted to #{number}")
    config = judging_rules(services)[0]
    require_fitting_token(services, config)
    if other_repository(services, config) and (
        inputs.store_token or services.hub is None
    ):
        _copy_baselines(services, config)
    elif services.hub is None:
        hint = (
            "give a token, or name another repository in the configuration: baseline:"
            " {repository: OWNER/NAME}"
        )
        raise UsageError("is missing", where="input github-token", hint=hint)


def _copy_baselines(services: Services, config: Config) -> None:
    """Copy what is stored of the base and of its ancestors.

    The jobs after this one look at nothing else.
    """
    require_writable(services.out)
    store = branch_of(services, config)
    entries_by_commit = by_commit(store, config.report_id)
    if entries_by_commit:
        line = _line(services, config)
    else:
        line = ()
    entries = list[Entry]()
    for sha in line:
        entries += entries_by_commit.get(sha, [])
    store.copy(entries, services.out)
    services.show.say(f"copied {plural(len(entries), 'baseline')} to {services.out}")


def _line(services: Services, config: Config) -> tuple[str, ...]:
    """Return the base commit, and its first parents as far as the bot looks."""
    tip = services.context.sha
    if services.context.story == "review":
        try:
            tip = wanted_sides(without_files(services))[0].sha or tip
        except Interrupted:
            raise
        except BotError as error:  # the job that measures ends with it
            services.show.say(f"the base of this run is not known: {error.line}")
    return (tip, *services.git.ancestors(tip, config.baseline.ancestors))
