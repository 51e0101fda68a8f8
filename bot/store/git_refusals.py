"""Say why a git server refused a command, and what to do about it."""

from __future__ import annotations

import re

from bot.errors import NetworkError
from bot.system.git import Git, first_line

# Messages of git and of the server for a push that lost a race: another writer locked or
# moved the branch.
LOST_A_RACE = re.compile(
    r"\[rejected\]|non-fast-forward|fetch first|stale info"
    r"|\[remote rejected\].*(cannot lock ref|failed to update|failed to lock|unable to"
    r" lock|incorrect old value"
    r"|reference already exists|is at [0-9a-f]+ but expected)"
)

# Git's own words for status 403, and GitHub's words for it. Names and addresses may
# hold any digits, so that the number alone says nothing.
_NO_PERMISSION = re.compile(
    r"^fatal: unable to access '.*': The requested URL returned error: 403\s*$"
    r"|^error: RPC failed; HTTP 403 "
    r"|^remote: (?:Permission to \S+ denied to |Write access to repository not"
    r" granted)",
    re.MULTILINE,
)
_NO_LOGIN = re.compile(
    r"^fatal: (?:unable to access '.*': The requested URL returned error: 401\s*$"
    r"|Authentication failed for |could not read (?:Username|Password) for )"
    r"|^error: RPC failed; HTTP 401 ",
    re.MULTILINE,
)


class LoginRefused(NetworkError):
    """The server does not accept the login.

    The token is wrong, or a private repository was asked without one.
    """


def refusal(
    git: Git, output: str, action: str, access: str, address: str
) -> NetworkError:
    """Return the error for a git command that was refused.

    `output` is what git printed, and `action` what was not done. `access` is what it
    needed, `read` or `write`. `address` is that of another repository; empty for the
    clone's origin.
    """
    is_other = bool(address)
    if _NO_PERMISSION.search(output):
        hint = f"give the job permissions: contents: {access}"
        if is_other:
            hint = f"give `store-token` a token that may {access} {address}"
        return NetworkError(f"{action}: the token may not {access}", hint=hint)
    if _NO_LOGIN.search(output) and access == "read" and not git.has_credentials:
        hint = "give this job the files of the branch: input `baselines`"
        if is_other:
            hint = (
                "give `store-token` to the job that prepares, and its files to the"
                " others: input `baselines`"
            )
        return LoginRefused(
            f"{action}: it takes a token, and this job has none", hint=hint
        )
    if _NO_LOGIN.search(output):
        name = "store-token" if is_other else "github-token"
        return LoginRefused(
            f"{action}: the token was refused", hint=f"check the input `{name}`"
        )
    return NetworkError(f"{action}: {first_line(output, 'remote:', '!')}")
