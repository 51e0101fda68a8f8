"""Suites in the layout of IREE's `torch_models`: modules as what to compile, compstat tests as goldens.

The layout is that of https://github.com/iree-org/iree, `tests/external/iree-test-suites/torch_models`, and what its
files mean is what their runner makes of them: https://github.com/iree-org/iree-test-suites, `torch_models/README.md`,
`pytest_iree/module.py` and `pytest_iree/compstat_test.py`.

* A file in a folder `modules` is a module: `mlir` is a URL (the runner takes no other; a path from the suite's folder
  is ours), `compiler_flags` is all that is on the compiler's command line.
* Any other file with `"type": "compstat"` names its module by its path from the suite's folder, without `.json`.
  `golden_dispatch_count` and `golden_binary_size` are ceilings: a value that is equal passes. Either may be missing.
* Files of other types run modules, and say nothing of their code.

What compiler flags mean is in IREE's documentation of deployment configurations (https://iree.dev/guides/).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from bot.config.units import parse_size
from bot.config.yaml_file import Globs, Keys, Text, YamlFile, examples, pattern
from bot.core.backends import BACKENDS, backend_of
from bot.core.json_text import parse_json
from bot.core.planned import Target
from bot.core.policy import Amount, LevelSpec, Rule, any_match
from bot.core.record import Small, is_count
from bot.errors import ConfigError

METRIC_OF = {"golden_dispatch_count": "dispatch_sites", "golden_binary_size": "artifact_bytes"}
"""Key of a compstat file → the metric that it limits."""
MOST_BYTES = 1 << 20  # of a file of a suite
MAX_SIZE = "1GiB"  # what a model may have that is fetched, where the suite does not say
_SIZE, _SHA256 = "[0-9]+([.][0-9]+)? *(B|KiB|MiB|GiB)", "a SHA-256 is 64 hexadecimal digits, in lower case"
_EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # that of no bytes
_MODEL_SUFFIXES = (".mlir", ".mlirbc")
_FLAG = re.compile(r"--[^\x00-\x1f]+")
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")


class SuiteKeys(Keys, frozen=True):
    """One suite.

    Attributes:
        torch_models: The suite's folder, relative to this file's directory; modules are the JSON files in its folders
            called 'modules'.
        modules: Globs of the modules to keep, named as compstat files name them; * crosses directories. Absent: all.
        max_size: How large a model may be that is fetched from its URL. Default: 1GiB.
        sha256: Module to the SHA-256 that its model must have; another one is refused.
    """

    torch_models: Annotated[Text, examples("tests/external/iree-test-suites/torch_models")]
    modules: Annotated[Globs, examples(["sdxl/modules/clip_*"])] = ("*",)
    max_size: Annotated[str, pattern(_SIZE, "a size is a number with B, KiB, MiB or GiB", "200MiB")] = MAX_SIZE
    sha256: Annotated[
        Mapping[str, Annotated[str, pattern("[0-9a-f]{64}", _SHA256, _EMPTY)]],
        examples({"sdxl/modules/clip_cpu": _EMPTY}),
    ] = {}


class Golden(Small, frozen=True):
    """One figure of a compstat file."""

    key: str  # `golden_dispatch_count` or `golden_binary_size`
    value: int  # the largest that passes
    file: Path  # where it stands
    shown: str  # its path from the suite's folder
    line: int  # of the key, from 1


class SuiteModule(Small, frozen=True):
    """One module of a suite: one cell."""

    name: str  # the model's: the folders and the module, `sdxl-clip_gfx942` for `sdxl/modules/clip_gfx942`
    mlir: str | Path  # a URL, or the path of a file
    target: Target  # with all flags of the module, and no others
    max_bytes: int  # how large a model may be that is fetched
    sha256: str  # what the bytes of the model must have (hex); empty where nobody says
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
        scope = (self.name,), (self.target.name,)
        limits = (Amount(golden.value, "own", f"{golden.value:,}") for golden in self.goldens)
        named = ((f"{one.shown}:{one.line} {one.key}", (METRIC_OF[one.key],)) for one in self.goldens)
        return tuple(
            Rule(*names, *scope, fail=LevelSpec(limit=limit), beside=True)
            for names, limit in zip(named, limits, strict=True)
        )


def suite_modules(
    file: YamlFile, entries: Sequence[SuiteKeys], taken: Collection[str], *, must_exist: bool = True
) -> tuple[SuiteModule, ...]:
    """The modules of all suites of a configuration, sorted by name; raises ConfigError naming file, and line or key.

    `taken`: names of the targets that the configuration has; `must_exist`: whether a suite that is not there is an
    error, and not just none.
    """
    modules: dict[str, SuiteModule] = {}
    for index, entry in enumerate(entries):
        if not must_exist and not (file.path.parent / entry.torch_models).is_dir():
            continue
        for module in _suite(file, index, entry, taken):
            if module.name in modules:
                what = f"{module.file} and {modules[module.name].file} are both called {module.name!r}"
                raise file.error(("suites", index), what, "rename one of them")
            modules[module.name] = module
    return tuple(modules[name] for name in sorted(modules))


def require_own_names(file: YamlFile, modules: Iterable[SuiteModule], models: Iterable[Path]) -> None:
    """Raise ConfigError where a model of the configuration is called like a module."""
    own = {model.stem: model for model in models}
    for module in modules:
        if module.name in own:
            what = f"{module.file} and {own[module.name]} are both called {module.name!r}"
            raise file.error(("suites",), what, "rename one of them")


def _suite(file: YamlFile, index: int, entry: SuiteKeys, taken: Collection[str]) -> Iterator[SuiteModule]:
    at = ("suites", index)
    top = file.path.parent / entry.torch_models
    if not top.is_dir():
        raise file.error((*at, "torch_models"), f"{str(top)!r} is no directory", "the path is relative to this file")
    json_files = sorted(path for path in top.rglob("*.json") if path.is_file())
    paths = {path.relative_to(top).with_suffix("").as_posix(): path for path in json_files}
    modules = {name: path for name, path in paths.items() if path.parent.name == "modules"}
    goldens = _goldens(top, modules.keys(), (path for name, path in paths.items() if name not in modules))
    for number, glob in enumerate(entry.modules):
        if not any(any_match([glob], name) for name in modules):
            hint = "name modules as compstat files do: sdxl/modules/clip_*"
            raise file.error((*at, "modules", number), f"{glob!r} matches no module in {top}", hint)
    measured = {name: path for name, path in modules.items() if any_match(entry.modules, name)}
    for name in entry.sha256.keys() - measured.keys():
        raise file.error((*at, "sha256", name), f"no module is called {name!r}", "name one that is measured")
    try:
        most = parse_size(entry.max_size)
    except ValueError as error:
        raise file.error((*at, "max_size"), str(error)) from error
    for name, path in sorted(measured.items()):
        mlir, target = _module(top, path, taken)
        yield SuiteModule(_name(name), mlir, target, most, entry.sha256.get(name, ""), path, goldens.get(name, ()))


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
        written = data.get("mlir")
        where, hint = f"{path}: mlir", "give an https URL, or a path from the suite's folder"
        if not isinstance(written, str) or not written:
            raise ConfigError("is missing, or no text", where=where, hint=hint)
        scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", written)
        if scheme and scheme[1].lower() != "https":
            raise ConfigError(f"is an address of {scheme[1]}, and models are fetched over https only", where=where)
        name = urlsplit(written).path if scheme else written
        if not name.endswith(_MODEL_SUFFIXES):
            raise ConfigError(f"names no model ({', '.join(_MODEL_SUFFIXES)})", where=where, hint=hint)
        return (written if scheme else top / written), suite_target(flags, taken)
    except ValueError as error:
        raise ConfigError(str(error), where=f"{path}: compiler_flags") from None


def _goldens(top: Path, modules: Collection[str], paths: Iterable[Path]) -> dict[str, tuple[Golden, ...]]:
    """Module → its goldens, the smallest first: where several files limit the same, all of their tests must pass."""
    goldens: dict[str, list[Golden]] = {}
    for path in paths:
        data, text = _read(path)
        if data.get("type") != "compstat":
            continue
        module = data.get("module")
        if module not in modules:
            hint = "name it by its path from the suite's folder, without .json"
            raise ConfigError(f"there is no module {str(module)[:80]!r}", where=f"{path}: module", hint=hint)
        goldens.setdefault(str(module), []).extend(_values(top, path, data, text))
    return {module: tuple(sorted(own, key=lambda golden: golden.value)) for module, own in goldens.items()}


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


_BACKENDS = "--iree-hal-target-backends"
_DEVICE = "--iree-hal-target-device"
_LOCAL = "--iree-hal-local-target-device-backends"
_BACKEND_OF = {device: backend.name for backend in BACKENDS for device in backend.devices}
"""Device, or alias of one → the backend that makes code for it."""
_HOSTS = tuple(backend.name for backend in BACKENDS if backend.devices and backend.runs_on != "its device")
_CPU_TRIPLE, _CPU = "--iree-llvmcpu-target-triple", "--iree-llvmcpu-target-cpu"
_CPU_FEATURES = "--iree-llvmcpu-target-cpu-features"
_LONGEST = 80
PREFIX = "suite-"  # keeps a suite's target apart from a target of the configuration with the name that it would have


def suite_target(flags: Sequence[str], taken: Collection[str]) -> Target:
    """The target that these flags are all of; ValueError with one line for the user where they name none, or several.

    `taken`: names of other targets.
    """
    given: dict[str, list[str]] = {}
    for flag in flags:
        option, _, value = flag.partition("=")
        given.setdefault(option, []).append(value)
    backend = _backend(given)
    values = {option: texts[-1] for option, texts in given.items()}
    chip = [values[option] for option in backend_of(backend).chips if values.get(option)][-1:]
    if backend == "llvm-cpu":
        host = "host" if values.get(_CPU_FEATURES) == "host" else ""
        chip = [values.get(_CPU_TRIPLE, "").partition("-")[0], values.get(_CPU, "") or host]
    name = _OTHER.sub("-", "-".join(filter(None, [backend, *chip])))[:_LONGEST].strip("-")
    return Target(f"{PREFIX}{name}" if name in taken else name, backend, tuple(flags), whole=True)


def _backend(given: dict[str, list[str]]) -> str:
    """The one backend; a device of the machine itself says which in an option of its own."""
    devices = [
        value for option in (_BACKENDS, _DEVICE) for value in ",".join(given.get(option, ())).split(",") if value
    ]
    if len(set(devices)) > 1:
        raise ValueError(f"names several devices, {' and '.join(map(repr, devices[:3]))}: one module is one cell")
    if not devices:
        raise ValueError(f"names no device: {_DEVICE}=hip, or another")
    device = re.sub(r"\[\d+\]$", "", devices[0])
    if device != "local":
        if device not in _BACKEND_OF:
            raise ValueError(f"the device {device[:40]!r} is not known, known are {', '.join(_BACKEND_OF)} and local")
        return _BACKEND_OF[device]
    backends = given.get(_LOCAL, [""])[-1]
    if backends not in _HOSTS:
        raise ValueError(f"names the device 'local' without one backend: {_LOCAL}={', or '.join(_HOSTS)}")
    return backends
