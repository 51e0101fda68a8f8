"""Check out the commits of an event's sides, and read their configurations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from bot.compiler.wheels import newest
from bot.config.configuration import Config, is_packaged
from bot.config.requirements import pinned_compiler
from bot.core.spec import MOVING, Sought, is_address
from bot.errors import ConfigError, UsageError
from bot.github.configurations import (
    configuration_of,
    named_from_top,
    require_configuration,
)
from bot.github.services import Services
from bot.github.sides import Wanted
from bot.study.commits import require_inside
from bot.study.prepare import Work
from bot.study.side_plan import SidePlan
from bot.system.git import repository_of


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
        tree = self.tree
        if self.config.compiler.head:
            side = "head"
        else:
            side = "base"
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

        Empty if the SPEC always names the same release.
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


@contextmanager
def opened(
    services: Services, head: Wanted, base: Wanted | None = None
) -> Iterator[tuple[Opened, Opened]]:
    """Check out each side's commit beside the workspace, and read its configuration.

    Yields base and head. If a pull request brings the configuration, its base
    commit has none, and nothing is planned for it. Raises ConfigError if a commit
    that a person named has none.
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

    That is the base of a pull request or queue, else the head. A comment may
    compare commits of a stranger. Then it is the base of the pull request, or else
    the head without its templates.
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
    """Return the side with the packaged templates in place of its own."""
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
        wheels = []
        for link in config.places.find_links:
            if not is_address(link):
                wheels.append(Path(link))
        own_models = [model for model in config.models if not is_packaged(model)]
        require_inside(tree, [*own_models, *templates, *wheels], "repository")
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
