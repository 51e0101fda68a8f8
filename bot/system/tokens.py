"""Find tokens in the environment.

No child gets one, and a command that compiles on GitHub Actions refuses one.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.errors import UsageError

_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "INPUT_GITHUB-TOKEN", "INPUT_STORE-TOKEN")
_RUNNER_PREFIX = "ACTIONS_"
_INPUT_PREFIX = "INPUT_"


def is_token(name: str) -> bool:
    """Return True for a variable with a token of GitHub, or a secret of the runner.

    The runner gives some variables to actions alone.
    """
    upper = name.upper()
    return upper in _TOKENS or upper.startswith(_RUNNER_PREFIX)


def require_no_token(environ: Mapping[str, str]) -> None:
    """Raise UsageError if a command that will run compilers has a token.

    This applies to GitHub Actions only: at a terminal the token is the user's own.
    A compiler runs as the same user as this program, so that it could use the
    token.
    """
    if environ.get("GITHUB_ACTIONS") != "true":
        return
    for name in _TOKENS:
        if environ.get(name, "").strip():
            is_input = name.startswith(_INPUT_PREFIX)
            if is_input:
                where = f"input {name.removeprefix(_INPUT_PREFIX).lower()}"
            else:
                where = f"environment: {name}"
            raise UsageError(
                "a command that compiles takes no token on GitHub Actions",
                where=where,
                hint="remove it here, and give it to the job that reports or stores",
            )
