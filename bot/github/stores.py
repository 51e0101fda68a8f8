"""Open the store of baselines that the configuration names."""

from __future__ import annotations

from bot.config.configuration import Config
from bot.errors import UsageError
from bot.github.services import Services
from bot.store.checkout import CheckedOut
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import Store
from bot.system.credentials import credentials
from bot.system.git import Git


def other_repository(services: Services, config: Config) -> str:
    """Return the repository that stores the baselines; empty if it is the run's own."""
    name = config.baseline.repository
    is_own = name.casefold() == services.context.repository.casefold()
    if is_own or config.baseline.store == "directory":
        return ""
    return name


def require_fitting_token(services: Services, config: Config) -> None:
    """Raise UsageError for a store token if no other repository stores baselines."""
    if services.inputs.store_token and not other_repository(services, config):
        problem = "is given, and no other repository stores the baselines"
        hint = (
            "name the repository in the configuration: baseline: {repository:"
            " OWNER/NAME}"
        )
        raise UsageError(problem, where="input store-token", hint=hint)


def store_of(services: Services, config: Config) -> Store:
    """Return the store that the configuration names.

    `auto` is the data branch under GitHub Actions, else a directory.
    """
    chosen = config.baseline
    on_branch = chosen.store == "data-branch" or (
        chosen.store == "auto" and services.on_actions
    )
    if on_branch and services.inputs.baselines:
        return CheckedOut(services.git.at(services.at(services.inputs.baselines)))
    if on_branch:
        return branch_of(services, config)
    return DirectoryStore(services.at(str(chosen.directory)))


def branch_of(services: Services, config: Config) -> DataBranch:
    """Return the data branch of this repository, or of the configured one.

    Another repository is asked with the token for it alone, or without one.
    """
    git = services.git
    address = ""
    default_branch = services.context.default_branch
    repository = other_repository(services, config)
    if repository:
        server_url = services.context.server_url
        auth = credentials(services.inputs.store_token, server_url)
        git = Git(services.git.directory, services.cancel, auth)
        address = f"{server_url}/{repository}.git"
        default_branch = ""
    branch = DataBranch(
        git,
        config.baseline.branch,
        default_branch=default_branch,
        address=address,
        keep_days=config.baseline.keep_days,
        say=services.show.say,
    )
    return services.stack.enter_context(branch)
