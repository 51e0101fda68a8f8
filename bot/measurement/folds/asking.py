"""What an audit is made with: the request with its compiler named, and where that compiler's wheels are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.config.configuration import Config
from bot.core.rules.spec import Sought
from bot.measurement.prepare import Request


def audit_request(
    request: Request, config: Config, sought: Sought, say: Callable[[str], None]
) -> tuple[Request, Config]:
    """The request with the compiler as its head; the configuration with the places where that is looked for."""
    for note in sought.notes:
        say(note)
    if sought.places.no_index:
        say("--no-index of the requirements file is not followed here: the index counts as well")
    links = tuple(dict.fromkeys((*sought.places.find_links, *config.compiler.find_links)))
    found = replace(config, compiler=replace(config.compiler, find_links=links))
    return replace(request, specs={**request.specs, "head": sought.spec}), found
