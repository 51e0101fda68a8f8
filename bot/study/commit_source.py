"""Find where the commits of the compiler are looked up: in a clone, or on GitHub."""

from __future__ import annotations

import os

from bot.explain.cloned_history import clone_source
from bot.explain.compiler_history import CompilerHistory
from bot.explain.github_history import github_source
from bot.study.prepare import Work


def source_of(work: Work) -> CompilerHistory | None:
    """Return the place where the request looks up commits of the compiler.

    For GitHub, the token of the environment is used.
    """
    request = work.request
    repository = work.config.compiler.repository
    environ = os.environ
    if request.source is not None:
        return clone_source(request.source, repository, work.cancel)
    if not request.suspects or not repository:
        return None
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN") or ""
    return github_source(
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        server_url=environ.get("GITHUB_SERVER_URL") or "https://github.com",
        token=token,
        repository=repository,
        cache=request.cache,
    )
