"""Read the targets of a configuration: packaged ones by name, or a mapping."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Annotated, ClassVar

from msgspec import Meta
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bot.config.yaml_file import KeyPath, YamlFile
from bot.config.yaml_problems import Plain
from bot.config.yaml_types import (
    FLAG,
    Flags,
    Keys,
    Text,
    examples,
    except_beside,
    pattern,
)
from bot.core.backends import BACKEND_BY_NAME
from bot.core.near import near_or_known
from bot.core.planned import LIBRARY_PATH_OPTION, Target

_RANGE_HINT = "write it as pip does: '<3.11', '>=3.9,<3.12' or '==3.10.*'"


_NAME = "[A-Za-z0-9_.-]+"
_LETTERS = "name has only letters, digits, '_', '.' and '-'"
TargetName = Annotated[
    str,
    pattern(_NAME, f"a target's {_LETTERS}", "llvm-cpu-x86_64", "vmvx", max_length=100),
]


class TargetKeys(Keys, frozen=True):
    """A target: a backend with its flags, or another target with further flags.

    Attributes:
        extends: The target that this one inherits backend, flags and unsupported from: a target
            above it in this file, or a default target. A target may extend the default target of
            the same name.
        backend: Name of the backend in the output of iree-compile --iree-hal-list-target-backends.
            It may belong to a plugin.
        flags: Flags of this target, without the backend. They follow the flags of the extended
            target. A flag replaces an inherited flag of the same option.
        releases: Other flags for some compiler releases. Each key is a range as pip writes it
            ('<3.11'), and its flags replace the key flags. The first matching range wins.
        unsupported: Reason why no compiler can compile this target. `code-size-bot targets` prints
            the reason, and reports do not list its builds as missing.
    """

    keywords: ClassVar[Plain] = {**except_beside(extends=("backend",))}
    extends: TargetName = ""
    backend: Annotated[
        str, pattern(_NAME, f"a backend's {_LETTERS}", *BACKEND_BY_NAME)
    ] = ""
    flags: Flags = ()
    releases: Annotated[
        Mapping[Annotated[Text, Meta(max_length=100)], Flags],
        examples({"<3.11": ["--iree-hip-target=gfx942"]}, min_length=1),
    ] = {}
    unsupported: Annotated[Text, examples("needs a vendor's linker")] = ""


Targets = Annotated[Mapping[TargetName, TargetKeys], Meta(min_length=1)]


def packaged_targets(
    default: YamlFile, entries: Sequence[str] | Mapping[str, TargetKeys]
) -> dict[str, Target]:
    """Return the targets of the packaged default.yml, by name in its order."""
    return {target.name: target for target in parse_targets(default, entries, {})}


def parse_targets(
    file: YamlFile,
    entries: Sequence[str] | Mapping[str, TargetKeys],
    packaged: Mapping[str, Target],
    *,
    is_command: bool = False,
) -> tuple[Target, ...]:
    """Return the targets under `targets` of a file, in its order.

    They are packaged ones by name, or a mapping. Raises ConfigError if no packaged
    target has a name, if a target extends itself or one that is missing, or if a
    backend is nearly one of IREE's. The targets of a command are names, which mean
    something to the command alone.
    """
    if is_command:
        return _command_targets(file, entries)
    if isinstance(entries, Mapping):
        _check_targets(file, entries)
        _check_backends(file, entries, packaged)
        return tuple(_parsed(file, entries, packaged))
    for index, name in enumerate(entries):
        if name not in packaged:
            message = f"no default target is called {name!r}"
            raise file.error(
                ("targets", index), message, near_or_known(name, list(packaged))
            )
    return tuple(packaged[name] for name in entries)


def _command_targets(
    file: YamlFile, entries: Sequence[str] | Mapping[str, TargetKeys]
) -> tuple[Target, ...]:
    """Return the targets of a command; raises ConfigError for keys that are IREE's."""
    if not isinstance(entries, Mapping):
        entries = dict.fromkeys(entries, TargetKeys())
    for name, entry in entries.items():
        for key in ("backend", "extends", "releases"):
            if getattr(entry, key):
                raise file.error(
                    ("targets", name, key),
                    "is for IREE's targets",
                    "flags are added to the command",
                )
    targets = []
    for name, entry in entries.items():
        target = Target(
            name=name,
            backend=name,
            flags=entry.flags,
            unsupported=entry.unsupported or None,
        )
        targets.append(target)
    return tuple(targets)


def _check_targets(file: YamlFile, entries: Mapping[str, TargetKeys]) -> None:
    """Raise ConfigError for a target without a backend, or with flags that do not fit."""
    for name, entry in entries.items():
        if not entry.backend and not entry.extends:
            raise file.error(
                ("targets", name),
                "the key 'backend' is missing",
                "for example backend: vmvx, or extends: vmvx",
            )
        require_fit_for_iree(file, ("targets", name, "flags"), entry.flags)
        for range_, flags in entry.releases.items():
            require_fit_for_iree(file, ("targets", name, "releases", range_), flags)


def _check_backends(
    file: YamlFile, entries: Mapping[str, TargetKeys], packaged: Mapping[str, Target]
) -> None:
    """Raise ConfigError for a backend that is nearly IREE's own, which is a mistake.

    Any other may be a plugin's, which nobody here knows.
    """
    backends = {target.backend for target in packaged.values()}
    for name, entry in entries.items():
        near = get_close_matches(entry.backend, backends, n=1, cutoff=0.8)
        if near and entry.backend not in backends:
            message = f"no backend is called {entry.backend!r}"
            raise file.error(
                ("targets", name, "backend"), message, f"did you mean {near[0]!r}?"
            )


def parse_flags(text: str) -> tuple[str, ...]:
    """Return the flags that are quoted as in a shell, on one or more lines.

    Raises ValueError with one line for the user.
    """
    flags = list[str]()
    try:
        for line in text.splitlines():
            flags += shlex.split(line)
    except ValueError as error:
        raise ValueError("a quotation mark is not closed") from error
    for flag in flags:
        if not flag.startswith("-"):
            raise ValueError(
                f"{flag[:60]!r} is not a flag: a flag begins with - and has its value"
                " after ="
            )
        if not re.fullmatch(FLAG, flag):
            raise ValueError(
                f"{flag[:60]!r} does not fit: a flag begins with - and is on one line"
            )
    return tuple(flags)


_PARAMETERS = "remove it: the bot does not measure an archive of parameters"
_NOT_RELATIVE = (
    "write a relative path that ends in .o, without '..': each build writes into a"
    " folder of its own"
)
_BACKEND = "name a target with that backend"
_WHOLE = "remove it: the bot measures the whole artifact"
_BACKEND_OPTIONS = ("--iree-hal-target-backends", "--iree-hal-target-device")
_OTHER_OUTPUT_OPTIONS = (
    "--compile-to",
    "--compile-from",
    "--compile-mode",
    "--output-format",
    "--help",
    "--help-hidden",
    "--help-list",
    "--help-list-hidden",
    "--version",
    "-o",
    "--o",
    "--split-input-file",
    "--iree-vm-bytecode-module-output-format",
    "--iree-vm-c-module-output-format",
    "--iree-vm-c-module-optimize",
    "--iree-vm-c-module-strip-debug-ops",
    "--iree-hal-list-target-backends",
    "--iree-llvmcpu-list-targets",
    "--iree-list-plugins",
)
_PARAMETER_OPTIONS = (
    "--iree-opt-export-parameters",
    "--iree-opt-splat-parameters",
    "--iree-parameter-export",
    "--iree-parameter-splat",
    "--iree-parameter-encoder-output-file",
)
_SET_HERE = {
    **dict.fromkeys(_BACKEND_OPTIONS, _BACKEND),
    **dict.fromkeys(_OTHER_OUTPUT_OPTIONS, _WHOLE),
    **dict.fromkeys(_PARAMETER_OPTIONS, _PARAMETERS),
}
"""Option of IREE's that a user cannot give → what to do instead.

The bot sets it itself, or the option leaves no artifact.
"""


def unfit_for_iree(flag: str) -> tuple[str, str] | None:
    """Return why a flag cannot go to IREE's tools, and what to do instead.

    None if it can.
    """
    if hint := _SET_HERE.get(_option(flag)):
        return f"{_option(flag)} is not a flag for a build", hint
    if _option(flag) == LIBRARY_PATH_OPTION and not _stays_inside(
        flag.partition("=")[2]
    ):
        return f"{flag[:200]!r} is not a path in the folder of a build", _NOT_RELATIVE
    if not re.match("--.", flag):
        return (
            f"{flag[:60]!r} does not fit: an IREE flag begins with --",
            "for example --iree-opt-level=O2",
        )
    return None


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return path.endswith(".o") and not path.startswith("/") and ".." not in parts


def require_fit_for_iree(
    file: YamlFile, key_path: KeyPath, flags: Sequence[str]
) -> None:
    """Raise ConfigError for the first flag of a list that cannot go to IREE's tools."""
    for index, flag in enumerate(flags):
        if unfit := unfit_for_iree(flag):
            raise file.error((*key_path, index), *unfit)


def merged(inherited: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return both lists of flags as one.

    Added values of an option take the place of the inherited ones. New options are
    last. If an option is there twice, the compiler takes the last one; of a list it
    takes all. So the result has either the inherited values of an option or the
    added ones, however many there are.
    """
    values_of: dict[str, list[str]] = {}
    for flag in added:
        values_of.setdefault(_option(flag), []).append(flag)
    flags: list[str] = []
    replaced: set[str] = set()
    for flag in inherited:
        option = _option(flag)
        if option not in values_of:
            flags.append(flag)
        elif option not in replaced:
            replaced.add(option)
            flags += values_of[option]
    for flag in added:
        if _option(flag) not in replaced:
            flags.append(flag)
    return tuple(flags)


def _option(flag: str) -> str:
    return flag.partition("=")[0]


def _parsed(
    file: YamlFile, entries: Mapping[str, TargetKeys], packaged: Mapping[str, Target]
) -> Iterator[Target]:
    """Yield the targets of a mapping, in its order.

    `extends` names a target above it, or a packaged one.
    """
    targets = dict(packaged)
    for name, entry in entries.items():
        for range_ in entry.releases:
            try:
                SpecifierSet(range_)
            except InvalidSpecifier:
                message = f"{range_!r} is not a range of releases"
                raise file.error(
                    ("targets", name, "releases", range_), message, _RANGE_HINT
                ) from None
        own_flags = entry.flags
        releases = tuple(entry.releases.items())
        target = Target(
            name=name,
            backend=entry.backend,
            flags=own_flags,
            unsupported=entry.unsupported or None,
            releases=releases,
        )
        if entry.extends:
            source = targets.get(entry.extends)
            if source is None:
                message = (
                    "no default target, and no target above this one, is called"
                    f" {entry.extends!r}"
                )
                raise file.error(
                    ("targets", name, "extends"),
                    message,
                    near_or_known(entry.extends, list(targets)),
                )
            inherited = source.flags
            merging = [(range_, merged(inherited, flags)) for range_, flags in releases]
            for range_, flags in source.releases:
                merging.append((range_, merged(flags, own_flags)))
            target = Target(
                name=name,
                backend=source.backend,
                flags=merged(inherited, own_flags),
                unsupported=entry.unsupported or source.unsupported,
                releases=tuple(merging),
            )
        targets[name] = target
        yield target
