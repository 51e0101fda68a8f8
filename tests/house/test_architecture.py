"""The floors of the house, read from the imports; and the habits that keep every file readable."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import pytest
from places import ROOT

FLOORS = {
    "cli": 6,
    "github": 5,
    "fold": 5,
    "study": 4,
    "explain": 3,
    "running": 3,
    "show": 3,
    "compiler": 2,
    "config": 2,
    "readers": 2,
    "store": 2,
    "core": 1,
    "system": 1,
}
"""Folder → its floor: every import goes down, or stays inside its own folder. `core`, `system` and errors serve all."""
OPEN_TO_ALL = {"core", "system", "errors"}
SPAWNER = "bot.system.starting"
REACHES_NETWORK = ("bot.system",)

# What computes, and neither reads nor writes anything outside.
PURE = """
    __future__ abc base64 binascii bisect collections copy dataclasses difflib enum fnmatch fractions functools graphlib
    hashlib heapq html itertools json math msgspec operator packaging re shlex statistics string textwrap types typing
    unicodedata zlib
"""
SPAWNING = (
    "subprocess",
    "multiprocessing",
    "pty",
    "pexpect",
    "_posixsubprocess",
    "concurrent.futures.process",
)
SPAWNING_CALL = re.compile(
    r"os\.(system|popen|fork\w*|exec[lv]\w*|spawn\w+|posix_spawn\w*|startfile)|asyncio\.create_subprocess_\w+"
    r"|(\w+\.)*ProcessPoolExecutor"
)
NETWORK = """
    socket ssl http urllib requests httpx aiohttp urllib3 ftplib smtplib poplib imaplib socketserver xmlrpc websockets
"""
NO_NETWORK = ("urllib.parse", "http.HTTPStatus")
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint"}
# Import name → distribution, where they differ. The compiler's bindings come from the
# compiler under test.
DISTRIBUTION = {
    "github": "PyGithub",
    "yaml": "PyYAML",
    "elftools": "pyelftools",
    "jinja2": "Jinja2",
    "markupsafe": "Jinja2",
    "iree": None,
}
# A script that runs in an interpreter of its own, without the bot: its folder is a
# package there, and the compiler's bindings are imported by name, once it knows where
# these are.
SCRIPT = "bot.readers.ir_worker.ir_worker"
ROOMS_OF_SCRIPTS = ("bot.readers.ir_worker",)
ARRAYS = "bot.running.array_worker"
OF_THE_EXTRA_RUN = {"numpy", "ml_dtypes"}
"""Another such script, and what it may import because nothing else does."""

SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
        ".__init__"
    ): path
    for path in sorted((ROOT / "bot").rglob("*.py"))
}


@cache
def trees() -> Mapping[str, ast.Module]:
    """Return module → its syntax tree."""
    return {
        name: ast.parse(path.read_text(encoding="utf-8"))
        for name, path in SOURCES.items()
    }


def imports_of(tree: ast.AST, package: str = "") -> set[str]:
    """Every module that the code imports anywhere, with its full name.

    `from a import b` gives `a.b`.
    """
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = (
                package.split(".")[: len(package.split(".")) - node.level + 1]
                if node.level
                else []
            )
            origin = ".".join([*above, *([node.module] if node.module else [])])
            modules |= {f"{origin}.{alias.name}" for alias in node.names}
    return modules


@cache
def all_imports() -> Mapping[str, set[str]]:
    """Return module → what it imports."""
    imports = {}
    for name, tree in trees().items():
        package = name
        if SOURCES[name].name != "__init__.py":
            package = name.rpartition(".")[0]
        imports[name] = imports_of(tree, package)
    return imports


def within(module: str, *places: str) -> bool:
    """True where the module is one of the places, or inside it."""
    return any(f"{module}.".startswith(f"{place}.") for place in places)


def folder_of(module: str) -> str | None:
    """`show` for `bot.show.report`; None for what stands in no folder."""
    parts = module.split(".")
    return parts[1] if len(parts) > 2 and parts[0] == "bot" else None


def floor_plan() -> str:
    """The floors, the highest first, for those who broke them."""
    floors = sorted(set(FLOORS.values()), reverse=True)
    return "\n".join(
        f"{floor}: {' '.join(name for name, height in FLOORS.items() if height == floor)}"
        for floor in floors
    )


def offenders(is_wrong: Callable[[str, str], bool]) -> list[str]:
    """`importer → imported` for all imports that are wrong."""
    pairs = (
        (name, imported) for name in SOURCES for imported in sorted(all_imports()[name])
    )
    return [
        f"{name} → {imported}" for name, imported in pairs if is_wrong(name, imported)
    ]


def dotted_names(tree: ast.AST) -> Iterator[str]:
    """`os.path.join` for every such attribute, and every bare name."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            yield ast.unparse(node)


# The walls.


def test_every_import_goes_down() -> None:
    def wrong(name: str, imported: str) -> bool:
        importer_folder = folder_of(name)
        imported_folder = folder_of(imported)
        if (
            importer_folder is None
            or imported_folder is None
            or importer_folder == imported_folder
        ):
            return False
        return (
            imported_folder not in OPEN_TO_ALL
            and FLOORS[imported_folder] >= FLOORS[importer_folder]
        )

    assert offenders(wrong) == [], floor_plan()


def test_every_folder_has_a_floor() -> None:
    folders = {folder for name in SOURCES if (folder := folder_of(name))}
    assert folders == FLOORS.keys()
    loose = {name for name, path in SOURCES.items() if path.parent == ROOT / "bot"}
    assert loose == {"bot", "bot.__main__", "bot.errors", "bot.start"}


def test_core_and_errors_import_nothing_that_touches_the_world() -> None:
    def wrong(name: str, imported: str) -> bool:
        if not within(name, "bot.core", "bot.errors"):
            return False
        # shares equal strings, nothing else of `sys`
        if imported in (
            "sys",
            "sys.intern",
        ):
            return "sys.intern" not in all_imports()[name]
        # several threads decode; nothing is started
        if imported in (
            "threading",
            "threading.Lock",
        ):
            return "threading.Lock" not in all_imports()[name]
        return (
            not within(imported, "bot.core", "bot.errors")
            and imported.partition(".")[0] not in PURE.split()
        )

    assert offenders(wrong) == []


def test_core_neither_opens_nor_prints() -> None:
    names = {
        name: set(dotted_names(trees()[name])) & IMPURE_CALLS
        for name in SOURCES
        if within(name, "bot.core")
    }
    assert {name: calls for name, calls in names.items() if calls} == {}


def test_errors_import_nothing_of_the_bot() -> None:
    assert not [
        imported for imported in all_imports()["bot.errors"] if within(imported, "bot")
    ]


def test_one_module_spawns_processes() -> None:
    assert (
        offenders(
            lambda name, imported: name != SPAWNER and within(imported, *SPAWNING)
        )
        == []
    )
    calls = {
        name: [n for n in dotted_names(tree) if SPAWNING_CALL.fullmatch(n)]
        for name, tree in trees().items()
    }
    assert {
        name: spawned for name, spawned in calls.items() if spawned and name != SPAWNER
    } == {}
    assert "subprocess" in all_imports()[SPAWNER]


def test_only_the_system_reaches_the_network() -> None:
    def wrong(name: str, imported: str) -> bool:
        reaches = within(imported, *NETWORK.split()) and not within(
            imported, *NO_NETWORK
        )
        return reaches and not within(name, *REACHES_NETWORK)

    assert offenders(wrong) == []


def test_imports_are_written_so_that_these_tests_see_them() -> None:
    hidden = {"importlib.import_module", "import_module", "__import__"}
    assert {
        name for name, tree in trees().items() if hidden & set(dotted_names(tree))
    } <= {SCRIPT}


def test_the_script_and_its_siblings_run_without_the_bot_and_its_libraries() -> None:
    modules = {
        imported
        for name in SOURCES
        if within(name, *ROOMS_OF_SCRIPTS)
        for imported in all_imports()[name]
    }
    foreign = {module for module in modules if not within(module, *ROOMS_OF_SCRIPTS)}
    assert {
        module
        for module in foreign
        if module.partition(".")[0] not in sys.stdlib_module_names
    } == set()


def declared(section: str) -> set[str]:
    """The quoted entries of one list in pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(rf"^{section} = \[(.*?)\]$", text, re.M | re.S)
    assert match, section
    return set(re.findall(r'"([\w.-]+)', match[1]))


def test_every_library_is_declared() -> None:
    def wrong(_name: str, imported: str) -> bool:
        top = imported.partition(".")[0]
        return DISTRIBUTION.get(top, top) not in allowed

    allowed = {*declared("dependencies"), *sys.stdlib_module_names, "bot", None}
    assert [
        offender
        for offender in offenders(wrong)
        if not offender.startswith(f"{ARRAYS} → ")
    ] == []


def test_the_script_for_arrays_runs_without_the_bot_and_nothing_imports_it() -> None:
    packages = {imported.partition(".")[0] for imported in all_imports()[ARRAYS]}
    assert packages <= {*sys.stdlib_module_names, *OF_THE_EXTRA_RUN}
    assert offenders(lambda _, imported: within(imported, ARRAYS)) == []


# What must not leave the machine it was written on. The words are in pieces, or this
# file would be the one found.
PLACES = rf"(?<![\w.$}}-])/(?:{'wo'}rk|{'ro'}ot|tmp/{'la'}b|home/(?!runner\b|user\b|me\b)\w+)/"
HOSTS = "|".join(
    re.escape(f"{name}.{end}")
    for name, end in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))
)


def test_no_file_names_a_place_of_this_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    forbidden = re.compile(f"{PLACES}|{HOSTS}".encode())
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    matches = {
        path: forbidden.search(path.read_bytes()) for path in paths if path.is_file()
    }
    assert {
        str(path.relative_to(ROOT)): match[0]
        for path, match in matches.items()
        if match
    } == {}
