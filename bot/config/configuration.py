"""Read a configuration file, completed key by key from the packaged default."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from bot.config.targets import (
    Targets,
    packaged_targets,
    parse_targets,
    require_fit_for_iree,
)
from bot.config.thresholds import RuleKeys, parse_rules
from bot.config.yaml_file import KeyPath, YamlFile, read_yaml
from bot.config.yaml_problems import Plain
from bot.config.yaml_types import (
    END,
    Flag,
    Flags,
    Keys,
    Spec,
    Text,
    distinct,
    examples,
    except_beside,
    pattern,
    read_as,
)
from bot.core.findings import Status
from bot.core.metrics import (
    METRIC_BY_ID,
    MOST_OWN,
    OWN_ID,
    OwnMetric,
    OwnMetrics,
    Unit,
    own_metrics,
)
from bot.core.near import near_or_known, nearest
from bot.core.planned import Target
from bot.core.record import Small
from bot.core.rules import DEFAULT_STATES, Rule, misfit
from bot.core.spec import PROJECT, Command, Places, is_address, refused_link
from bot.errors import ConfigError

MODEL_SUFFIXES = (".mlir", ".mlirbc", ".onnx")
# where one is looked for: the first that is there
CONFIG_NAMES = (
    ".github/code-size.yml",
    "code-size.yml",
)
# asks for the packaged configuration where a file would be named
PACKAGED = Path("default")
SUITES = {
    "quick": "quick.yml",
    "full": None,
    "triton": "triton/code-size.yml",
    str(PACKAGED): None,
}
"""The name of a packaged suite on a command line → its file.

None stands for the packaged configuration.
"""
_T = TypeVar("_T")


class MetricKeys(Keys, frozen=True):
    """A further metric, which the command writes to facts.json.

    Lower is better. The same run always has to give the same value.

    Attributes:
        unit: The unit of the values.
        label: Name of the metric in tables. Defaults to its id, with spaces in place of
            underscores.
        about: One sentence that explains the metric to a newcomer.
        rule: Name of the threshold rule that judges the metric. Defaults to the first rule whose
            metrics match its id.
    """

    unit: Unit
    label: Annotated[str, examples("peak memory", min_length=1, max_length=40)] = ""
    about: Annotated[
        str, examples("the most memory that the program needs at once", max_length=200)
    ] = ""
    rule: Annotated[Text, examples("memory of the program")] = ""


_REPOSITORY = "([A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+)?"


class CompilerKeys(Keys, frozen=True):
    """The compilers of the two sides: base and head, or a requirements file that pins them.

    Without this key, the command line or the action's inputs name the compilers. There is no
    default compiler.

    Attributes:
        kind: iree, or command for any other compiler that runs as a command. The keys from package
            to stages are for commands only.
        package: Name of the compiler's package on the index. base and head are then releases of it
            or wheel files. Without a package, base and head are ref:NAME for a commit of this
            repository, or the words that replace {side} in run.
        run: The command, one entry a word. It runs without a network in an empty folder that has
            the sources of this file and one model. {model} is the path of the model, {target} the
            name of the target, {out} the folder for the results.
        artifacts: Globs of the files below {out} to measure. The command may also write *.su files
            (stack of functions, in GCC's format) and facts.json (further metrics: whole numbers by
            id).
        sources: Globs of further files that the command reads. The model and the files that run
            names are always there.
        stages: File name endings of the compiler's own IR below {out}, in the order of the
            compiler. The report names the first stage that differs.
        metrics: Further metrics that the command may write to facts.json: id to unit, label and
            rule.
        base: The compiler to compare with: a release, latest or nightly, a wheel or a directory of
            wheels, an iree-compile binary, a virtual environment or build directory, or a
            snapshot.json.
        head: The compiler under review, in the same forms as base.
        requirements: Path of the file that pins the compiler: a requirements file, a constraints
            file or a pyproject.toml. The path starts at the top of the repository. The pin has the
            form iree-base-compiler==X, or names the package. The bot reads the file at the base
            commit and at the head commit.
        find_links: Where pip also looks for wheels, such as nightly releases: one HTTPS page, one
            directory relative to this file, or a list of them. An address must not contain a login.
        repository: Owner and name of the compiler's GitHub repository. The bot looks there for
            commits that may be a root cause. An empty value turns that off. Only for kind iree.
            Defaults to iree-org/iree.
    """

    keywords: ClassVar[Plain] = {
        "minProperties": 1,
        **except_beside(requirements=("base", "head")),
    }
    kind: Annotated[Literal["iree", "command"], examples("iree", "command")] = "iree"
    package: Annotated[
        str,
        pattern(
            "([A-Za-z0-9][A-Za-z0-9._-]*)?",
            "the name of a package on the index",
            "triton",
        ),
    ] = ""
    run: Annotated[
        tuple[Text, ...], examples(["python", "aot.py", "{model}", "{target}", "{out}"])
    ] = ()
    artifacts: Annotated[tuple[Text, ...], examples(["*.hsaco", "*.cubin"])] = ()
    sources: Annotated[tuple[Text, ...], examples(["include/**/*.h"])] = ()
    stages: Annotated[
        tuple[Text, ...], examples(["ttir", "ttgir", "llir", "ptx", "amdgcn"])
    ] = ()
    metrics: Annotated[
        dict[
            Annotated[
                str,
                pattern(
                    OWN_ID,
                    "an id has small letters, digits and '_', 40 at most",
                    "peak_bytes",
                ),
            ],
            MetricKeys,
        ],
        examples(
            {"peak_bytes": {"unit": "bytes", "rule": "memory of the program"}},
            max_length=MOST_OWN,
        ),
    ] = msgspec.field(default_factory=dict)
    base: Spec = ""
    head: Spec = ""
    requirements: Annotated[Text, examples("requirements.txt")] = ""
    find_links: Annotated[
        Text | Annotated[tuple[Text, ...], distinct(minimum=1)],
        examples(
            "https://iree.dev/pip-release-links.html",
            ["https://iree.dev/pip-release-links.html", "wheels"],
        ),
    ] = ()
    repository: Annotated[
        str,
        pattern(
            _REPOSITORY,
            "owner and name of a repository, or nothing",
            "iree-org/iree",
            "",
        ),
    ] = "iree-org/iree"

    @property
    def names_compiler(self) -> bool:
        """Return whether a key names the compiler of a side, or the file that pins it."""
        return bool(self.requirements or self.head or self.base)


Store = Literal["auto", "data-branch", "directory"]
_BRANCH = (
    rf"(?!refs/|HEAD{END})(?!.*(?:[.][.]|//|/[.]|[.]lock(?:/|{END})))"
    r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]*[A-Za-z0-9_-])?"
)
_BRANCH_WORDS = (
    "a branch name has only letters, digits, '_', '.', '-' and single '/', does not"
    " begin with refs/, and is not HEAD"
)


class BaselineChoice(Keys, frozen=True):
    """Where baselines are stored, and for how long. A missing key has its default.

    Attributes:
        store: data-branch stores baselines on a branch of the repository, directory in a directory.
            auto is data-branch on GitHub Actions and directory elsewhere.
        branch: Name of the data branch. The bot creates it, and it must hold nothing but baselines.
        directory: Path of the directory, relative to the current directory. On GitHub that is the
            top of the repository.
        ancestors: Number of commits before the base in which the bot looks for a stored baseline.
        keep_days: Number of days for which the data branch keeps every baseline. Of older baselines
            it keeps one a week. 0 keeps all baselines.
        repository: Owner and name of another repository on the same server that has the data
            branch. Writing there needs the action's input store-token. Defaults to the
            repository itself.
    """

    keywords: ClassVar[Plain] = {"minProperties": 1}
    store: Annotated[Store, examples("auto")] = "auto"
    branch: Annotated[
        str, pattern(_BRANCH, _BRANCH_WORDS, "code-size-data", max_length=200)
    ] = "code-size-data"
    directory: Annotated[Text, examples(".code-size/baselines")] = (
        ".code-size/baselines"
    )
    ancestors: Annotated[int, examples(250, ge=0, le=10_000)] = 250
    keep_days: Annotated[int, examples(90, ge=0, le=10_000)] = 90
    repository: Annotated[
        str,
        pattern(
            _REPOSITORY,
            "owner and name of a repository, or nothing",
            "my-org/code-size-baselines",
            "",
        ),
    ] = ""


class StatesKeys(Keys, frozen=True, rename={"newly_broken": "newly-broken"}):
    """The verdict for each state of a build, apart from thresholds.

    A missing state has its default.

    Attributes:
        newly-broken: The build fails on head, and compiled or did not exist on base. Default: fail.
        changed: Both sides were measured and differ. Default: pass.
        new: Only head has the build. Default: pass.
        removed: Only base has the build. Default: warn.
        fixed: The build failed on base and compiles on head. Default: pass.
        broken: The build fails on both sides. Default: pass.
        unmeasured: The build was planned, and one side has no result: its shard was lost, it timed
            out, or the model compiles on no target. Builds that are unsupported on both sides do
            not count. Default: warn.
        same: Both sides were measured and are equal. Default: pass.
    """

    newly_broken: Status = DEFAULT_STATES["newly-broken"]
    changed: Status = DEFAULT_STATES["changed"]
    new: Status = DEFAULT_STATES["new"]
    removed: Status = DEFAULT_STATES["removed"]
    fixed: Status = DEFAULT_STATES["fixed"]
    broken: Status = DEFAULT_STATES["broken"]
    unmeasured: Status = DEFAULT_STATES["unmeasured"]
    same: Status = DEFAULT_STATES["same"]


_SECTION = "a section name has only letters, digits, '_', '.', '-' and inner spaces"
SectionName = Annotated[
    str,
    pattern(
        "[A-Za-z0-9_](?:[A-Za-z0-9_. -]*[A-Za-z0-9_-])?",
        _SECTION,
        "attention",
        "layer norm",
        max_length=100,
    ),
]
_LEVELS = {"warn": "1%", "fail": {"absolute": "4KiB", "relative": "5%"}}
_RULE = {"name": "code size", "metrics": ["artifact_bytes"], **_LEVELS}
_PAGE = r"(?:https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/(?:[A-Za-z0-9._~/%?=&+,:-]|\{sha\}|\{run_id\})*)?"
_PAGE_WORDS = "an https address, in which {sha} and {run_id} are the only placeholders"
_ID_WORDS = (
    "a report id has only letters, digits, '_', '.' and single '-', and begins with a"
    " letter or digit"
)


class Configuration(Keys, frozen=True):
    """The compilers, models and targets to compare, and the changes that are allowed.

    A missing key has the value of the packaged default.yml.

    Attributes:
        schema: Version of this format.
        models: Globs of .mlir, .mlirbc and .onnx files, relative to the directory of this file. **
            crosses directories. The name of a model is its file name without the suffix and has to
            be unique. 'default' stands for the default suite, which is also measured if this key is
            missing.
        targets: A list of default targets to keep, or a mapping of all targets: name to backend and
            flags, or to the target that it extends. Defaults to all default targets.
        flags: Flags for every build. They follow the flags of the target.
        import_flags: Options of iree-import-onnx for every .onnx model, such as --opset-version=17
            for models with an old opset.
        timeout_seconds: Time limit of one compile. A compile that takes longer is stopped and
            reported as a timeout.
        thresholds: List of rules. For each build and metric, the first matching rule decides. The
            last rule has to match everything: its metrics, models and targets are all '*'.
        templates: Directory of templates, relative to the directory of this file. Each replaces the
            packaged template of the same name.
        page_url: Public address of report.html, which the comment links to. It begins with https.
            {sha} stands for the head commit and {run_id} for the run. Default: no links.
        report_id: Name of this report. Its comment and its check carry the name. Each report on the
            same pull request needs a name of its own.
        comment: When the bot writes a comment: changes means only if something changed, always
            means on every pull request. The bot always updates an existing comment. Default:
            changes.
        fail_job: Whether the verdict fail also fails the job. It always fails the check. Default:
            false.
        after_merge: What a push does if it exceeds the thresholds of the default branch. check
            means only a check on the pushed commit. issue also opens one issue, which the bot
            updates and closes. It needs the permission issues: write. Default: check.
        run: failing runs the artifacts of builds that fail the check, base's and head's in
            pairs, and shows the ratio of their run times. It needs a target that the measuring
            machine can run. never runs no artifact. Default: never.
        components: Sections of the models: name to one glob or several globs of names inside the
            model. A dot separates the levels of a name. The first matching section wins. A name
            that no section matches belongs to the section of its first levels.
        repeats: Non-deterministic builds: a glob of models, and for each of them globs of targets.
            The bot compiles each several times on both sides and reports all results. Defaults to
            those of the default suite.
    """

    schema: Annotated[Literal["code-size-config/1"], examples("code-size-config/1")]
    compiler: Annotated[
        CompilerKeys,
        examples(
            {
                "base": "iree-base-compiler==3.11.0",
                "head": "iree-base-compiler==3.13.0",
            },
            {"requirements": "requirements.txt"},
            {
                "head": "nightly",
                "find_links": "https://iree.dev/pip-release-links.html",
            },
        ),
    ] = CompilerKeys()
    models: Annotated[tuple[Text, ...], distinct(["models/*.mlir"], minimum=1)] = ()
    targets: Annotated[
        Annotated[tuple[str, ...], distinct(minimum=1)] | Targets,
        examples(
            ["llvm-cpu-x86_64", "vmvx"],
            {"cuda-sm_86": {"backend": "cuda", "flags": ["--iree-cuda-target=sm_86"]}},
            {
                "vmvx": {"extends": "vmvx"},
                "x86_64-O3": {
                    "extends": "llvm-cpu-x86_64",
                    "flags": ["--iree-opt-level=O3"],
                },
            },
        ),
    ] = ()
    flags: Flags = ()
    import_flags: Annotated[tuple[Flag, ...], examples(["--opset-version=17"])] = ()
    timeout_seconds: Annotated[int, examples(1800, ge=1, le=86_400)] = 1800
    thresholds: Annotated[
        tuple[RuleKeys, ...],
        examples([_RULE, {"metrics": ["*"]}], min_length=1, max_length=500),
    ] = ()
    states: Annotated[
        StatesKeys, examples({"newly-broken": "fail", "removed": "pass"})
    ] = StatesKeys()
    templates: Annotated[Text, examples("code-size-templates")] = ""
    page_url: Annotated[
        str,
        pattern(
            _PAGE,
            _PAGE_WORDS,
            "https://example.github.io/code-size/{sha}/report.html",
            max_length=500,
        ),
    ] = ""
    report_id: Annotated[
        str,
        pattern(
            r"(?!.*--)[A-Za-z0-9][A-Za-z0-9_.-]*", _ID_WORDS, "default", max_length=64
        ),
    ] = "default"
    comment: Annotated[Literal["changes", "always"], examples("changes")] = "changes"
    fail_job: Annotated[bool, examples(False)] = False
    after_merge: Annotated[Literal["check", "issue"], examples("issue")] = "check"
    run: Annotated[Literal["never", "failing"], examples("failing")] = "never"
    baseline: Annotated[
        BaselineChoice, examples({"store": "data-branch", "branch": "code-size-data"})
    ] = BaselineChoice()
    components: Annotated[
        Mapping[SectionName, Text | Annotated[tuple[Text, ...], distinct(minimum=1)]],
        examples(
            {
                "attention": "*.attention.*",
                "norm": ["*.LayerNorm.*", "*.normalization.*"],
            }
        ),
    ] = {}
    repeats: Annotated[
        Mapping[Text, Annotated[tuple[Text, ...], distinct(minimum=1)]],
        examples({"whisper_tiny_encoder_f32": ["llvm-cpu-*"]}),
    ] = {}


class Config(Small, frozen=True):
    """Everything that can be configured.

    It has the keys of the file and, beside `compiler`, the meaning of that key.
    """

    compiler: CompilerKeys  # as it is written; `repository` empty where nobody can look commits up
    places: Places  # where its wheels are looked for: HTTPS pages, and directories from here
    command: Command | None  # what the compiler is where it is not IREE
    # files with unique stems, sorted by stem; relative where the configuration's own
    # path is
    models: tuple[Path, ...]
    targets: tuple[Target, ...]  # in the order of the file
    flags: tuple[str, ...]
    import_flags: tuple[str, ...]
    timeout_seconds: int
    # the first that matches decides; the last is a catch-all
    thresholds: tuple[Rule, ...]
    states: Mapping[str, Status]  # every cell state → what it does to the verdict
    templates: Path | None
    report_id: str
    comment: Literal["changes", "always"]
    fail_job: bool
    after_merge: Literal["check", "issue"]
    run: Literal["never", "failing"]
    page_url: str
    baseline: BaselineChoice
    # name and glob of parts of the models; the first that matches decides
    components: tuple[tuple[str, str], ...]
    # globs of model and target of cells whose compiler is known not to repeat itself
    repeats: tuple[tuple[str, str], ...] = ()

    @property
    def metrics(self) -> OwnMetrics:
        """Return the metrics that the compiler declares."""
        if self.command:
            return self.command.metrics
        return ()


def configs_dir() -> Path:
    """Return the folder of default.yml, schema.json and the default suite.

    It is the installed package's, or the checkout's.
    """
    package = Path(__file__).resolve().parents[1]
    places = (package / "_data" / "configs", package.parent / "configs")
    for place in places:
        if (place / "default.yml").is_file():
            return place
    raise ConfigError(
        "the packaged default.yml is missing", hint="install the bot again"
    )


def is_packaged(model: Path) -> bool:
    """Return True for a model of the packaged suite.

    A configuration without models has these.
    """
    return model.resolve().is_relative_to(configs_dir().resolve())


def packaged_model(name: str) -> Path | None:
    """Return the file of a model of the packaged suite.

    None if the suite has no model of this name.
    """
    for path in sorted((configs_dir() / "models").iterdir()):
        if path.stem == name and path.is_file():
            return path
    return None


def config_in(folder: Path) -> str:
    """Return the configuration's path below a folder; empty if there is none."""
    return next((name for name in CONFIG_NAMES if (folder / name).is_file()), "")


def find_config(directory: Path) -> Path | None:
    """Return the configuration of a folder, else of the nearest above it in its repository.

    The path is relative to the folder.
    """
    for folder in _up_to_top(directory):
        if name := config_in(folder):
            return Path(os.path.relpath(folder / name, directory))
    return None


def _up_to_top(directory: Path) -> list[Path]:
    """Return the folder and those above it in its repository.

    Outside of a repository it is the folder alone.
    """
    folders = list[Path]()
    for folder in (directory, *directory.parents):
        folders.append(folder)
        if (folder / ".git").exists():
            return folders
    return [directory]


def top_above(folder: Path) -> Path:
    """Return the top of the repository that holds a folder.

    Outside of a repository it is the folder itself.
    """
    return _up_to_top(folder.resolve())[-1]


def chosen_config(path: Path | None, say: Callable[[str], None]) -> Path | None:
    """Return the named configuration, else the nearest one; None for the packaged one.

    `say`: gets a line that names the nearest one.

    Raises ConfigError if the named one is missing.
    """
    if path is None:
        nearest_path = find_config(Path.cwd())
        say(f"configuration: {nearest_path or 'the packaged suite'}")
        return nearest_path
    if str(path) in SUITES and not path.is_file():
        file = SUITES[str(path)]
        if file:
            return configs_dir() / file
        return None
    if not path.exists():
        near = [] if path.suffix else nearest(str(path), SUITES)
        hint = (
            f"without --config it is {' or '.join(CONFIG_NAMES)} if one is there; quick"
            " and full are packaged suites"
        )
        if near:
            hint = f"did you mean the suite {near[0]}?"
        raise ConfigError(
            "cannot be read: No such file or directory", where=str(path), hint=hint
        )
    return path


class _Layer(NamedTuple):
    """A configuration file, and the keys that it has."""

    file: YamlFile
    keys: Configuration


@cache
def _packaged(path: Path) -> _Layer:
    """Return a packaged file: it stays the same while the program runs."""
    return _Layer(*read_configuration(path))


def load_config(path: Path | None = None, *, models: bool = True) -> Config:
    """Read a configuration file, or the packaged default.

    Raises ConfigError naming file, line and key. A key that the file leaves out is
    taken from default.yml, whole; only `states` and `baseline` are completed entry by
    entry, and `compiler` is never taken from there: its pins are an example's, and
    nobody asked to compare those.

    `models`: False where the rules are wanted without the models, which need not be
    there; what matches none is then not refused, either.
    """
    packaged = _packaged(configs_dir() / "default.yml")
    own = packaged
    if path is not None:
        own = _Layer(*read_configuration(path))
    file, configured = own
    is_command = configured.compiler.kind == "command"
    _check_command(file, configured)
    default_targets = packaged_targets(packaged.file, packaged.keys.targets)
    targets = parse_targets(
        file,
        configured.targets or tuple(default_targets),
        {} if is_command else default_targets,
        is_command=is_command,
    )
    entry = configured.compiler if path else CompilerKeys()
    links = _find_links(file, entry)
    command = _command(file, entry) if is_command else None
    declared = command.metrics if command else ()
    model_paths: tuple[Path, ...] = ()
    within: dict[str, list[str]] = {}
    if models:
        model_paths = _measured_models(own, packaged, is_command=is_command)
        within = _names_in_rules(own, packaged, model_paths, targets)
    judging = own if configured.thresholds else packaged
    rules = parse_rules(
        judging.file,
        entries=judging.keys.thresholds,
        declared=own_metrics(declared),
        within=within,
    )
    _check_own(file, declared, rules)
    repeats = (own if "repeats" in file.data else packaged).keys.repeats
    resolved = {
        "compiler": replace(entry, repository="") if command else entry,
        "places": Places(links, project=entry.package or PROJECT),
        "command": command,
        "models": model_paths,
        "targets": targets,
        "thresholds": rules,
        "states": msgspec.to_builtins(configured.states),
        "templates": _templates(file, configured),
        "components": _component_globs(configured),
        "repeats": tuple(_pairs_of(repeats)),
    }
    for name in Config.__struct_fields__:
        if name not in resolved:
            resolved[name] = getattr(configured, name)
    return Config(**resolved)


def _pairs_of(repeats: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Yield each model with each of its targets."""
    for model, targets in repeats.items():
        for target in targets:
            yield model, target


def _measured_models(
    own: _Layer, packaged: _Layer, *, is_command: bool
) -> tuple[Path, ...]:
    """Return the files of the models: those of the file, else the packaged ones."""
    source = own if own.keys.models else packaged
    suffixes = () if is_command else MODEL_SUFFIXES
    return _models(source.file, source.keys.models, suffixes)


def _names_in_rules(
    own: _Layer,
    packaged: _Layer,
    model_paths: Sequence[Path],
    targets: Sequence[Target],
) -> dict[str, list[str]]:
    """Return the models and targets that rules of the file may name.

    Rules may be of a longer list, for which those of the packaged suite are known.
    Empty where the file has no rules.
    """
    if not own.keys.thresholds:
        return {}
    packaged_models = _models(packaged.file, packaged.keys.models, MODEL_SUFFIXES)
    packaged_names = packaged_targets(packaged.file, packaged.keys.targets)
    return {
        "models": [model.stem for model in (*model_paths, *packaged_models)],
        "targets": [*(target.name for target in targets), *packaged_names],
    }


def _templates(file: YamlFile, configured: Configuration) -> Path | None:
    """Return the directory of templates; raises ConfigError if it is no directory."""
    if not configured.templates:
        return None
    templates = file.path.parent / configured.templates
    if not templates.is_dir():
        raise file.error(
            ("templates",),
            f"{str(templates)!r} is not a directory",
            "the path is relative to this file",
        )
    return templates


def _component_globs(configured: Configuration) -> tuple[tuple[str, str], ...]:
    """Return the name and each glob of every component, in order."""
    pairs = list[tuple[str, str]]()
    for name, globs in configured.components.items():
        if isinstance(globs, str):
            pairs.append((name, globs))
        else:
            pairs += [(name, glob) for glob in globs]
    return tuple(pairs)


def read_configuration(path: Path) -> tuple[YamlFile, Configuration]:
    """Return what a file says, and where; raises ConfigError."""
    return read_ours(path, Configuration)


def read_ours(path: Path, kind: type[_T]) -> tuple[YamlFile, _T]:
    """Return a file twice: as its plain data with lines, and as its type.

    Raises ConfigError.
    """
    file = read_yaml(path)
    return file, read_as(file, kind)


def _find_links(file: YamlFile, entry: CompilerKeys) -> tuple[str, ...]:
    """Return the places of wheels.

    Pages are returned as they are written. Directories are relative to this file.
    An error never repeats a page that is refused.
    """
    places = []
    for link in (
        (entry.find_links,) if isinstance(entry.find_links, str) else entry.find_links
    ):
        if is_address(link):
            place = link
        else:
            place = str(file.path.parent / link)
        problem = refused_link(link)
        if not is_address(link) and not Path(place).is_dir():
            problem = f"{link!r} is not a directory"
        if problem:
            hint = "put a page that needs a login into PIP_FIND_LINKS"
            raise file.error(
                ("compiler", "find_links"),
                problem,
                f"name an HTTPS page or a directory; {hint}",
            )
        places.append(place)
    return tuple(places)


def _command(file: YamlFile, entry: CompilerKeys) -> Command:
    if built_in := next((id_ for id_ in entry.metrics if id_ in METRIC_BY_ID), None):
        message = f"{built_in} is a built-in metric"
        hint = "choose another id, or remove it"
        raise file.error(("compiler", "metrics", built_in), message, hint)
    metrics = []
    for id_, metric in sorted(entry.metrics.items()):
        own_metric = OwnMetric(
            id=id_,
            unit=metric.unit,
            label=metric.label or id_.replace("_", " "),
            about=metric.about or f"of facts.json: {id_}",
            rule=metric.rule,
        )
        metrics.append(own_metric)
    words_of_entry = entry.package, entry.sources, entry.stages, tuple(metrics)
    return Command(
        entry.run, entry.artifacts, str(file.path.parent.absolute()), *words_of_entry
    )


def _check_own(file: YamlFile, metrics: OwnMetrics, rules: Sequence[Rule]) -> None:
    """Refuse a rule for a declared metric that does not fit the metric."""
    for metric in metrics:
        key_path = ("compiler", "metrics", metric.id)
        rule = next((rule for rule in rules if rule.name == metric.rule), None)
        if metric.rule and rule is None:
            names = [rule.name for rule in rules]
            raise file.error(
                (*key_path, "rule"),
                f"no rule is called {metric.rule!r}",
                near_or_known(metric.rule, names),
            )
        if rule and (reason := misfit(rule, own_metrics((metric,))[metric.id])):
            message = f"{rule.name!r} is for another unit: {reason}"
            raise file.error(
                (*key_path, "rule"), message, "name another rule, or write one"
            )


_OF_COMMANDS = ("package", "run", "artifacts", "sources", "stages", "metrics")


def _check_command(file: YamlFile, configuration: Configuration) -> None:
    """Refuse keys of another kind of compiler, and a command that lacks a key."""
    if configuration.compiler.kind == "iree":
        for name in _OF_COMMANDS:
            if getattr(configuration.compiler, name):
                hint = "add kind: command, or remove the key"
                raise file.error(
                    ("compiler", name), "is only for a command compiler", hint
                )
        require_fit_for_iree(file, ("flags",), configuration.flags)
        require_fit_for_iree(file, ("import_flags",), configuration.import_flags)
        return
    named = file.data.get("compiler", {})
    if isinstance(named, Mapping) and named.get("repository"):
        raise file.error(
            ("compiler", "repository"),
            "is only for IREE: the commits of a command are not looked up",
            "remove the key",
        )
    if configuration.compiler.requirements and not configuration.compiler.package:
        message = "pins a package, but this compiler is not a package"
        raise file.error(
            ("compiler", "requirements"),
            message,
            "name compiler.package, or base and head",
        )
    needed = {
        "run": configuration.compiler.run,
        "artifacts": configuration.compiler.artifacts,
        "models": configuration.models,
        "targets": configuration.targets,
    }
    for name, value in needed.items():
        if not value:
            if name in ("models", "targets"):
                key = name
            else:
                key = "compiler"
            raise file.error(
                (key,), f"{name} is missing: a command compiler has no default"
            )


def _models(
    file: YamlFile, globs: Sequence[str], suffixes: tuple[str, ...]
) -> tuple[Path, ...]:
    """Return the files that the globs of `models` match, sorted by name.

    Raises:
        ConfigError: a glob matches no model, a link leads nowhere, or two models have
            the same name.
    """
    by_stem: dict[str, Path] = {}
    for index, written in enumerate(globs):
        key_path = ("models", index)
        root = file.path.parent
        if written == str(PACKAGED) and not (root / written).exists():
            root = configs_dir()
            written = "models/*.mlir"
        names = sorted(glob.glob(written, root_dir=root, recursive=True))
        paths = [root / name for name in names if name.endswith(suffixes or "")]
        _require_no_dead_link(file, key_path, paths)
        models = [path for path in paths if path.is_file()]
        if not models:
            suffix_text = f" ({', '.join(suffixes)})" if suffixes else ""
            message = f"{written!r} matches no model{suffix_text} in {root}"
            raise file.error(key_path, message, "globs are relative to this file")
        for model in models:
            first = by_stem.setdefault(model.stem, model)
            if first.resolve() != model.resolve():
                message = f"{first} and {model} are both called {model.stem!r}"
                raise file.error(key_path, message, "rename one of them")
    return tuple(by_stem[stem] for stem in sorted(by_stem))


def _require_no_dead_link(
    file: YamlFile, key_path: KeyPath, paths: Sequence[Path]
) -> None:
    for path in paths:
        if path.is_symlink() and not path.exists():
            message = (
                f"{path} is a link to {os.readlink(path)}, and that file does not exist"
            )
            raise file.error(key_path, message, "restore the file, or remove the link")
