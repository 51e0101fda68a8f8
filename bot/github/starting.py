"""A commit without a configuration: what a run says of it, and the starter that fits the repository.

The packaged suite is measured where somebody asked for it: the input config is `default`, or the input head says what
the head is. Else nobody did, and the same compiler over models that are not this repository's would tell nothing.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from bot.config.configuration import CONFIG_NAMES, PACKAGED, config_in
from bot.config.starter import discover, offer_lines, shown_starter
from bot.errors import ConfigError, NotConfigured
from bot.system.git import Git
from bot.system.processes import Cancel

LOOKED_FOR = f"there is no {' and no '.join(CONFIG_NAMES)} at this commit"
_HINT = (
    "commit one: the job summary has a starter that fits this repository; or, to measure the packaged suite, give the "
    "action config: default, and the inputs base and head"
)


def config_named(given: str, top: Path) -> str:
    """The configuration's path below `top`; empty where there is none, or the packaged one is asked for.

    Args:
        given: the input config; empty: the usual names are looked for.
    """
    if given:
        return given if (top / given).is_file() else ""
    return config_in(top)


def require_configuration(given: str, top: Path, cancel: Cancel, *, is_named: bool) -> None:
    """Refuse a head without configuration, unless the packaged one is what is asked for.

    Args:
        given: the input config.
        is_named: True where the input head says what the head is.

    Raises:
        NotConfigured: there is none, with one that fits.
        ConfigError: there is one, under another name.
    """
    if given == str(PACKAGED) or (is_named and not given):
        return
    _refuse_another_name(given, top)
    what = "does not exist at this commit" if given else LOOKED_FOR
    name = given if _is_plain(given) else CONFIG_NAMES[-1]
    found = discover(top, Git(top, cancel))
    lines = tuple(line.strip() for line in offer_lines(found))
    raise NotConfigured(what, where=given, hint=_HINT, file=name, starter=shown_starter(top, name, found), found=lines)


def _refuse_another_name(given: str, top: Path) -> None:
    """A file that is there under another name is meant: a starter beside it would be one too many."""
    names = (*CONFIG_NAMES, *(str(Path(name).with_suffix(".yaml")) for name in CONFIG_NAMES))
    there = next((name for name in names if (top / name).is_file()), "")
    if there and given:
        raise ConfigError("does not exist at this commit", where=given, hint=f"write config: {there}, which is there")
    if there:
        raise ConfigError(LOOKED_FOR, hint=f"rename {there} to end with .yml, or write config: {there}")


def _is_plain(path: str) -> bool:
    """True for a path that a file of the repository can have."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not PurePosixPath(path).is_absolute() and ".." not in parts
