"""Parse the names of compiler releases, and of places of their wheels."""

from __future__ import annotations

import hashlib
import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bot.core.metrics import OwnMetrics
from bot.core.near import nearest
from bot.core.record import Small

PROJECT = "iree-base-compiler"
LATEST = "latest"
NIGHTLY = "nightly"
MOVING = (LATEST, NIGHTLY)
"""SPECs whose release changes: the newest one, and the newest with pre-releases."""
COMMIT = "ref:"
"""Begins a SPEC that names a commit of the configuration's repository: `ref:main`."""
# between such a SPEC and the release that it was: `nightly =
# iree-base-compiler==3.14.0rc20261101`
RESOLVED = " = "
_ADDRESS = re.compile(
    r"(https?)://([^\s/?#\\]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/?#\\@:]+)(?::[0-9]+)?([/?#][^\s\\]*)?"
)
"""Scheme, credentials, host, and the rest."""
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

# A tag may be called v3.13.0, a branch 3.13-fixes and a commit 4711: a bare version
# begins with a digit and has a dot.
_BARE = re.compile(r"[0-9][0-9A-Za-z!_]*\.[0-9A-Za-z!_.+]*")
_NUMBERS = 3  # how many a version has in its full form
_LARGEST_MAJOR = 999  # a larger number is a date
_PREFIXED = re.compile(
    r"[A-Za-z][A-Za-z_.-]*[A-Za-z=@:~<>^ _-]*[-_=@: v]?([0-9]+\.[0-9A-Za-z!_.+]*)"
)
"""A release with a name in front that does not belong there.

Examples are `v3.13.0`, `iree-3.13.0` and `iree=3.13.0`.
"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_AFTER = re.compile(r"(?:(?:^|\s)#|\s--?[a-z]|\s*\\\s*$).*")
"""Comment, options such as `--hash`, and the sign that the line goes on."""


class Places(Small, frozen=True):
    """The project whose wheels are looked for, and where, beside pip's environment."""

    # HTTPS pages and directories that name wheels, in order
    find_links: tuple[str, ...] = ()
    no_index: bool = False  # True if only those count, and not the index
    project: str = PROJECT  # the compiler's name on the index
    # (release, digest such as `sha256:…`) that a requirements file allows for the
    # release's wheel
    hashes: tuple[tuple[str, str], ...] = ()

    def hashes_of(self, release: str) -> tuple[str, ...]:
        """Return the allowed digests of a release's wheel; empty if any is allowed."""
        return tuple(digest for of, digest in self.hashes if of == release)

    @property
    def argv(self) -> list[str]:
        """Return the options of pip for these places."""
        return [
            *(f"--find-links={link}" for link in self.find_links),
            *["--no-index"] * self.no_index,
        ]

    @property
    def key(self) -> str:
        """Return a text that is different for other places, for names in the cache.

        It is empty for the index alone.
        """
        if not self.find_links and not self.no_index:
            return ""
        return hashlib.sha256("\0".join(self.argv).encode()).hexdigest()[:12]

    @property
    def changeable(self) -> bool:
        """Return whether a directory of this machine counts.

        It may hold other bytes under the same name tomorrow.
        """
        return not all(map(is_address, self.find_links))

    def __add__(self, added: Places) -> Places:
        """Return the places of both, each once, for the project of `added`."""
        links = dict.fromkeys((*self.find_links, *added.find_links))
        hashes = dict.fromkeys((*self.hashes, *added.hashes))
        return Places(
            find_links=tuple(links),
            no_index=self.no_index or added.no_index,
            project=added.project,
            hashes=tuple(hashes),
        )

    def release(self, spec: str) -> str | None:
        """Return the version in a SPEC of the project; None in any other."""
        return release_of(spec, self.project)


class Command(Small, frozen=True):
    """A compiler that is a command."""

    # the words of the command, with `{model}`, `{target}`, `{out}` and `{side}` in them
    run: tuple[str, ...]
    artifacts: tuple[str, ...]  # globs of the files that are measured
    root: str  # the folder that paths are relative to
    # name on the package index whose releases are sides; empty: a side is words for
    # `{side}`, or a commit
    package: str = ""
    sources: tuple[str, ...] = ()  # globs of further files that the command needs
    stages: tuple[str, ...] = ()  # ends of names of files with its own IR, in its order
    metrics: OwnMetrics = ()  # what it may write to `facts.json` beside this program's


class Sought(Small, frozen=True):
    """A compiler as a side asks for it."""

    spec: str
    places: Places = Places()
    # the places that were asked for and refused, a line each
    notes: tuple[str, ...] = ()


def names_commit(spec: str) -> bool:
    """Return whether a SPEC names a commit of the repository."""
    return spec.startswith(COMMIT)


def is_address(link: str) -> bool:
    """Return whether a place of wheels is an address, and no path of this machine."""
    return "://" in link or link.lower().startswith("file:")


def refused_link(link: str) -> str:
    """Return why a place of wheels is refused.

    It is empty for an HTTPS page without credentials, and for any path. Plain HTTP is
    accepted only from this machine, as by pip.
    """
    if not is_address(link):
        return ""
    match = _ADDRESS.fullmatch(link)
    if match is None or (match[1] == "http" and match[3] not in _LOOPBACK):
        return "is neither an HTTPS page nor a directory"
    if match[2] is not None:
        return "contains credentials"
    if "?" in (match[4] or ""):
        return "has a query, which may be a credential"
    return ""


def without_secrets(text: str) -> str:
    """Return the text with its addresses' credentials and queries left out."""
    return re.sub(r"(://[^\s?]*)\?\S*", r"\1", re.sub(r"://[^/\s]*@", "://", text))


def release_of(text: str, project: str = PROJECT) -> str | None:
    """Return the full version in `3.13.0` or `iree-base-compiler==3.13.0`.

    Return None for any other text. `project`: the name that may stand before the
    version; empty: any name.
    """
    text = text.strip()
    try:
        if _BARE.fullmatch(text):
            return full_version(Version(text))
        if is_compiler(text, project):
            specifiers = list(Requirement(text).specifier)
        else:
            specifiers = []
    except (InvalidRequirement, InvalidVersion):  # `3.13.x`
        return None
    if (
        len(specifiers) != 1
        or specifiers[0].operator != "=="
        or specifiers[0].version.endswith(".*")
    ):
        return None
    return full_version(Version(specifiers[0].version))


def full_version(version: Version) -> str:
    """Return a version as PEP 440 normalises it, with three numbers.

    `3.13` and `3.13.0.0` are `3.13.0`. A version that is a date, such as `20260101.42`,
    keeps its numbers.
    """
    if version.major > _LARGEST_MAJOR:
        return str(version)
    numbers = list(version.release)
    while len(numbers) > _NUMBERS and numbers[-1] == 0:
        numbers.pop()
    numbers += [0] * (_NUMBERS - len(numbers))
    epoch = f"{version.epoch}!" if version.epoch else ""
    # what follows the numbers: `rc1`, `.post1`, `.dev1`, `+local`
    suffix = (
        str(version)
        .removeprefix(epoch)
        .removeprefix(".".join(map(str, version.release)))
    )
    return f"{epoch}{'.'.join(map(str, numbers))}{suffix}"


def meant_spec(text: str) -> str:
    """Return the SPEC that was probably meant by `v3.13.0`, `iree-3.13.0` or `lastest`.

    Return an empty text for any other text.
    """
    text = text.strip()
    if text in MOVING:
        return ""
    match = _PREFIXED.fullmatch(text)
    release = release_of(match[1]) if match else None
    if release is not None:
        return release
    near = nearest(text, MOVING) if text.isalpha() else []
    if near:
        return near[0]
    return ""


def is_release(spec: str) -> bool:
    """Return whether a SPEC always means a release.

    It does so even if a file or folder has the same name.
    """
    return spec.strip() in MOVING or release_of(spec, "") is not None


def release_in(spec: str) -> str | None:
    """Return the release in a snapshot's SPEC.

    `nightly = iree-base-compiler==…` names the release that it was. None without one.
    """
    moving, _, resolved = spec.rpartition(RESOLVED)
    return release_of(resolved if moving in MOVING else spec, "")


def short_name(spec: str) -> str:
    """Return the version of a release, or the name of a file."""
    return release_in(spec) or spec.rstrip("/").rpartition("/")[2]


def requirement_of(line: str) -> str:
    """Return the requirement in a line of a requirements file.

    What may follow it is left out. Empty if the line has none.
    """
    return _AFTER.sub("", line, count=1).strip()


def is_compiler(requirement: str, project: str = PROJECT) -> bool:
    """Return whether a requirement names the compiler.

    PEP 503 defines which names are equal.
    """
    name = _NAME.match(requirement)
    return name is not None and canonicalize_name(name[0]) == canonicalize_name(
        project or name[0]
    )
