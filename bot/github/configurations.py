"""Find the configuration of a commit, and the one that judges an event.

A commit without a configuration is measured with the packaged suite where a person asked
for it. The input config is `default` then, or the input head names what the head is.
Otherwise the run ends with an error, because results of the packaged models would say
nothing about this repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.config.configuration import (
    CONFIG_NAMES,
    PACKAGED,
    Config,
    config_in,
    load_config,
)
from bot.errors import BotError, ConfigError, Interrupted
from bot.github.services import Services
from bot.github.sides import wanted_sides
from bot.study.commits import require_inside

_LOOKED_FOR = f"there is no {' and no '.join(CONFIG_NAMES)} at this commit"
_HINT = (
    "commit one, which `code-size-bot init` writes; "
    "or set the inputs config: default, base and head to measure the packaged suite"
)


@contextmanager
def named_from_top(tree: Path) -> Iterator[None]:
    """Name files in errors as the repository has them.

    The directory is another one in every run, and gone by then.
    """
    try:
        yield
    except BotError as error:
        error.rename(
            lambda text: text.replace(f"{tree}/", "").replace(
                str(tree), "the repository"
            )
        )
        raise


def workspace_rules(services: Services) -> tuple[Config, str]:
    """Return the configuration of the workspace without its models, and its name.

    In a trusted run it is the default branch's: a pull request's own rules are not
    read. If it cannot be read, the packaged configuration is used.
    """
    try:
        return configuration_of(services, services.at(""))
    except ConfigError as error:
        services.show.say(f"the packaged configuration is used: {error.line}")
        return load_config(None, models=False), ""


def judging_rules(services: Services) -> tuple[Config, str]:
    """Return the configuration that judges and names this event's report, and its name.

    The configuration is without its models. For a pull request, a merge queue and a
    command in a comment, it is the base's. So a broken configuration cannot report
    under another name.
    """
    command = services.context.asked
    try:
        base = command.base_sha if command else ""
        if services.context.is_proposal:
            base = wanted_sides(services)[0].sha
        if base:
            with services.git.worktree(base) as tree, named_from_top(tree):
                config, name = configuration_of(services, tree)
                if name:
                    return config, name
    except Interrupted:
        raise
    except BotError as error:
        services.show.say(f"the configuration of the base cannot be read: {error.line}")
    return workspace_rules(services)


def configuration_of(
    services: Services, top: Path, *, models: bool = False
) -> tuple[Config, str]:
    """Return the configuration below `top` and its path there.

    The input config names it; without the input the usual names are tried. If there
    is none, it is the packaged one, without a path.
    """
    path = services.inputs.config
    if not path:
        name = config_in(top)
    elif (top / path).is_file():
        name = path
    else:
        name = ""
    if name:
        require_inside(top, [top / name], "repository")
    return load_config(top / name if name else None, models=models), name


def require_configuration(path: str, *, is_named: bool = False) -> None:
    """Raise ConfigError for a head without configuration.

    It is no error if the packaged configuration is asked for.

    `path`: the input config; `is_named`: True if the input head says what the head
    is.
    """
    if path != str(PACKAGED) and (path or not is_named):
        raise ConfigError(
            "does not exist at this commit" if path else _LOOKED_FOR,
            where=path,
            hint=_HINT,
        )
