"""The configuration: one YAML file, completed key by key from the packaged default, as one frozen value.

`configs/schema.json` says which keys there are and what shape each has; this module gives them their meaning.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bot.core.codec.kinds import mistaken
from bot.core.folds.fold_options import FoldOptions
from bot.core.rules.policy import Ratio, Rule
from bot.core.rules.spec import is_address, refused_link
from bot.core.values.planned import Target
from bot.core.values.verdict import Status
from bot.errors import ConfigError
from bot.inputs.suites import (
    check_noise,
    parse_fold,
    parse_noise,
    parse_pairs,
    parse_repeats,
    parse_sections,
    read_manifest,
)
from bot.inputs.targets import parse_targets
from bot.inputs.thresholds import parse_rules
from bot.inputs.torch_models.suite_modules import SuiteModule, require_own_names, suite_modules
from bot.inputs.yaml.schema_errors import check_shape
from bot.inputs.yaml.yaml_file import YamlFile, read_yaml
from bot.system.files import whole_or_nothing

MODEL_SUFFIXES = (".mlir", ".mlirbc", ".onnx")
CONFIG_NAMES = (".github/code-size.yml", "code-size.yml")
"""Where the configuration is looked for when nobody says: the first of these that is there."""
PACKAGED = Path("default")
"""Asks for the packaged configuration where a file would be named."""


@dataclass(frozen=True, slots=True)
class CompilerChoice:
    """Where the compilers of the two sides come from; `requirements` excludes `base` and `head`.

    Attributes:
        base, head: a SPEC, as written; None where the file does not say.
        requirements: path in the repository of a requirements file to read on each side.
        find_links: where wheels are looked for beside the index: HTTPS pages and directories.
        repository: `owner/name` of the compiler's source on GitHub; empty where its commits are not to be looked up.
    """

    base: str | None = None
    head: str | None = None
    requirements: str | None = None
    find_links: tuple[str, ...] = ()
    repository: str = "iree-org/iree"


Store = Literal["auto", "data-branch", "directory", "artifact"]


@dataclass(frozen=True, slots=True)
class BaselineChoice:
    """Where measured base sides are kept.

    Attributes:
        store: `auto` is `data-branch` under GitHub Actions, and `directory` elsewhere.
        branch: of `data-branch`; a name without `refs/heads/`.
        directory: of `directory`; relative to where the program runs.
        ancestors: how many commits before the base are looked through.
        wait_minutes: how long at most a run waits for the base commit's own, where it cannot measure the base itself.
        compiler_paths: globs of the compiler's source in the repository, `*` being any text; empty: everything.
        traces: how many of its largest dispatches are stored with what each pass of the compiler does to them.
    """

    store: Store
    branch: str
    directory: Path
    ancestors: int
    wait_minutes: int
    compiler_paths: tuple[str, ...]
    traces: int


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be configured; the fields are the keys of the schema, `sections` being its `components`.

    Attributes:
        models: files with unique stems, sorted by stem; relative where the configuration's own path is.
        targets: in the order of the file.
        flags: appended for every cell.
        suites: modules of suites, sorted by name: cells with a target of their own each.
        thresholds: the suites' goldens, which stand beside them; then first match decides, and the last is a catch-all.
        states: every cell state → what it does to the verdict.
        templates: a directory that overrides packaged templates.
        report_id: names the comment that the report updates.
        comment: `changes` where a comment needs news, `always` where it does not.
        fail_job: True where the verdict `fail` fails the job, too.
        page_url: where others publish the page of a report, with `{sha}` and `{run_id}`; empty where nobody does.
        baseline: where measured base sides are kept.
        sections: name and glob of parts of the models; the first that matches decides.
        pairs: a model with static and the same with dynamic shapes; they need not be among the models.
        noise: inexact metric → what share of itself it varies by; only metrics in it are judged.
        fold: how folds are judged; None where no report is to have a fold audit.
        repeats: globs of model and target of cells whose compiler is known not to repeat itself.
    """

    compiler: CompilerChoice
    models: tuple[Path, ...]
    targets: tuple[Target, ...]
    suites: tuple[SuiteModule, ...]
    flags: tuple[str, ...]
    timeout_seconds: int
    thresholds: tuple[Rule, ...]
    states: Mapping[str, Status]
    templates: Path | None
    report_id: str
    comment: Literal["changes", "always"]
    fail_job: bool
    page_url: str
    baseline: BaselineChoice
    sections: tuple[tuple[str, str], ...]
    pairs: tuple[tuple[str, str], ...]
    noise: Mapping[str, Ratio]
    fold: FoldOptions | None = None
    repeats: tuple[tuple[str, str], ...] = ()


def configs_dir() -> Path:
    """Where default.yml, schema.json and the default suite are: in an installed package or a checkout."""
    package = Path(__file__).resolve().parents[1]
    places = (package / "_data" / "configs", package.parent / "configs")
    for place in places:
        if (place / "default.yml").is_file():
            return place
    raise ConfigError("the packaged default.yml is missing", hint="install the bot again")


def is_packaged(model: Path) -> bool:
    """True for a model of the packaged suite, which a configuration without models has."""
    return model.resolve().is_relative_to(configs_dir().resolve())


def config_in(folder: Path) -> str:
    """The configuration's path below a folder; empty where there is none."""
    return next((name for name in CONFIG_NAMES if (folder / name).is_file()), "")


def find_config(here: Path) -> Path | None:
    """The configuration of a folder, else of the nearest above it in its repository; relative to the folder."""
    found = (folder / name for folder in _up_to_top(here) if (name := config_in(folder)))
    return next((Path(os.path.relpath(path, here)) for path in found), None)


def _up_to_top(here: Path) -> list[Path]:
    """The folder and those above it in its repository; itself alone where there is no repository."""
    above = [here, *here.parents]
    return above[: next((number for number, folder in enumerate(above, 1) if (folder / ".git").exists()), 1)]


def top_above(folder: Path) -> Path:
    """The top of the repository that holds a folder; the folder itself where there is none."""
    return _up_to_top(folder.resolve())[-1]


def chosen_config(given: Path | None, say: Callable[[str], None]) -> Path | None:
    """The configuration that was named, else the one that is found here, which is told; None for the packaged one.

    Raises:
        ConfigError: what was named is not there.
    """
    if given is None:
        found = find_config(Path.cwd())
        say(f"configuration: {found or 'the packaged suite'}")
        return found
    if given == PACKAGED and not given.exists():
        return None
    if not given.exists():
        hint = f"without --config it is {' or '.join(CONFIG_NAMES)} if one is there; {PACKAGED} is the packaged suite"
        raise ConfigError("cannot be read: No such file or directory", where=str(given), hint=hint)
    return given


def load_schema() -> dict[str, Any]:
    """The JSON Schema of configurations."""
    schema: dict[str, Any] = json.loads((configs_dir() / "schema.json").read_text(encoding="utf-8"))
    return schema


def load_config(path: Path | None = None, *, models: bool = True) -> Config:
    """Read a configuration file, or the packaged default.

    A key that the file leaves out is taken from default.yml, whole; only `states` and `baseline` are completed entry
    by entry, and `compiler` is never taken from there: its pins are an example's, and nobody asked to compare those.
    Raises ConfigError: one line that names file, line and key.

    Args:
        models: False where the rules are wanted without the models, which need not be there; they are then (), and the
            goldens of a suite that is not there limit nothing.
    """
    default = _read(configs_dir() / "default.yml")
    file = default if path is None else _read(path)
    source = {key: file if key in file.data else default for key in {*file.data, *default.data}}
    plain = {key: source[key].data[key] for key in _PLAIN}
    pairs, repeats = read_manifest(configs_dir() / "models" / "suite.yml")
    rules, noise = parse_rules(source["thresholds"]), parse_noise(source["noise"])
    check_noise(source["thresholds"], rules, noise)
    targets = parse_targets(file, default)
    suites = suite_modules(file, {*default.data["targets"], *(target.name for target in targets)}, must_exist=models)
    goldens = tuple(rule for module in suites for rule in module.rules)
    found = _models(source["models"]) if models and not (suites and "models" not in file.data) else ()
    require_own_names(file, suites, found)
    return Config(
        **plain,
        compiler=_compiler(file) if path else CompilerChoice(),
        models=found,
        targets=targets,
        suites=suites,
        flags=tuple(source["flags"].data["flags"]),
        thresholds=(*goldens, *rules),
        states={**default.data["states"], **file.data.get("states", {})},
        templates=_templates(file),
        baseline=_baseline({**default.data["baseline"], **file.data.get("baseline", {})}),
        sections=parse_sections(source["components"]),
        pairs=parse_pairs(file, pairs),
        repeats=parse_repeats(file, repeats),
        noise=noise,
        fold=parse_fold(file),
    )


_PLAIN = ("timeout_seconds", "report_id", "comment", "fail_job", "page_url")
"""Keys whose value means what it says."""


def _compiler(file: YamlFile) -> CompilerChoice:
    plain = dict(file.data.get("compiler", {}))
    given = plain.pop("find_links", ())
    links = (given,) if isinstance(given, str) else given
    return CompilerChoice(**plain, find_links=tuple(_place(file, link) for link in links))


def _place(file: YamlFile, link: str) -> str:
    """A page as it is written, which is never told again when refused; a directory from this file's own."""
    place = link if is_address(link) else str(file.path.parent / link)
    why = refused_link(link)
    if not is_address(link) and not Path(place).is_dir():
        why = f"{link!r} is no directory"
    if why:
        hint = "name an HTTPS page or a directory; what needs a login belongs into PIP_FIND_LINKS of the environment"
        raise file.error(("compiler", "find_links"), why, hint)
    return place


def _baseline(plain: Mapping[str, Any]) -> BaselineChoice:
    paths = {"directory": Path(plain["directory"]), "compiler_paths": tuple(plain["compiler_paths"])}
    return BaselineChoice(**{**plain, **paths})


def _read(path: Path) -> YamlFile:
    try:
        file = read_yaml(path)
        check_shape(file, load_schema())
    except ConfigError:
        if other := mistaken(whole_or_nothing(path), "configuration"):
            raise ConfigError(other[0], where=str(path), hint=other[1]) from None
        raise
    return file


def _matches(file: YamlFile, index: int, pattern: str) -> list[Path]:
    root = file.path.parent
    found = sorted(glob.glob(pattern, root_dir=root, recursive=True))
    models = [root / name for name in found if name.endswith(MODEL_SUFFIXES) and (root / name).is_file()]
    if not models:
        what = f"{pattern!r} matches no model ({', '.join(MODEL_SUFFIXES)}) in {root}"
        raise file.error(("models", index), what, f"globs are relative to this file{_meant(root, pattern)}")
    return models


def _meant(root: Path, pattern: str) -> str:
    """How to write a glob that was meant from the repository's top, as it matches there; empty where it does not."""
    top = top_above(root)
    if root.resolve() == top or os.path.isabs(pattern):
        return ""
    there = any(name.endswith(MODEL_SUFFIXES) for name in glob.iglob(pattern, root_dir=top, recursive=True))
    return f": write {os.path.relpath(top, root.resolve())}/{pattern}" if there else ""


def _models(file: YamlFile) -> tuple[Path, ...]:
    by_stem: dict[str, Path] = {}
    for index, pattern in enumerate(file.data["models"]):
        for model in _matches(file, index, pattern):
            other = by_stem.setdefault(model.stem, model)
            if other.resolve() != model.resolve():
                what = f"{other} and {model} are both called {model.stem!r}"
                raise file.error(("models", index), what, "rename one of them")
    return tuple(by_stem[stem] for stem in sorted(by_stem))


def _templates(file: YamlFile) -> Path | None:
    if "templates" not in file.data:
        return None
    place: Path = file.path.parent / file.data["templates"]
    if not place.is_dir():
        raise file.error(("templates",), f"{str(place)!r} is no directory", "the path is relative to this file")
    return place
