"""The services of a run on GitHub: who is asked, where its files are, and the stores at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.config.configuration import Config
from bot.core.context import ActionInputs, RunContext
from bot.core.sharding import agreed
from bot.errors import UsageError
from bot.github.repository import RepositoryArtifacts
from bot.store.artifact_store import ArtifactStore
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import Store
from bot.study.prepare import Request, Show
from bot.system.defaults import cores, default_cache
from bot.system.files import write_atomically
from bot.system.git import Git, credentials
from bot.system.hub import Hub, connect
from bot.system.processes import Cancel


@dataclass(frozen=True, slots=True)
class Services:
    """What every story on GitHub needs.

    Attributes:
        hub: GitHub; None without a token.
        git: of the workspace.
        stack: what is closed when the run ends.
        outputs, summary: the files GitHub Actions reads; None outside of it.
        on_actions: True where GitHub Actions runs the program.
        outputs_set: the names of the outputs that were set.
    """

    context: RunContext
    inputs: ActionInputs
    hub: Hub | None
    git: Git
    show: Show
    cancel: Cancel
    stack: ExitStack
    outputs: Path | None = None
    summary: Path | None = None
    on_actions: bool = False
    outputs_set: set[str] = field(default_factory=set)

    def at(self, text: str) -> Path:
        """A path that a person wrote, relative to the workspace, as it can be opened from here."""
        path = self.git.directory / text
        return Path(text) if self.git.directory.resolve() == Path.cwd().resolve() else path

    @property
    def out(self) -> Path:
        """Where the six files go."""
        return self.at(self.inputs.out or "code-size-report")

    @property
    def report_path(self) -> str:
        """The same as later steps of the job have to name it: a container has its workspace at another place."""
        top, out = self.git.directory.resolve(), self.out.resolve()
        return out.relative_to(top).as_posix() if out.is_relative_to(top) else str(self.out)

    @property
    def request(self) -> Request:
        """The selectors of the inputs, for measuring."""
        return Request(
            models=self.inputs.models,
            targets=self.inputs.targets,
            flags=self.inputs.flags,
            jobs=self.inputs.jobs or cores(),
            cache=self.at(self.inputs.cache) if self.inputs.cache else default_cache(),
            out=self.out,
            releases=agreed(self.inputs.plan, "input plan") if self.inputs.plan else {},
        )


@contextmanager
def open_services(
    environ: Mapping[str, str], context: RunContext, inputs: ActionInputs, show: Show, cancel: Cancel
) -> Iterator[Services]:
    """Connect what there is a token for."""
    token = inputs.github_token
    known = token and context.repository
    hub = connect(context.api_url, token, context.repository, login=inputs.author) if known else None
    auth = credentials(token, context.server_url)
    with ExitStack() as stack:
        git = Git(Path(environ.get("GITHUB_WORKSPACE") or Path.cwd()), cancel, auth)
        names = (environ.get("GITHUB_OUTPUT"), environ.get("GITHUB_STEP_SUMMARY"))
        outputs, summary = (Path(name) if name else None for name in names)
        on_actions = environ.get("GITHUB_ACTIONS") == "true"
        yield Services(context, inputs, hub, git, show, cancel, stack, outputs, summary, on_actions)


def store_of(services: Services, config: Config) -> Store:
    """The store that the configuration names; `auto` is the data branch under GitHub Actions, else a directory."""
    chosen, default_branch = config.baseline, services.context.default_branch
    kind = chosen.store if chosen.store != "auto" else "data-branch" if services.on_actions else "directory"
    if kind == "data-branch":
        return services.stack.enter_context(DataBranch(services.git, chosen.branch, default_branch=default_branch))
    if kind == "directory":
        return DirectoryStore(services.at(str(chosen.directory)), write_atomically)
    if services.hub is None:
        raise UsageError("is missing", where="input github-token", hint="give the action a token: it reads artifacts")
    return ArtifactStore(RepositoryArtifacts(services.hub), default_branch)
