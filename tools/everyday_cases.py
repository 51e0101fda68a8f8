"""Everyday pull requests, measured anew: how the cases in tests/fixtures/everyday are made from real compiles.

`PYTHONPATH=tests/support python tools/everyday_cases.py [CASE…]`; without CASE all,
which takes half an hour from an empty cache. A case is two commits of a small
repository, each with models, configuration and pinned compiler.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from everyday import COMMON, HERE, common_lines, report, sides
from places import ROOT

from bot.config.configuration import load_config
from bot.config.requirements import sought_compiler
from bot.core.planned import SIDES
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import snapshot_lines
from bot.study.prepare import Work
from bot.study.request import Request
from bot.study.tracing import traced
from bot.system.cancel import Cancel
from bot.system.defaults import cores, default_cache

OLD = "3.11.0"
NEW = "3.13.0"
QUICK = (
    "bert_l4_f32_s128",
    "bert_l4_f32_dyn",
    "mobilenet_v1_f32_224",
    "mobilenet_v1_int8_tosa",
)
X86 = "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu"
_WHO = {
    f"GIT_{who}_{detail}": "everyday"
    for who in ("AUTHOR", "COMMITTER")
    for detail in ("NAME", "EMAIL")
}
_WHEN = {
    "GIT_AUTHOR_DATE": "2026-01-05T09:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-05T09:00:00Z",
}


# The cases.


def model(name: str) -> str:
    """Return the text of a packaged model."""
    return (ROOT / "configs" / "models" / f"{name}.mlir").read_text(encoding="utf-8")


def edited(text: str, old: str, new: str) -> str:
    """Return the text with one place changed.

    Raises ValueError if `old` is not there exactly once.
    """
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands there {text.count(old)} times")
    return text.replace(old, new)


@dataclass(frozen=True)
class State:
    """One repository state and the compiler that it pins."""

    models: Mapping[str, str]  # name → text
    compiler: str = NEW
    flags: tuple[str, ...] = ()  # of every cell
    # name → flags in place of the default configuration's
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _quick() -> dict[str, str]:
    return {name: model(name) for name in QUICK}


def _wider() -> State:
    """Return a state with AVX-512 on x86-64."""
    return State(
        _quick(),
        targets={"llvm-cpu-x86_64": (X86, "--iree-llvmcpu-target-cpu=x86-64-v4")},
    )


def _one_flag() -> tuple[State, State]:
    """Return both sides of wider vectors on x86-64."""
    return State(_quick()), _wider()


def _improvement() -> tuple[State, State]:
    """Return both sides of narrower vectors on x86-64.

    Every model has less code there.
    """
    return _wider(), State(_quick())


def _model_edit() -> tuple[State, State]:
    """Return both sides of an edit: the classifier of a CNN gets one operation more.

    Its scores are then between 0 and 1.
    """
    name = "mobilenet_v1_f32_224"
    kind = "!torch.vtensor<[1,1001],f32>"
    scores = (
        f"%scores = torch.aten.sigmoid %816 : {kind} -> {kind} loc(#loc118)\n    return"
        f" %scores : {kind}"
    )
    text = edited(model(name), f"return %816 : {kind}", scores)
    return State(_quick()), State({**_quick(), name: text})


def _nothing_changed() -> tuple[State, State]:
    """Return both sides of a commit that touches no model.

    On both sides some cells exceed the stack limit, and some fail.
    """
    return State(_quick()), State(_quick())


def _newly_broken() -> tuple[State, State]:
    """Return both sides of a directory for AMD's device libraries that does not exist.

    One model alone needs a function of these libraries.
    """
    directory = "--iree-rocm-bc-dir=third_party/rocm-device-libs"
    return State(_quick()), State(
        _quick(), targets={"rocm": ("--iree-rocm-target=gfx942", directory)}
    )


def _everything_broke() -> tuple[State, State]:
    """Return both sides of a value that an option does not have, for every cell."""
    return State(_quick()), State(_quick(), flags=("--iree-opt-level=O4",))


def _patch_release() -> tuple[State, State]:
    """Return both sides of a pin that is raised by one release, for two models."""
    models = {
        name: model(name) for name in ("bert_l4_f32_s128", "mobilenet_v1_f32_224")
    }
    return State(models, "3.12.0"), State(models)


def _two_releases() -> tuple[State, State]:
    """Return both sides of a pin that is raised by two releases."""
    return State(_quick(), OLD), State(_quick())


CASES: Mapping[str, Callable[[], tuple[State, State]]] = {
    "nothing_changed": _nothing_changed,
    "one_flag": _one_flag,
    "model_edit": _model_edit,
    "newly_broken": _newly_broken,
    "improvement": _improvement,
    "everything_broke": _everything_broke,
    "patch_release": _patch_release,
    "two_releases": _two_releases,
}


# Recording.


def _text(snapshot: Snapshot) -> list[bytes]:
    return b"".join(snapshot_lines(snapshot)).splitlines(keepends=True)


def _packed(snapshot: Snapshot, common: Iterable[bytes]) -> bytes:
    numbers = {line: number for number, line in enumerate(common)}
    text = [
        b"@%d\n" % numbers[line] if line in numbers else line
        for line in _text(snapshot)
    ]
    return lzma.compress(b"".join(text), preset=9 | lzma.PRESET_EXTREME)


def keep(found: Mapping[str, tuple[Snapshot, Snapshot]]) -> None:
    """Write the sides of all cases: the new ones, and those that are kept already."""
    pairs = {
        **{
            case: sides(case)
            for case in CASES
            if case not in found and (HERE / case).is_dir()
        },
        **found,
    }
    common = _text(pairs[COMMON.parent.name][0])
    for case, pair in pairs.items():
        for side, snapshot in zip(SIDES, pair, strict=True):
            path = HERE / case / f"{side}.json.xz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_packed(snapshot, () if path == COMMON else common))
    forget()


def forget() -> None:
    """Forget what was read of the kept cases, so that it is read again."""
    for cached_function in (common_lines, sides, report):
        cached_function.cache_clear()


# Measuring.


def _git(home: Path, *words: str) -> None:
    environment = {
        **os.environ,
        **_WHO,
        **_WHEN,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(
        ["git", "-C", str(home), *words],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _write(state: State, home: Path) -> None:
    """Write the files of a repository state."""
    targets = {
        target.name: {
            "backend": target.backend,
            "flags": list(state.targets.get(target.name, target.flags)),
        }
        | ({"unsupported": target.unsupported} if target.unsupported else {})
        for target in load_config(models=False).targets
    }
    compiler = {"requirements": "requirements.txt"}
    plain = {
        "schema": "code-size-config/1",
        "compiler": compiler,
        "models": ["models/*.mlir"],
        "targets": targets,
    }
    (home / "models").mkdir(exist_ok=True)
    for name, text in state.models.items():
        (home / "models" / f"{name}.mlir").write_text(text, encoding="utf-8")
    (home / "requirements.txt").write_text(
        f"iree-base-compiler=={state.compiler}\n", encoding="utf-8"
    )
    (home / "code-size.yml").write_text(
        json.dumps({**plain, "flags": list(state.flags)}, indent=2), encoding="utf-8"
    )


def commits(case: str, scratch: Path) -> dict[str, Path]:
    """Return side → a work tree of its commit."""
    homes = {side: scratch / side for side in SIDES}
    homes["base"].mkdir()
    _git(homes["base"], "init", "--quiet", "--initial-branch", "main")
    for side, state in zip(SIDES, CASES[case](), strict=True):
        if side == "head":
            shutil.copytree(homes["base"], homes[side])
            _git(homes[side], "checkout", "--quiet", "-b", case)
        _write(state, homes[side])
        _git(homes[side], "add", "--all")
        _git(homes[side], "commit", "--quiet", "--allow-empty", "--message", case)
    return homes


def measure(case: str, cache: Path, jobs: int) -> tuple[Snapshot, Snapshot]:
    """Return both sides, as a pull request's run measures and traces them.

    There is no stored baseline.
    """
    from bot.cli.showing import TerminalShow  # what only a terminal needs

    show = TerminalShow(quiet=False)
    cancel = Cancel()
    plans = []
    with tempfile.TemporaryDirectory(prefix="code-size-everyday-") as name:
        for side, home in commits(case, Path(name)).items():
            request = Request(config=home / "code-size.yml", cache=cache, jobs=jobs)
            work = Work(request, load_config(request.config), show, cancel)
            plans.append(work.prepare(side, sought_compiler(home / "requirements.txt")))
        work = replace(work, config=load_config(models=False))
        snapshots = traced(plans, work.measured(plans), work)
    return snapshots["base"], snapshots["head"]


def main() -> None:
    """Measure the cases that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--jobs", type=int, default=cores())
    arguments = parser.parse_args()
    if unknown := set(arguments.case) - CASES.keys():
        parser.error(f"no case is called {min(unknown)!r}")
    for case in arguments.case or CASES:
        print(case)
        keep({case: measure(case, arguments.cache, arguments.jobs)})


if __name__ == "__main__":
    main()
