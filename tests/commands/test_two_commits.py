"""Two commits as sides: each side reads its own configuration, models and sources."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import needs
import prepared_program
import pytest
import yaml

MAKEFILE = """CFLAGS = {flags}

all:
\tcc $(CFLAGS) -c src/a.c -o $(OUT)/a.o
"""
SOURCE = """
float dot(const float *a, const float *b, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) s += a[i] * b[i];
  return s;
}
"""
SMALL = "-Os"
LARGE = "-O3 -funroll-loops"
CONFIG: dict[str, Any] = {
    "schema": "code-size-config/1",
    "compiler": {
        "kind": "command",
        "base": "ref:HEAD~1",
        "head": "ref:HEAD",
        "run": ["make", "OUT={out}"],
        "artifacts": ["*.o"],
        "sources": ["**/*.c", "**/*.h"],
    },
    "models": ["Makefile"],
    "targets": {"here": {}},
}
ADD = """func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %a, %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
MULTIPLY = ADD.replace(
    "arith.addf %a, %a : tensor<8xf32>", "math.exp %a : tensor<8xf32>"
)


def git(home: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    argv = ["git", "-C", str(home), *who, *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def commit(home: Path, **files: str) -> None:
    """Write files, whose names have `__` in place of `/` and `_` in place of `.`, and commit all."""
    if not (home / ".git").exists():
        home.mkdir(parents=True, exist_ok=True)
        git(home, "init", "--quiet")
    for name, text in files.items():
        path = home / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(home, "add", "--all")
    git(home, "commit", "--quiet", "--message", "a change")


def bot(home: Path, *arguments: str, code: int = 0) -> str:
    argv = (*arguments, "--cache", str(home.parent / "cache"))
    done = prepared_program.bot(*argv, cwd=home, codes=(code,))
    return done.stdout + done.stderr


def side(home: Path, name: str) -> dict[str, Any]:
    snapshot: dict[str, Any] = json.loads((home / "out" / f"{name}.json").read_text())
    return snapshot


def text_bytes(home: Path, name: str) -> int:
    [cell] = side(home, name)["cells"]
    measured: int = cell["metrics"]["executable_bytes"]
    return measured


def state(home: Path) -> str:
    [cell] = json.loads((home / "out" / "report.json").read_text())["cells"]
    answer: str = cell["state"]
    return answer


def compiled(folder: Path, flags: str, source: str = SOURCE) -> int:
    """The text of `dot` as the compiler of this machine makes it in a folder of its own."""
    folder.mkdir()
    (folder / "a.c").write_text(source)
    argv = ["cc", *flags.split(), "-c", "a.c", "-o", "a.o"]
    subprocess.run(argv, cwd=folder, check=True)
    listed = subprocess.run(
        ["nm", "-S", "a.o"], cwd=folder, check=True, capture_output=True, text=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return sum(int(row[1], 16) for row in rows if len(row) == 4 and row[2] in "tT")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for program in (["cc", "--version"], ["make", "--version"]):
        try:
            subprocess.run(program, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            needs.missing(f"no {program[0]}")
    return tmp_path / "repository"


def test_each_side_reads_the_model_of_its_commit(home: Path, tmp_path: Path) -> None:
    config = yaml.safe_dump(CONFIG)
    commit(home, **{"code-size_yml": config, "Makefile": MAKEFILE.format(flags=SMALL)})
    commit(home, src__a_c=SOURCE)
    git(home, "commit", "--quiet", "--amend", "--message", "the sources")
    commit(home, Makefile=MAKEFILE.format(flags=LARGE))
    # not committed: on neither side
    (home / "Makefile").write_text(MAKEFILE.format(flags="-O0"))
    printed = bot(home, "compare")
    expected = compiled(tmp_path / "base", SMALL), compiled(tmp_path / "head", LARGE)
    assert expected[0] < expected[1]
    assert (text_bytes(home, "base"), text_bytes(home, "head")) == expected
    assert "bit-identical" not in printed and "nothing changed" not in printed
    shas = git(home, "rev-list", "HEAD").split()
    assert [side(home, name)["source"]["sha"] for name in ("head", "base")] == shas[:2]
    assert len(git(home, "worktree", "list").splitlines()) == 1
    bot(home, "measure", "--compiler", "ref:HEAD~1", "--out", "out/head.json")
    assert text_bytes(home, "head") == expected[0]


def test_each_side_reads_the_sources_of_its_commit(home: Path, tmp_path: Path) -> None:
    config = yaml.safe_dump(CONFIG)
    makefile = MAKEFILE.format(flags=SMALL)
    commit(home, **{"code-size_yml": config, "Makefile": makefile, "src__a_c": SOURCE})
    changed = SOURCE.replace("a[i] * b[i]", "a[i] / (b[i] * b[i] + 1.0f)")
    commit(home, src__a_c=changed)
    bot(home, "compare")
    expected = (
        compiled(tmp_path / "base", SMALL),
        compiled(tmp_path / "head", SMALL, changed),
    )
    assert (text_bytes(home, "base"), text_bytes(home, "head")) == expected
    assert state(home) == "changed"


def test_each_side_reads_the_configuration_of_its_commit(
    home: Path, tmp_path: Path
) -> None:
    """What changed is how the configuration builds: the flags of its target."""

    def config(flags: str) -> str:
        compiler = CONFIG["compiler"] | {
            "run": ["cc", "-c", "{model}", "-o", "{out}/a.o"]
        }
        targets = {"here": {"flags": flags.split()}}
        return yaml.safe_dump(
            CONFIG | {"compiler": compiler, "models": ["src/*.c"], "targets": targets}
        )

    commit(home, **{"code-size_yml": config(SMALL), "src__a_c": SOURCE})
    commit(home, **{"code-size_yml": config(LARGE)})
    bot(home, "compare")
    expected = compiled(tmp_path / "base", SMALL), compiled(tmp_path / "head", LARGE)
    assert (text_bytes(home, "base"), text_bytes(home, "head")) == expected


def test_a_commit_with_a_broken_configuration_is_a_gap_of_a_history(home: Path) -> None:
    config = yaml.safe_dump(CONFIG)
    small = MAKEFILE.format(flags=SMALL)
    commit(home, **{"code-size_yml": config, "Makefile": small, "src__a_c": SOURCE})
    commit(home, **{"code-size_yml": f"{config}nonsense: 1\n"})
    large = MAKEFILE.format(flags=LARGE)
    commit(home, **{"code-size_yml": config, "Makefile": large})
    commits = "ref:HEAD~2,ref:HEAD~1,ref:HEAD"
    printed = bot(home, "history", "--releases", commits)
    history = json.loads((home / "out" / "history.json").read_text())
    statuses = [point["status"] for point in history["points"]]
    assert statuses == ["ok", "unmeasured", "ok"], printed
    assert "nonsense: unknown key" in history["releases"][1]["reason"]
    assert history["steps"][0]["gaps"] == ["ref:HEAD~1"]


def test_a_commit_without_the_configuration_is_measured_by_the_one_given(
    home: Path, tmp_path: Path
) -> None:
    commit(home, Makefile=MAKEFILE.format(flags=SMALL), src__a_c=SOURCE)
    commit(home, Makefile=MAKEFILE.format(flags=LARGE))
    (home / "code-size.yml").write_text(yaml.safe_dump(CONFIG))
    printed = bot(home, "compare")
    assert (
        "ref:HEAD~1 has no code-size.yml: the file of the work tree is used" in printed
    )
    expected = compiled(tmp_path / "base", SMALL), compiled(tmp_path / "head", LARGE)
    assert (text_bytes(home, "base"), text_bytes(home, "head")) == expected


def test_a_model_that_one_commit_lacks_is_new_or_an_error_of_one_line(
    home: Path,
) -> None:
    compiler = CONFIG["compiler"] | {"run": ["cc", "-c", "{model}", "-o", "{out}/a.o"]}
    config = yaml.safe_dump(CONFIG | {"compiler": compiler, "models": ["src/*.c"]})
    commit(home, **{"code-size_yml": config, "src__a_c": SOURCE})
    commit(home, src__b_c=SOURCE)
    bot(home, "compare")
    cells = json.loads((home / "out" / "report.json").read_text())["cells"]
    assert {cell["model"]: cell["state"] for cell in cells} == {"a": "same", "b": "new"}
    git(home, "rm", "--quiet", "-r", "src")
    commit(home, notes_txt="no model")
    printed = bot(home, "compare", code=2)
    assert "'src/*.c' matches no model" in printed and "Traceback" not in printed
    assert str(home.parent / "cache") not in printed and "/tree-" not in printed


def test_a_link_in_a_commit_does_not_lead_out_of_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.c").write_text(SOURCE)
    compiler = CONFIG["compiler"] | {"run": ["cc", "-c", "{model}", "-o", "{out}/a.o"]}
    config = yaml.safe_dump(CONFIG | {"compiler": compiler, "models": ["*.c"]})
    commit(home, **{"code-size_yml": config, "a_c": SOURCE})
    (home / "b.c").symlink_to(tmp_path / "secret.c")
    commit(home)
    assert "HEAD:b.c: leaves the commit" in bot(home, "compare", code=2)


def test_a_commit_that_is_not_there_is_one_line(home: Path) -> None:
    commit(home, **{"code-size_yml": yaml.safe_dump(CONFIG), "Makefile": "all:\n"})
    printed = bot(home, "compare", "--base", "ref:HEAD", "--head", "ref:none", code=2)
    assert "ref:none: no such commit" in printed and "Traceback" not in printed


@pytest.fixture
def iree_home(tmp_path: Path, shared_cache: Path) -> Path:
    (tmp_path / "cache").symlink_to(shared_cache)
    return tmp_path / "repository"


@pytest.mark.parametrize("names", [("HEAD~1", "HEAD"), ("ref:HEAD~1", "ref:HEAD")])
def test_models_of_iree_are_those_of_each_commit(
    iree_home: Path, names: tuple[str, str]
) -> None:
    home = iree_home
    config = {"schema": "code-size-config/1", "models": ["*.mlir"], "targets": ["vmvx"]}
    commit(home, **{"code-size_yml": yaml.safe_dump(config), "model_mlir": ADD})
    commit(home, model_mlir=MULTIPLY)
    (home / "model.mlir").write_text(ADD)  # not committed: on neither side
    base, head = names
    bot(home, "compare", "--base", base, "--head", head, "--compiler", "3.13.0")
    commits = [side(home, name) for name in ("base", "head")]
    assert commits[0]["models"] != commits[1]["models"] and state(home) == "changed"
    (home / "model.mlir").write_text(MULTIPLY)
    bot(home, "measure", "--compiler", "3.13.0", "--out", "out/base.json")
    for cell in commits[1]["cells"]:
        cell.pop("ladders", None)  # these are of a comparison
    assert side(home, "base")["cells"] == commits[1]["cells"]


def test_a_commit_of_iree_pins_its_compiler(iree_home: Path) -> None:
    home = iree_home
    config = {"schema": "code-size-config/1", "models": ["*.mlir"], "targets": ["vmvx"]}
    pinned = config | {"compiler": {"requirements": "requirements.txt"}}
    commit(home, **{"code-size_yml": yaml.safe_dump(config), "model_mlir": ADD})
    printed = bot(home, "compare", "ref:HEAD", "ref:HEAD", code=2)
    assert "ref:HEAD: this commit pins no compiler (give --compiler SPEC" in printed
    pins = "iree-base-compiler==3.13.0\n"
    commit(home, **{"code-size_yml": yaml.safe_dump(pinned), "requirements_txt": pins})
    bot(home, "compare", "ref:HEAD", "ref:HEAD")
    assert state(home) == "same"
