"""Open what a run on GitHub uses: services, files, stores and both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from bot.compiler.wheels import newest
from bot.config.configuration import (
    CONFIG_NAMES,
    PACKAGED,
    Config,
    config_in,
    is_packaged,
    load_config,
)
from bot.config.requirements import pinned_compiler
from bot.core.context import ActionInputs, Queue, RunContext
from bot.core.sharding import agreed
from bot.core.spec import MOVING, Sought, is_address, release_of
from bot.errors import BotError, ConfigError, InputError, Interrupted, UsageError
from bot.store.checkout import CheckedOut
from bot.store.data_branch import DataBranch
from bot.store.directory import DirectoryStore
from bot.store.entries import Store
from bot.study.prepare import Request, Show, Work, is_snapshot
from bot.study.run import SidePlan
from bot.study.specs import named_file
from bot.system.defaults import cores, default_cache
from bot.system.git import Git, credentials, repository_of
from bot.system.hub import Hub, connect
from bot.system.processes import Cancel


@dataclass(frozen=True, slots=True)
class Services:
    """What every story on GitHub needs."""

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
    """Connect what there is a token for."""
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


def other_repository(services: Services, config: Config) -> str:
    """Return the repository that stores the baselines, if it is not the run's own.

    Empty otherwise.
    """
    name = config.baseline.repository
    is_own = name.casefold() == services.context.repository.casefold()
    if is_own or config.baseline.store == "directory":
        return ""
    return name


def require_fitting_token(services: Services, config: Config) -> None:
    """Raise UsageError for a store token where no other repository stores baselines."""
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
    git, address, default_branch = services.git, "", services.context.default_branch
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


# The two sides of an event: which commits, which configuration and compiler of each,
# and the rule that chose them.
#
# Of a commit without a configuration the packaged suite is measured where somebody
# asked for it: the input config is `default`, or the input head says what the head is.
# Else nobody did, and the same compiler over models that are not this repository's
# would tell nothing: the run says so.

_LOOKED_FOR = f"there is no {' and no '.join(CONFIG_NAMES)} at this commit"
_HINT = (
    "commit one, which `code-size-bot init` writes; "
    "or set the inputs config: default, base and head to measure the packaged suite"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One side as an event names it."""

    rule: str  # how it was found, in words
    sha: str = (
        ""  # the commit whose models and configuration are used; empty for a snapshot
    )
    # its compiler; None: the commit's own, as its configuration pins it
    spec: str | None = None
    snapshot: Path | None = None  # a file that is the side, measured earlier
    unknown: str = ""  # why this side's compiler cannot be known; empty where it can


@dataclass(frozen=True, slots=True)
class Opened:
    """One side with its files at hand."""

    wanted: Wanted
    work: Work
    # path of the configuration in the repository; empty for the packaged one
    config_name: str
    tree: Path  # the commit's files, while it is open
    # a base without a configuration, which the pull request brings: nothing of it is
    # planned
    adopts: bool = False

    @property
    def config(self) -> Config:
        """Return the side's configuration."""
        return self.work.config

    @property
    def sought(self) -> Sought:
        """Return the side's compiler: as given, or as its commit pins it.

        Raises ConfigError or UsageError.
        """
        if self.wanted.spec:
            return Sought(self.wanted.spec)
        tree, side = self.tree, "head" if self.config.compiler.head else "base"
        pin = pinned_compiler(
            self.config,
            side=side,
            folder=(tree / self.config_name).parent,
            top=tree,
            within=tree,
        )
        if pin.spec:
            return structs.replace(
                pin, notes=tuple(note.replace(f"{tree}/", "") for note in pin.notes)
            )
        if self.config_name:
            pin_hint = (
                "pin it there: compiler: {requirements: FILE} or {head: SPEC}; or "
            )
        else:
            pin_hint = ""
        where = self.config_name or "the packaged configuration"
        raise UsageError(
            "no compiler is named",
            where=where,
            hint=f"{pin_hint}give the inputs base and head",
        )

    def plan(self, side: str) -> SidePlan:
        """Return the side, ready to be measured."""
        with named_from_top(self.tree):
            return self.work.prepare(side, self.sought)

    def moving(self) -> dict[str, str]:
        """Return SPEC → the release that it names now.

        Empty where it always names the same one.
        """
        try:
            sought = self.sought
        except (ConfigError, UsageError):  # whoever measures is told
            return {}
        if sought.spec not in MOVING:
            return {}
        with named_from_top(self.tree):
            return {
                sought.spec: newest(
                    sought.spec, sought.places + self.work.places, self.work.cancel
                )
            }


def wanted_sides(services: Services) -> tuple[Wanted, Wanted]:
    """Return base and head of the event.

    The base is never a mix of the base branch's tip and the merge base.
    """
    context = services.context
    inputs = services.inputs
    if context.queue is not None:
        return _queued_sides(services, context.queue)
    if context.pull is None:
        return _sides_of_commit(services)
    parents = services.git.parents(context.sha)
    if len(parents) != 2 or parents[1] != context.pull.head_sha:
        raise InputError(
            "is not the merge commit of this pull request's head",
            where=f"GITHUB_SHA {context.sha[:10]}",
            hint="resolve conflicts with the base branch, or run it again",
        )
    head = Wanted(f"merge commit of #{context.pull.number}", context.sha)
    head = _named(services, text=inputs.head, side="head", event_side=head) or head
    if head.spec:
        unknown = "the head compiler is an input of this run"
    else:
        unknown = ""
    base = Wanted("first parent of the merge commit", parents[0])
    return (
        _named(services, text=inputs.base, side="base", event_side=base)
        or replace(base, unknown=unknown),
        head,
    )


def _sides_of_commit(services: Services) -> tuple[Wanted, Wanted]:
    """Return base and head of a run that is about no pull request."""
    inputs = services.inputs
    this_commit = Wanted("the commit of this run", services.context.sha)
    named_head = _named(services, text=inputs.head, side="head", event_side=this_commit)
    head = named_head or this_commit
    base = _named(services, text=inputs.base, side="base", event_side=this_commit)
    if base is None:
        parents = services.git.parents(head.sha) if head.sha else ()
        if not parents:
            raise UsageError(
                "no base side",
                where="input base",
                hint="name a SPEC, a git ref or a snapshot",
            )
        base = Wanted("first parent of the head commit", parents[0])
    return base, head


def _queued_sides(services: Services, queue: Queue) -> tuple[Wanted, Wanted]:
    """Return the base and the head of a merge queue's commit."""
    inputs = services.inputs
    own_head = Wanted("commit of the merge queue", services.context.sha)
    head = (
        _named(services, text=inputs.head, side="head", event_side=own_head) or own_head
    )
    if head.spec:
        unknown = "the head compiler is an input of this run"
    else:
        unknown = ""
    own_base = Wanted("base of the merge queue", queue.base_sha)
    base = _named(
        services, text=inputs.base, side="base", event_side=own_base
    ) or replace(own_base, unknown=unknown)
    return base, head


def _named(
    services: Services, text: str, side: str, event_side: Wanted
) -> Wanted | None:
    """Return a side that a person named; None where nobody named one.

    The text names a snapshot, a release, a file or glob, else a git ref (`ref:` insists
    on that).

    `event_side`: the side as the event has it; a compiler that is named takes its models
    and configuration.
    """
    if not text:
        return None
    rule = f"input {side}: {text}"
    insisted = text.startswith("ref:")
    if is_snapshot(text):
        return Wanted(rule, snapshot=services.at(text))
    spec = "" if insisted else named_compiler(services, text)
    if is_snapshot(spec):
        return Wanted(rule, snapshot=Path(spec))
    if spec:
        return replace(event_side, rule=f"{event_side.rule}, {rule}", spec=spec)
    try:
        sha = services.git.resolve(text.removeprefix("ref:"))
    except InputError as error:
        raise UsageError(error.what, where=f"input {side}", hint=error.hint) from None
    if sha is None:
        hint = (
            "name a release, a file of this workspace, a snapshot.json, or a branch,"
            " tag or commit"
        )
        raise UsageError(
            f"{text!r} is neither a SPEC nor a git ref",
            where=f"input {side}",
            hint=hint,
        )
    return Wanted(rule, sha)


def named_compiler(services: Services, text: str) -> str:
    """Return the SPEC of a release or of a file in the workspace, also by a glob.

    Empty for anything else.
    """
    if not text or text in MOVING or release_of(text):
        return text
    path = named_file(str(services.at(text)))
    if Path(path).exists():
        return path
    return ""


@contextmanager
def opened(
    services: Services, head: Wanted, base: Wanted | None = None
) -> Iterator[tuple[Opened, Opened]]:
    """Check out each side's commit beside the workspace, and read its configuration.

    Yields base and head.

    Of a base commit without the configuration that the pull request brings nothing is
    planned. Raises ConfigError where one that a person named has none.
    """
    with ExitStack() as stack:
        opened_head = _open(services, stack, head)
        if not opened_head.config_name:
            require_configuration(
                services.inputs.config, is_named=bool(head.spec or head.snapshot)
            )
        if base is None:
            yield opened_head, opened_head
        elif base.sha == head.sha:
            yield replace(opened_head, wanted=base), opened_head
        else:
            opened_base = _open(services, stack, base)
            adopts = bool(
                opened_head.config_name and base.sha and not opened_base.config_name
            )
            if adopts and not services.context.is_proposal:
                problem = (
                    f"has no {opened_head.config_name}, so the bot does not know what to"
                    " measure"
                )
                raise ConfigError(
                    problem,
                    where=base.rule,
                    hint=(
                        "name a commit with a configuration, or a snapshot of this"
                        " commit"
                    ),
                )
            yield replace(opened_base, adopts=adopts), opened_head


@contextmanager
def judging(
    services: Services, opened_base: Opened, opened_head: Opened
) -> Iterator[Opened]:
    """Yield the side whose configuration judges and draws.

    That is the base of a pull request or queue, else the head.

    What a comment compares may be commits of a stranger. The base of the pull request
    judges it, or else the head without its templates.
    """
    command = services.context.asked
    if services.context.is_proposal:
        yield opened_head if opened_base.adopts else opened_base
    elif command is None:
        yield opened_head
    else:
        with ExitStack() as stack:
            base = _open(
                services, stack, Wanted("base of the pull request", command.base_sha)
            )
            yield base if base.config_name else without_templates(opened_head)


def without_templates(side: Opened) -> Opened:
    """Return the side, drawn by the packaged templates."""
    return replace(
        side,
        work=replace(side.work, config=structs.replace(side.config, templates=None)),
    )


def _open(services: Services, stack: ExitStack, wanted_side: Wanted) -> Opened:
    tree = stack.enter_context(
        services.git.worktree(wanted_side.sha or services.context.sha)
    )
    stack.enter_context(named_from_top(tree))
    config, name = configuration_of(services, tree, models=True)
    if name:
        templates: list[Path] = []
        if config.templates:
            templates = [config.templates, *config.templates.rglob("*")]
        wheels = [
            Path(link) for link in config.places.find_links if not is_address(link)
        ]
        own_models = [model for model in config.models if not is_packaged(model)]
        _require_inside(tree, [*own_models, *templates, *wheels])
    repository = repository_of(tree, services.cancel)
    request = replace(services.request, config=tree / name if name else None)
    return Opened(
        wanted=wanted_side,
        work=Work(
            request=request,
            config=config,
            show=services.show,
            cancel=services.cancel,
            checkout=repository,
        ),
        config_name=name,
        tree=tree,
    )


def _require_inside(tree: Path, paths: Iterable[Path]) -> None:
    """Raise ConfigError where a link leads out of the repository.

    A link must not bring files of the machine into diagnostics and reports.
    """
    for path in paths:
        if not path.resolve().is_relative_to(tree.resolve()):
            raise ConfigError(
                "leaves the repository", where=str(path), hint="use files of the commit"
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

    In a trusted run that is the default branch's: a pull request's own rules are not
    looked at. One that cannot be read is as good as none here.
    """
    try:
        return configuration_of(services, services.at(""))
    except ConfigError as error:
        services.show.say(f"the packaged configuration is used: {error.line}")
        return load_config(None, models=False), ""


def judging_rules(services: Services) -> tuple[Config, str]:
    """Return the configuration that judges and names this event's report, and its name.

    The configuration is without its models.

    Of a pull request or a merge queue that is its base's: a broken configuration must
    not report under another name. So it is of a command in a comment.
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

    The packaged one, and no path, where there is none.

    The input config names it; without it the usual names are looked for.
    """
    path = services.inputs.config
    if not path:
        name = config_in(top)
    elif (top / path).is_file():
        name = path
    else:
        name = ""
    if name:
        _require_inside(top, [top / name])
    return load_config(top / name if name else None, models=models), name


def require_configuration(path: str, *, is_named: bool = False) -> None:
    """Raise ConfigError for a head without configuration.

    It is no error where the packaged configuration is asked for.

    `path`: the input config; `is_named`: True where the input head says what the head
    is.
    """
    if path != str(PACKAGED) and (path or not is_named):
        raise ConfigError(
            "does not exist at this commit" if path else _LOOKED_FOR,
            where=path,
            hint=_HINT,
        )
