"""Open a side that is a commit: its configuration, models and sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.config.configuration import Config, is_packaged, load_config
from bot.config.requirements import pinned_compiler
from bot.core.spec import COMMIT, MOVING, Sought, names_commit
from bot.errors import BotError, ConfigError, InputError, UsageError
from bot.study.specs import exists
from bot.system.cancel import Cancel
from bot.system.files import make_directory
from bot.system.git import Git, Repository, repository_of


@dataclass(frozen=True, slots=True)
class Commit:
    """The files of one commit, which are there until the command ends."""

    spec: str  # as the side names it, `ref:main`
    sha: str
    tree: Path  # its files
    config_path: Path  # the configuration, in `tree`
    config: Config
    repository: Repository
    # False if the configuration comes from outside the commit
    brings_configuration: bool

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the files in errors as git does, since their folder is temporary.

        An example is `main:models/a.mlir`.
        """
        with _named(self.tree, self.spec):
            yield

    def compiler(self, given_compiler: str = "") -> Sought:
        """Return the compiler of this side.

        A command without a package is the commit itself. `given_compiler`: the compiler
        for every side that names none; it overrides the pin in the commit.

        Raises:
            ConfigError, UsageError: no compiler is named.
        """
        command = self.config.command
        if command and not command.package:
            return Sought(self.spec)
        if given_compiler:
            return Sought(given_compiler)
        side = "head" if self.config.compiler.head else "base"
        with self.named():
            sought = pinned_compiler(
                self.config,
                side=side,
                folder=self.config_path.parent,
                top=self.tree,
                within=self.tree,
            )
        if not sought.spec or names_commit(sought.spec):
            problem = "this commit pins no compiler"
            hint = (
                "give --compiler SPEC, or commit compiler.requirements in the"
                " configuration"
            )
            raise UsageError(problem, where=self.spec, hint=hint)
        return sought


def as_commit(
    spec: str, config: Config, config_path: Path | None, cancel: Cancel
) -> str:
    """Return `ref:NAME` for a SPEC that names a commit, an empty text for any other.

    A name without `ref:` is a commit only if it is no release and no path. It is no
    commit if the configuration has a command without a package.
    """
    if names_commit(spec):
        return spec
    has_words = config.command is not None and not config.command.package
    is_release = spec in MOVING or config.places.release(spec) is not None
    if (
        not spec.strip()
        or has_words
        or is_release
        or config_path is None
        or exists(spec)
    ):
        return ""
    git = Git(config_path.absolute().parent, cancel)
    if git.knows(spec):
        return f"{COMMIT}{spec}"
    return ""


def open_commit(
    spec: str, config_path: Path | None, cancel: Cancel, stack: ExitStack
) -> Commit:
    """Check out the commit that `spec` names, and read the configuration there.

    A commit without this configuration gets the one in `config_path`: its globs then
    match the files of the commit. `stack`: removes the files. Raises BotError.
    """
    name = spec.removeprefix(COMMIT)
    if config_path is None:
        problem = "the packaged suite is the same at every commit"
        raise UsageError(
            problem, where=spec, hint="name a configuration of the repository: --config"
        )
    path = config_path.absolute()
    git = Git(path.parent, cancel)
    sha = git.resolve(name)
    if sha is None:
        raise UsageError(
            "no such commit", where=spec, hint="fetch it, or name another ref"
        )
    top = Path(git.text("rev-parse", "--show-toplevel"))
    tree = stack.enter_context(git.worktree(sha))
    inside = tree / path.parent.resolve().relative_to(top) / path.name
    brings_configuration = inside.is_file()
    with _named(tree, spec):
        if brings_configuration:
            require_inside(tree, [inside], "commit")
        else:
            _copy(path, inside)
        config = load_config(inside)
        own_models = [model for model in config.models if not is_packaged(model)]
        require_inside(tree, own_models, "commit")
    return Commit(
        spec=spec,
        sha=sha,
        tree=tree,
        config_path=inside,
        config=config,
        repository=repository_of(tree, cancel),
        brings_configuration=brings_configuration,
    )


def _copy(source: Path, target: Path) -> None:
    make_directory(target.parent)
    try:
        target.write_bytes(source.read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(source)
        ) from None


def require_inside(tree: Path, paths: Iterable[Path], noun: str) -> None:
    """Raise ConfigError for a link that leads out of a tree, which errors call `noun`.

    A link must not bring files of the machine into diagnostics and reports.
    """
    for path in paths:
        if not path.resolve().is_relative_to(tree.resolve()):
            raise ConfigError(
                f"leaves the {noun}", where=str(path), hint="use files of the commit"
            )


@contextmanager
def _named(tree: Path, spec: str) -> Iterator[None]:
    name = spec.removeprefix(COMMIT)
    try:
        yield
    except BotError as error:
        error.rename(
            lambda text: text.replace(f"{tree}/", f"{name}:").replace(str(tree), spec)
        )
        raise
