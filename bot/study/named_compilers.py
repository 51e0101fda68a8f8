"""Find the compiler or snapshot that a request or its configuration names for a side.

To try flags or a configuration is to compare two repository states with one compiler,
as a pull request does: the base side's configuration has the rules, and a compiler that
is named for one side is both sides'.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from msgspec import structs

from bot.config.requirements import pinned_here
from bot.core.spec import Sought
from bot.errors import UsageError
from bot.study.prepare import Work
from bot.study.request import Request
from bot.study.snapshot_files import is_snapshot
from bot.study.specs import exists


def named_compiler(side: str, work: Work) -> tuple[Sought, str]:
    """Return a side's compiler or snapshot, and how it was found.

    Its SPEC is empty if nobody named one.
    """
    specs = work.request.specs
    is_a_trial = is_trial(work.request)
    names = [side, "both"]
    if is_a_trial and not is_snapshot(specs.get(_other(side), "")):
        names += ["head", "base"]
    for name in names:
        if spec := specs.get(name):
            return Sought(spec), _option_given(name, spec, work)
    compiler = work.config.compiler
    key = side
    if is_a_trial:
        key = "head" if compiler.head else "base"
    found = f"compiler.{key} of the configuration"
    if compiler.requirements:
        found = f"{compiler.requirements}, which the configuration names"
    return pinned(work, key), found


def is_trial(request: Request) -> bool:
    """Return whether the sides differ in flags or configuration, not in compilers."""
    return bool(request.tried or request.configs)


def _other(side: str) -> str:
    """Return the name of the other side."""
    if side == "base":
        return "head"
    return "base"


def _option_given(name: str, spec: str, work: Work) -> str:
    """Return the words for an option with a SPEC: `--head 3.13.0`."""
    option = f"--{name}"
    if name == "both":
        option = "--compiler"
    if is_snapshot(spec):
        option = "snapshot"
    shown_spec = Path(spec).name
    if "==" not in spec and not exists(spec):
        shown_spec = work.release(spec) or shown_spec
    return f"{option} {shown_spec}"


def pinned(work: Work, side: str) -> Sought:
    """Return the compiler that the configuration pins for a side."""
    folder = Path()
    if work.request.config:
        folder = work.request.config.parent
    return pinned_here(work.config, side, folder)


def with_compiler(work: Work) -> Work:
    """Return the work with a compiler.

    If the request names none, the configuration's compiler is taken.

    Raises:
        UsageError: neither names one.
    """
    if work.request.specs.get("head"):
        return work
    sought = pinned(work, "head")
    if not sought.spec:
        hint = (
            "give --compiler SPEC, such as --compiler 3.13.0, or a --config that names"
            " compiler.head"
        )
        raise UsageError(
            "no compiler is named", where=str(work.request.config or ""), hint=hint
        )
    for note in sought.notes:
        work.show.say(note)
    config = structs.replace(work.config, places=sought.places + work.config.places)
    request = replace(work.request, specs={**work.request.specs, "head": sought.spec})
    return replace(work, request=request, config=config)
