"""Recognize a commit whose pinned compiler release does not exist."""

from __future__ import annotations

from pathlib import Path

from bot.compiler.index import is_missing
from bot.config.configuration import Config
from bot.config.requirements import pinned_compiler
from bot.errors import BotError, Interrupted
from bot.system.cancel import Cancel


def missing_pin(config: Config, config_name: str, tree: Path, cancel: Cancel) -> str:
    """Return the message that a commit pins a release which does not exist.

    Empty unless every place of wheels says so.

    `tree`: the commit's files; `config_name`: the configuration's path there, empty for
    the packaged one.
    """
    if not config_name:
        return ""
    side = "head" if config.compiler.head else "base"
    try:
        pin = pinned_compiler(
            config, side=side, folder=(tree / config_name).parent, top=tree, within=tree
        )
        places = pin.places + config.places
        release = places.release(pin.spec)
        is_gone = release is not None and is_missing(release, places, cancel)
    except Interrupted:
        raise
    except BotError:
        return ""
    if not is_gone:
        return ""
    return (
        f"the base pins {places.project}=={release}, and the package index has no such"
        " release"
    )
