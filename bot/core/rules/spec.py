"""The grammar of what names a release of the compiler: a SPEC, a line of a requirements file, an action's input."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

PROJECT = "iree-base-compiler"

# A tag may be called v3.13.0, a branch 3.13-fixes and a commit 4711: a bare version begins with a digit and has a dot.
_BARE = re.compile(r"[0-9][0-9A-Za-z!_]*\.[0-9A-Za-z!_.+]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_AFTER = re.compile(r"(?:(?:^|\s)#|\s--?[a-z]|\s*\\\s*$).*")
"""Comment, options such as `--hash`, and the sign that the line goes on."""


def release_of(text: str) -> str | None:
    """The version in `3.13.0` and `iree-base-compiler==3.13.0`, normalised as PEP 440 says; None for any other text."""
    bare = _BARE.fullmatch(text.strip())
    try:
        return str(Version(bare[0] if bare else _pinned(text)))
    except InvalidVersion:  # nothing, `3.13.*`, `3.13.x`
        return None


def requirement_of(line: str) -> str:
    """The requirement in a line of a requirements file, without what may follow it; empty where it has none."""
    return _AFTER.sub("", line, count=1).strip()


def is_compiler(requirement: str) -> bool:
    """True where a requirement is about the compiler, whatever it asks for; names are equal as PEP 503 says."""
    name = _NAME.match(requirement)
    return name is not None and canonicalize_name(name[0]) == PROJECT


def _pinned(text: str) -> str:
    """The version after the only `==`; empty where there is none."""
    try:
        wanted = Requirement(text.strip()) if is_compiler(text.strip()) else None
    except InvalidRequirement:
        return ""
    asked = list(wanted.specifier) if wanted else []
    return asked[0].version if len(asked) == 1 and asked[0].operator == "==" else ""
