"""Connect what every run on GitHub uses: the event, GitHub, git, and the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bot.core.context import ActionInputs, RunContext
from bot.core.sharding import agreed
from bot.errors import UsageError
from bot.github.runner import write_outputs
from bot.study.request import Request, Show
from bot.system.cancel import Cancel
from bot.system.credentials import credentials
from bot.system.defaults import cores, default_cache
from bot.system.git import Git
from bot.system.hub import Hub, connect


@dataclass(frozen=True, slots=True)
class Services:
    """What every run on GitHub needs."""

    context: RunContext
    inputs: ActionInputs
    hub: Hub | None  # GitHub; None without a token
    git: Git  # of the workspace
    show: Show
    cancel: Cancel
    stack: ExitStack  # what is closed when the run ends
    # outputs, summary: the files GitHub Actions reads; None outside of it
    outputs: Path | None = None
    summary: Path | None = None
    on_actions: bool = False  # True where GitHub Actions runs the program
    # the names of the outputs that were set
    outputs_set: set[str] = field(default_factory=set)

    def at(self, text: str) -> Path:
        """Return a path that a person wrote relative to the workspace.

        It can be opened from here.
        """
        if self.git.directory.resolve() == Path.cwd().resolve():
            return Path(text)
        return self.git.directory / text

    @property
    def out(self) -> Path:
        """Return the directory of the six files."""
        return self.at(self.inputs.out or "code-size-report")

    @property
    def report_path(self) -> str:
        """Return the report directory as later steps of the job name it.

        A container has its workspace at another place.
        """
        top = self.git.directory.resolve()
        out = self.out.resolve()
        if out.is_relative_to(top):
            return out.relative_to(top).as_posix()
        return str(self.out)

    def set_outputs(self, values: Mapping[str, str]) -> None:
        """Set outputs of the action; do nothing outside of GitHub Actions."""
        self.outputs_set.update(values)
        if self.outputs:
            write_outputs(self.outputs, values)

    @property
    def request(self) -> Request:
        """Return the selectors of the inputs, for measuring."""
        return Request(
            models=self.inputs.models,
            targets=self.inputs.targets,
            flags=self.inputs.flags,
            jobs=self.inputs.jobs or cores(),
            cache=self.at(self.inputs.cache) if self.inputs.cache else default_cache(),
            out=self.out,
            releases=agreed(self.inputs.plan, "input plan") if self.inputs.plan else {},
            closing=self.stack,
        )


@contextmanager
def open_services(
    environ: Mapping[str, str],
    context: RunContext,
    inputs: ActionInputs,
    show: Show,
    cancel: Cancel,
) -> Iterator[Services]:
    """Connect everything for which there is a token."""
    token = inputs.github_token
    hub = None
    if token and context.repository:
        hub = connect(context.api_url, token, context.repository, login=inputs.author)
    if token:
        auth = credentials(token, context.server_url)
    else:
        auth = None
    with ExitStack() as stack:
        git = Git(Path(environ.get("GITHUB_WORKSPACE") or Path.cwd()), cancel, auth)
        names = (environ.get("GITHUB_OUTPUT"), environ.get("GITHUB_STEP_SUMMARY"))
        outputs, summary = (Path(name) if name else None for name in names)
        on_actions = environ.get("GITHUB_ACTIONS") == "true"
        yield Services(
            context=context,
            inputs=inputs,
            hub=hub,
            git=git,
            show=show,
            cancel=cancel,
            stack=stack,
            outputs=outputs,
            summary=summary,
            on_actions=on_actions,
        )


def require_token(services: Services) -> Hub:
    """Return the connection to GitHub; raises UsageError without a token."""
    if services.hub is None:
        hint = "give the action github-token: ${{ github.token }}"
        raise UsageError("is missing", where="input github-token", hint=hint)
    return services.hub
