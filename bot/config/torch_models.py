"""A folder in the layout of IREE's `torch_models`: its modules as what to compile, its compstat tests as goldens.

The layout is that of https://github.com/iree-org/iree, `tests/external/iree-test-suites/torch_models`, and what its
files mean is what their runner makes of them: https://github.com/iree-org/iree-test-suites, `torch_models/README.md`,
`pytest_iree/module.py` and `pytest_iree/compstat_test.py`.

* A file in a folder `modules` is a module: `mlir` is a URL (the runner takes no other; a path from the suite's folder
  is ours), `compiler_flags` is all that is on the compiler's command line.
* Any other file with `"type": "compstat"` names its module by its path from the suite's folder, without `.json`.
  `golden_dispatch_count` and `golden_binary_size` are ceilings: a value that is equal passes. Either may be missing.
* Files of other types run modules, and say nothing of their code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bot.config.suite_target import suite_target
from bot.config.units import parse_size
from bot.config.yaml_file import YamlFile
from bot.core.codec.nesting import parse_json
from bot.core.record import is_count
from bot.core.rules.policy import Amount, LevelSpec, Rule, any_match
from bot.core.values.planned import Target
from bot.errors import ConfigError

METRIC_OF = {"golden_dispatch_count": "dispatch_sites", "golden_binary_size": "artifact_bytes"}
"""Key of a compstat file → the metric that it limits."""
MOST_BYTES = 1 << 20
"""Of a file of a suite."""
MAX_SIZE = "1GiB"
"""What a model may have that is fetched, where the suite does not say."""
_MODEL_SUFFIXES = (".mlir", ".mlirbc")
_FLAG = re.compile(r"--[^\x00-\x1f]+")
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Golden:
    """One figure of a compstat file.

    Attributes:
        key: `golden_dispatch_count` or `golden_binary_size`.
        value: the largest that passes.
        file: where it stands.
        shown: its path from the suite's folder.
        line: of the key, from 1.
    """

    key: str
    value: int
    file: Path
    shown: str
    line: int


@dataclass(frozen=True, slots=True)
class SuiteModule:
    """One module of a suite: one cell.

    Attributes:
        name: the model's: the folders and the module, `sdxl-clip_gfx942` for `sdxl/modules/clip_gfx942`.
        mlir: a URL, or the path of a file.
        target: with all flags of the module, and no others.
        max_bytes: how large a model may be that is fetched.
        sha256: what the bytes of the model must have (hex); empty where nobody says.
    """

    name: str
    mlir: str | Path
    target: Target
    max_bytes: int
    sha256: str
    file: Path
    goldens: tuple[Golden, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """All that is read of it."""
        own = () if isinstance(self.mlir, str) else (self.mlir,)
        return (self.file, *own, *(golden.file for golden in self.goldens))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Its goldens as limits, which hold beside what the configuration allows."""
        return tuple(self._rule(golden) for golden in self.goldens)

    def _rule(self, golden: Golden) -> Rule:
        limit = LevelSpec(limit=Amount(golden.value, "own", f"{golden.value:,}"))
        name, metrics = f"{golden.shown}:{golden.line} {golden.key}", (METRIC_OF[golden.key],)
        return Rule(name, metrics, (self.name,), (self.target.name,), fail=limit, beside=True)


def suite_modules(file: YamlFile, taken: Collection[str], *, must_exist: bool = True) -> tuple[SuiteModule, ...]:
    """The modules of all suites of a configuration, sorted by name; raises ConfigError naming file, and line or key.

    Args:
        taken: names of the targets that the configuration has.
        must_exist: whether a suite that is not there is an error, and not just none.
    """
    found: dict[str, SuiteModule] = {}
    for index, plain in enumerate(file.data.get("suites", ())):
        if not must_exist and not (file.path.parent / plain["torch_models"]).is_dir():
            continue
        for module in _suite(file, index, plain, taken):
            if module.name in found:
                what = f"{module.file} and {found[module.name].file} are both called {module.name!r}"
                raise file.error(("suites", index), what, "rename one of them")
            found[module.name] = module
    return tuple(found[name] for name in sorted(found))


def require_own_names(file: YamlFile, modules: Iterable[SuiteModule], models: Iterable[Path]) -> None:
    """Raise ConfigError where a model of the configuration is called like a module."""
    own = {model.stem: model for model in models}
    for module in modules:
        if module.name in own:
            what = f"{module.file} and {own[module.name]} are both called {module.name!r}"
            raise file.error(("suites",), what, "rename one of them")


def _suite(file: YamlFile, index: int, plain: Mapping[str, Any], taken: Collection[str]) -> Iterator[SuiteModule]:
    at = ("suites", index)
    top = file.path.parent / plain["torch_models"]
    if not top.is_dir():
        raise file.error((*at, "torch_models"), f"{str(top)!r} is no directory", "the path is relative to this file")
    paths = {path.relative_to(top).with_suffix("").as_posix(): path for path in _json_files(top)}
    modules = {name: path for name, path in paths.items() if path.parent.name == "modules"}
    goldens = _goldens(top, modules.keys(), (path for name, path in paths.items() if name not in modules))
    globs = plain.get("modules", ["*"])
    for number, glob in enumerate(globs):
        if not any(any_match([glob], name) for name in modules):
            hint = "name modules as compstat files do: sdxl/modules/clip_*"
            raise file.error((*at, "modules", number), f"{glob!r} matches no module in {top}", hint)
    kept = {name: path for name, path in modules.items() if any_match(globs, name)}
    digests: Mapping[str, str] = plain.get("sha256", {})
    for name in digests.keys() - kept.keys():
        raise file.error((*at, "sha256", name), f"no module is called {name!r}", "name one that is measured")
    try:
        most = parse_size(plain.get("max_size", MAX_SIZE))
    except ValueError as error:
        raise file.error((*at, "max_size"), str(error)) from error
    for name, path in sorted(kept.items()):
        mlir, target = _module(top, path, taken)
        yield SuiteModule(_name(name), mlir, target, most, digests.get(name, ""), path, goldens.get(name, ()))


def _json_files(top: Path) -> list[Path]:
    return sorted(path for path in top.rglob("*.json") if path.is_file())


def _name(module: str) -> str:
    """`sdxl/modules/clip_cpu` → `sdxl-clip_cpu`."""
    *folders, own = module.split("/")
    return _OTHER.sub("-", "-".join([*(part for part in folders if part != "modules"), own]))


def _module(top: Path, path: Path, taken: Collection[str]) -> tuple[str | Path, Target]:
    data = _read(path)[0]
    flags = data.get("compiler_flags", [])
    if not isinstance(flags, list) or not all(isinstance(flag, str) and _FLAG.fullmatch(flag) for flag in flags):
        raise ConfigError("is no list of flags, each beginning with --", where=f"{path}: compiler_flags")
    try:
        return _mlir(top, path, data.get("mlir")), suite_target(flags, taken)
    except ValueError as error:
        raise ConfigError(str(error), where=f"{path}: compiler_flags") from None


def _mlir(top: Path, path: Path, written: Any) -> str | Path:
    where, hint = f"{path}: mlir", "give an https URL, or a path from the suite's folder"
    if not isinstance(written, str) or not written:
        raise ConfigError("is missing, or no text", where=where, hint=hint)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", written)
    if scheme and scheme[1].lower() != "https":
        raise ConfigError(f"is an address of {scheme[1]}, and models are fetched over https only", where=where)
    name = urlsplit(written).path if scheme else written
    if not name.endswith(_MODEL_SUFFIXES):
        raise ConfigError(f"names no model ({', '.join(_MODEL_SUFFIXES)})", where=where, hint=hint)
    return written if scheme else top / written


def _goldens(top: Path, modules: Collection[str], paths: Iterable[Path]) -> dict[str, tuple[Golden, ...]]:
    """Module → its goldens, the smallest first: where several files limit the same, all of their tests must pass."""
    found: dict[str, list[Golden]] = {}
    for path in paths:
        data, text = _read(path)
        if data.get("type") != "compstat":
            continue
        module = data.get("module")
        if module not in modules:
            hint = "name it by its path from the suite's folder, without .json"
            raise ConfigError(f"there is no module {str(module)[:80]!r}", where=f"{path}: module", hint=hint)
        found.setdefault(str(module), []).extend(_values(top, path, data, text))
    return {module: tuple(sorted(goldens, key=lambda golden: golden.value)) for module, goldens in found.items()}


def _values(top: Path, path: Path, data: Mapping[str, Any], text: str) -> Iterator[Golden]:
    for key in METRIC_OF:
        value = data.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ConfigError("is no number", where=f"{path}: {key}")
        if not is_count(whole := math.floor(value)):
            raise ConfigError("is no count", where=f"{path}: {key}")
        line = text.count("\n", 0, text.index(f'"{key}"')) + 1 if f'"{key}"' in text else 1
        yield Golden(key, whole, path, path.relative_to(top).as_posix(), line)


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """One file's object, and its text."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ConfigError(f"is larger than {MOST_BYTES:,} bytes", where=str(path))
        text, data = raw.decode("utf-8-sig"), parse_json(raw)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except ValueError as error:
        raise ConfigError(f"is no JSON: {error}", where=str(path)) from None
    if not isinstance(data, dict):
        raise ConfigError("holds no object", where=str(path), hint="take the file out of the suite's folder")
    return data, text
