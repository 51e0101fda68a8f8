"""What the two sides of a comparison are, measured where they are not known yet.

To try flags or a configuration is to compare two repository states with one compiler, as a pull request does: the base
side's configuration has the rules, and a compiler that is named for one side is both sides'.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from bot.config.configuration import Config, load_config, top_above
from bot.config.requirements import requirements_file, sought_compiler
from bot.core.planned import SIDES
from bot.core.report import Baseline
from bot.core.snapshot import Snapshot
from bot.core.spec import Sought
from bot.errors import UsageError
from bot.explain.suspects import Source, clone_source, github_source
from bot.study.fold_audit import audit_request
from bot.study.prepare import (
    Request,
    Show,
    is_snapshot,
    load_snapshot,
    measured,
    prepare,
    repository_at,
    require_writable,
)
from bot.study.run import SidePlan
from bot.system.processes import Cancel


@dataclass(frozen=True, slots=True)
class _Side:
    """One side as it was asked for.

    Attributes:
        sought: its compiler or snapshot; the SPEC is empty where nobody named one.
        rule: how it was found, without directories.
        path: of its configuration; None for the packaged one.
    """

    sought: Sought
    rule: str
    path: Path | None
    config: Config


@dataclass(frozen=True, slots=True)
class BothSides:
    """Both sides measured or read, and what they are judged by; plans of those whose compilers are here."""

    rules: Config
    sides: Mapping[str, Snapshot]
    baseline: Baseline
    plans: tuple[SidePlan, ...] = ()


def both_sides(request: Request, show: Show, cancel: Cancel) -> BothSides:
    """Measure both sides where they are not known yet; raises where nobody names their compilers."""
    read = cache(load_config)
    paths = {side: request.configs.get(side, request.config) for side in SIDES}
    requested = {
        side: _Side(*_found(request, side, read(path), path), path, read(path)) for side, path in paths.items()
    }
    require_writable(request.out)
    _require_compilers(request, requested)
    known = {
        side: load_snapshot(Path(one.sought.spec)) for side, one in requested.items() if is_snapshot(one.sought.spec)
    }
    plans = [_plan(side, one, request, show, cancel) for side, one in requested.items() if side not in known]
    rules = replace(requested["base"].config, timeout_seconds=requested["head"].config.timeout_seconds)
    sides = measured(plans, known, request, rules, show, cancel)
    return BothSides(rules, sides, Baseline(requested["base"].rule, sides["base"].source.sha), tuple(plans))


def _plan(side: str, one: _Side, request: Request, show: Show, cancel: Cancel) -> SidePlan:
    """The side, ready to be measured; flags that are tried are the head's."""
    if side == "head":
        request = replace(request, flags=(*request.flags, *request.tried))
    return prepare(side, one.sought, request, one.config, repository_at(one.path, cancel), show, cancel)


def _found(request: Request, side: str, config: Config, path: Path | None) -> tuple[Sought, str]:
    tries = _tries(request)
    other = request.specs.get("head" if side == "base" else "base", "")
    lends = ("head", "base") if tries and not is_snapshot(other) else ()
    for name in (side, "both", *lends):
        if spec := request.specs.get(name):
            option = "--compiler" if name == "both" else f"--{name}"
            return Sought(spec), f"{'snapshot' if is_snapshot(spec) else option} {Path(spec).name}"
    key = side if not tries else "head" if config.compiler.head else "base"
    return pinned(config, path, key), f"compiler.{key} of the configuration"


def pinned(config: Config, path: Path | None, side: str) -> Sought:
    """A side's compiler as a configuration names it; the SPEC is empty where it does not.

    `path`: of the configuration; None for the packaged one.
    """
    if config.compiler.requirements is not None:
        here = path.parent if path else Path()
        top = Path(os.path.relpath(top_above(here)))
        return sought_compiler(requirements_file(config.compiler.requirements, top, here))
    pins: Mapping[str, str | None] = {"base": config.compiler.base, "head": config.compiler.head}
    return Sought(pins[side] or "")


def _tries(request: Request) -> bool:
    """True where the sides differ in flags or configuration: what is compared is then not two compilers."""
    return bool(request.tried or request.configs)


def _require_compilers(request: Request, requested: Mapping[str, _Side]) -> None:
    missing = [side for side, one in requested.items() if not one.sought.spec]
    if missing:
        sides, options = " and ".join(missing), " and ".join(f"--{side} SPEC" for side in missing)
        wanted = ("--compiler SPEC", "--compiler") if _tries(request) else (options, f"--{missing[0]}")
        hint = f"give {wanted[0]}, such as {wanted[1]} 3.13.0, or a --config that names compiler.{missing[0]}"
        where = str(requested[missing[0]].path or "")
        raise UsageError(f"no compiler for the {sides} side", where=where, hint=hint)
    head = requested["head"].sought.spec
    if is_snapshot(head) and (request.tried or "head" in request.configs):
        what = "was measured before, so that no flags or configuration can be tried on it"
        raise UsageError(what, where=head, hint="name a compiler for the head side")


def with_compiler(request: Request, config: Config, show: Show) -> tuple[Request, Config]:
    """The request and the configuration, with the compiler that the latter names where the former does not."""
    if request.specs.get("head"):
        return request, config
    sought = pinned(config, request.config, "head")
    if not sought.spec:
        hint = "give --compiler SPEC, such as --compiler 3.13.0, or a --config that names compiler.head"
        raise UsageError("no compiler is named", where=str(request.config or ""), hint=hint)
    return audit_request(request, config, sought, show.say)


def source_of(request: Request, config: Config, cancel: Cancel) -> Source | None:
    """Where the request says that commits of the compiler are looked up, on GitHub with the environment's token."""
    repository, environ = config.compiler.repository, os.environ
    if request.source is not None:
        return clone_source(request.source, repository, cancel)
    if not request.suspects or not repository:
        return None
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    api_url, server_url = environ.get("GITHUB_API_URL"), environ.get("GITHUB_SERVER_URL")
    hosts = api_url or "https://api.github.com", server_url or "https://github.com"
    return github_source(*hosts, token, repository, request.cache)
