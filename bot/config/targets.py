"""The targets of a configuration: packaged ones by name, or a mapping with what each is made of or derived from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bot.config.yaml_file import YamlFile
from bot.core.selecting import near_or_known
from bot.core.values.planned import Target

LONGEST_CHAIN = 16
"""How many targets may be derived one from the other, so that no file makes much out of little."""

_RANGE_HINT = "write it as pip does: '<3.11', '>=3.9,<3.12' or '==3.10.*'"


def parse_targets(file: YamlFile, default: YamlFile) -> tuple[Target, ...]:
    """The targets of a file in its order; the packaged ones where it has none.

    Args:
        default: the packaged default.yml, whose targets a file may name and derive others from.

    Raises:
        ConfigError: a target extends none that there is, or itself; or its backend is nearly one of IREE's.
    """
    packaged = _Mapping(default, {}).targets()
    wanted = file.data.get("targets", list(packaged))
    if isinstance(wanted, list):
        return tuple(packaged[name] for name in wanted)
    _refuse_misspelled(file, wanted, {target.backend for target in packaged.values()})
    return tuple(_Mapping(file, packaged).targets().values())


def merged(inherited: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """Both, but that an option of `own` stands in the place of the inherited one, and what is new at the end.

    The compiler takes the last one of an option that is there twice, and of a list of several all; so that a command
    is read as it is meant, it has either what was inherited or what `own` says, however often that is.
    """
    given: dict[str, list[str]] = {}
    for flag in own:
        given.setdefault(_option(flag), []).append(flag)
    flags: list[str] = []
    replaced: set[str] = set()
    for flag in inherited:
        option = _option(flag)
        if option not in given:
            flags.append(flag)
        elif option not in replaced:
            replaced.add(option)
            flags += given[option]
    return (*flags, *(flag for flag in own if _option(flag) not in replaced))


def _option(flag: str) -> str:
    return flag.partition("=")[0]


@dataclass(frozen=True, slots=True)
class _Mapping:
    """`targets` of one file, which are looked for there first, and then among the packaged ones."""

    file: YamlFile
    packaged: Mapping[str, Target]

    def targets(self) -> dict[str, Target]:
        return {name: self._target(name, ()) for name in self._plain}

    @property
    def _plain(self) -> Mapping[str, Mapping[str, Any]]:
        plain: Mapping[str, Mapping[str, Any]] = self.file.data["targets"]
        return plain

    def _target(self, name: str, below: tuple[str, ...]) -> Target:
        """One target; `below` are those that are derived from it, the first one first."""
        plain = self._plain[name]
        own, releases = tuple(plain.get("flags", ())), self._releases(name)
        if "extends" not in plain:
            return Target(name, plain["backend"], own, plain.get("unsupported"), releases=releases)
        source = self._source(name, plain["extends"], (*below, name))
        if source.name == name and len(plain) == 1:
            return source
        unsupported, inherited = plain.get("unsupported", source.unsupported), source.flags
        merging = tuple((range_, merged(inherited, flags)) for range_, flags in releases)
        merging += tuple((range_, merged(flags, own)) for range_, flags in source.releases)
        return Target(name, source.backend, merged(inherited, own), unsupported, source.name, releases=merging)

    def _releases(self, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """A target's own flags in ranges of releases, in the order of the file."""
        given: Mapping[str, Sequence[str]] = self._plain[name].get("releases", {})
        for range_ in given:
            try:
                SpecifierSet(range_)
            except InvalidSpecifier:
                what = f"{range_!r} is no range of releases"
                raise self.file.error(("targets", name, "releases", range_), what, _RANGE_HINT) from None
        return tuple((range_, tuple(flags)) for range_, flags in given.items())

    def _source(self, name: str, wanted: str, chain: tuple[str, ...]) -> Target:
        """What a target extends: of its own name the packaged one, else the file's own before a packaged one."""
        if wanted != name and wanted in self._plain:
            self._refuse_endless(wanted, chain)
            return self._target(wanted, chain)
        if wanted not in self.packaged:
            self._refuse_unknown(name, wanted)
        return self.packaged[wanted]

    def _refuse_unknown(self, name: str, wanted: str) -> None:
        what = f"no target is called {wanted!r}"
        if wanted == name:
            what = f"extends itself: no packaged target is called {name!r}"
        known = [other for other in dict.fromkeys((*self._plain, *self.packaged)) if other != name]
        raise self.file.error(("targets", name, "extends"), what, near_or_known(wanted, known))

    def _refuse_endless(self, wanted: str, chain: tuple[str, ...]) -> None:
        if wanted in chain:
            what = f"extends itself: {' → '.join((*chain[chain.index(wanted) :], wanted))}"
            raise self.file.error(("targets", chain[-1], "extends"), what, "give one of them a backend")
        if len(chain) > LONGEST_CHAIN:
            what = f"more than {LONGEST_CHAIN} targets are derived one from the other"
            raise self.file.error(("targets", chain[0], "extends"), what, "give one of them a backend")


def _refuse_misspelled(file: YamlFile, targets: Mapping[str, Mapping[str, Any]], known: Collection[str]) -> None:
    """A backend may be a plugin's, of which nobody here knows; one that is nearly IREE's own is a mistake."""
    for name, target in targets.items():
        backend = target.get("backend", "")
        near = get_close_matches(backend, known, n=1, cutoff=0.8)
        if near and backend not in known:
            what = f"no backend is called {backend!r}"
            raise file.error(("targets", name, "backend"), what, f"did you mean {near[0]!r}?")
