"""A compiler of which only its command is known: its rows, its failures, its cache, and what it is kept from."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import prepared_program
import pytest
import real_compilers
import yaml
from command_project import CC, LIBRARY, bot, cells, compiler, report, write

from bot.compiler.command import command_compiler
from bot.core.spec import Command, Places
from bot.system import confined
from bot.system.cancel import Cancel

__all__ = ["compiler"]  # a fixture


def test_a_library_in_c_by_two_commands(tmp_path: Path) -> None:
    write(tmp_path, CC, {"lib.c": LIBRARY % 100})
    printed = bot(tmp_path, "compare")
    assert "command cc -Os → command cc -O0" in printed and "IREE" not in printed
    base, head = (cells(tmp_path, side)["lib"] for side in ("base", "head"))
    assert head["command"] == "cc -O0 -c -fstack-usage lib.c -o out/code.o"
    (tmp_path / "out").mkdir(exist_ok=True)
    subprocess.run(shlex.split(head["command"]), cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["nm", "-S", "out/code.o"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    sizes = {
        columns[3]: int(columns[1], 16)
        for line in listed.stdout.splitlines()
        if len(columns := line.split()) == 4
    }
    assert {row["name"]: row["code_bytes"] for row in head["dispatches"]} == sizes
    frames = {
        columns[0].rpartition(":")[2]: int(columns[1])
        for line in (tmp_path / "out/code.su").read_text().splitlines()
        if (columns := line.split())
    }
    assert {row["name"]: row["stack_bytes"] for row in head["dispatches"]} == frames
    assert head["metrics"]["stack_max_bytes"] == max(frames.values())
    assert (
        sum(head["parts"].values())
        == head["metrics"]["artifact_bytes"]
        == (tmp_path / "out/code.o").stat().st_size
    )
    assert head["metrics"]["vgpr_spills"] is None and head["reasons"]["vgpr_spills"]
    assert base["metrics"]["executable_bytes"] < head["metrics"]["executable_bytes"]
    [cell] = report(tmp_path)["cells"]
    assert {row["cause"] for row in cell["dispatches"]} == {"codegen"}
    assert (
        sum(cell["waterfall"].values())
        == head["metrics"]["artifact_bytes"] - base["metrics"]["artifact_bytes"]
    )


def test_flags_are_those_of_its_command(tmp_path: Path) -> None:
    file = write(tmp_path, CC, {"lib.c": LIBRARY % 100})
    config = yaml.safe_load(file.read_text())
    file.write_text(
        yaml.safe_dump(
            {**config, "targets": {"here": {"flags": ["-g"]}}, "flags": ["-fPIC"]}
        )
    )
    bot(
        tmp_path,
        "measure",
        "--compiler",
        "cc -O2",
        "--flags=-DX=1",
        "--out",
        "head.json",
    )
    [cell] = json.loads((tmp_path / "head.json").read_text())["cells"]
    assert cell["status"] == "ok" and cell["command"].endswith("-g -fPIC -DX=1"), cell


def test_the_same_run_twice_is_equal_to_the_byte_and_comes_from_the_cache(
    tmp_path: Path,
) -> None:
    write(tmp_path, CC, {"a.c": LIBRARY % 8, "b.c": LIBRARY % 64})
    for out in ("one", "two"):
        # two starts of Python, which do not share the seed of their hashes
        argv = ("compare", "--out", out, "--cache", tmp_path / "cache")
        printed = real_compilers.bot(*argv, cwd=tmp_path, codes=(0,)).stderr
    first = (tmp_path / "one/base.json").read_bytes()
    assert "4 from the cache" in printed
    assert (tmp_path / "two/base.json").read_bytes() == first
    (tmp_path / "a.c").write_text(LIBRARY % 16)
    assert "2 from the cache" in bot(tmp_path, "compare", "--out", "three")


BADLY = {
    "fails": "echo 'kernel.c:3:1: error: no such register' >&2; exit 3",
    "hangs": "sleep 1000 & sleep 1000",
    "nothing": "echo text > out/notes.txt",
    "large": "truncate -s 10G out/code.o",
    "floods": (
        "for i in 1 2 3 4 5 6 7 8; do fallocate -l 900M out/$i.o; done; sleep 100"
    ),
    "sparse": "truncate -s 900M out/1.o out/2.o",
    "lies": (
        """cc -c -x c /dev/null -o out/code.o; echo '{"executable_bytes": 5}' > out/facts.json"""
    ),
    "invents": (
        """cc -c -x c /dev/null -o out/code.o; echo '{"speed": 5}' > out/facts.json"""
    ),
    "negative": (
        """cc -c -x c /dev/null -o out/code.o; echo '{"spill_bytes": -5}' > out/facts.json"""
    ),
    "rambles": """cc -c -x c /dev/null -o out/code.o; echo '[1' > out/facts.json""",
    "torn": "printf '\\177ELF\\002\\001\\001torn' > out/code.o",
    "links": "ln -s /etc/passwd out/code.o",
    "good": (
        """cc -c -x c /dev/null -o out/code.o; echo '{"spill_bytes": 5}' > out/facts.json"""
    ),
}
SAID = {
    "fails": "no such register",
    "hangs": "not finished after 4 s",
    "nothing": "wrote no file that is *.o, but notes.txt",
    "large": "File too large",
    "floods": "it wrote more than 2 GiB",
    "sparse": "the files have 1,887,436,800 bytes, and the limit is 1,073,741,824",
    "lies": "facts.json has executable_bytes = 5, but the files have 0",
    "invents": "facts.json names an unknown metric: 'speed'",
    "negative": "facts.json has an invalid value for spill_bytes: -5",
    "rambles": "facts.json is not a mapping of metric ids to whole numbers",
    "torn": "",
    "links": "is a link",
}


def test_whatever_a_command_does_is_one_row(tmp_path: Path) -> None:
    write(
        tmp_path,
        ["sh", "{model}"],
        {f"{name}.sh": text for name, text in BADLY.items()},
        base="x",
        head="x",
    )
    bot(tmp_path, "measure", "--compiler", "sh", "--out", "out/head.json")
    rows = cells(tmp_path)
    assert rows.keys() == BADLY.keys()
    for name, message in SAID.items():
        row = rows[name]
        if name == "torn":
            assert row["status"] == "ok" and row["metrics"]["executable_bytes"] is None
            assert "code.o" in row["reasons"]["executable_bytes"]
        else:
            assert row["status"] == ("timeout" if name == "hangs" else "failed"), row
            assert message in row["failure"]["message"], row["failure"]
    assert rows["good"]["metrics"]["spill_bytes"] == 5


def test_a_folder_of_the_command_s_own_is_no_place_for_a_model(tmp_path: Path) -> None:
    run = ["sh", "-c", f"{{side}} -c -x c {{model}} -o out/code.o # {'long ' * 1000}"]
    write(tmp_path, run, dict.fromkeys(("a.c", "tmp/b.c", "out/c.c"), "int x;"))
    bot(tmp_path, "measure", "--compiler", "cc", "--out", "head.json")
    rows = cells(tmp_path, out=".")
    assert rows["a"]["status"] == "ok"
    for name, path in (("b", "tmp/b.c"), ("c", "out/c.c")):
        message = rows[name]["failure"]["message"]
        assert (
            message
            == f"{path} has the name of a folder that the command needs: rename it"
        )


OWN: dict[str, dict[str, str]] = {
    "peak_bytes": {
        "unit": "bytes",
        "label": "peak | memory <b>",
        "about": "what it needs",
    },
    "kernels": {"unit": "count"},
}
FACTS = """cc -c -x c /dev/null -o out/code.o; echo "{\\"peak_bytes\\": $1000}" > out/facts.json"""


def declare(tmp_path: Path, metrics: dict[str, Any]) -> None:
    """Write a configuration with these metrics, whose command gives 1,000 and 9,000 as `peak_bytes`."""
    path = write(
        tmp_path,
        ["sh", "{model}", "{side}"],
        {"a.sh": FACTS},
        base="1",
        head="9",
        metrics=metrics,
    )
    rules = [
        {"name": "memory", "metrics": ["transient_memory_bytes"], "fail": "4KiB"},
        {"metrics": ["*"]},
    ]
    path.write_text(
        yaml.safe_dump(yaml.safe_load(path.read_text()) | {"thresholds": rules})
    )


def test_a_declared_metric_is_judged_and_shown(tmp_path: Path) -> None:
    declare(tmp_path, OWN | {"peak_bytes": OWN["peak_bytes"] | {"rule": "memory"}})
    bot(tmp_path, "compare", code=1)
    base, head = (cells(tmp_path, side)["a"] for side in ("base", "head"))
    assert (base["metrics"]["peak_bytes"], head["metrics"]["peak_bytes"]) == (
        1000,
        9000,
    )
    assert (
        head["metrics"]["kernels"] is None
        and head["reasons"]["kernels"] == "facts.json does not have it"
    )
    (tmp_path / "code-size.yml").unlink()  # both snapshots have what is declared
    bot(
        tmp_path,
        "report",
        "--base",
        "out/base.json",
        "--head",
        "out/head.json",
        "--out",
        "again",
    )
    for out in ("out", "again"):
        assert report(tmp_path, out)["cells"][0]["metrics"]["peak_bytes"] == {
            "base": 1000,
            "head": 9000,
        }
        argv = ("explain", out, "--model", "a", "--target", "here")
        printed = prepared_program.bot(*argv, cwd=tmp_path, codes=(0,)).stdout
        assert "peak | memory <b>" in printed and "+8,000 B" in printed
    [finding] = report(tmp_path)["verdict"]["findings"]
    assert (finding["metric"], finding["rule"], finding["actual"]) == (
        "peak_bytes",
        "memory",
        "+8,000 B (+800.0 %)",
    )
    comment, page = (
        (tmp_path / "out" / name).read_text() for name in ("comment.md", "report.html")
    )
    assert "peak" in comment and "<b>" not in comment and "1,000 → 9,000 B" in comment
    assert "peak | memory &lt;b&gt;" in page and "memory <b>" not in page


def test_metrics_that_are_declared_differently_are_not_compared(tmp_path: Path) -> None:
    declare(tmp_path, OWN)
    bot(tmp_path, "compare", code=0)
    declare(tmp_path, {"peak_bytes": {"unit": "KiB"}, "later": {"unit": "ms"}})
    bot(tmp_path, "compare", "--base", "out/base.json", "--out", "other")
    other_report = report(tmp_path, "other")
    assert other_report["cells"][0]["metrics"]["peak_bytes"] == {
        "base": None,
        "head": None,
    }
    note = "peak_bytes is declared in bytes on base, and in KiB on head"
    assert (
        "not compared: kernels is not declared on head; later is not declared on base;"
        f" {note}" in other_report["notes"]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            [{"id": "vm_bytes"}],
            "declares 'vm_bytes', which is a built-in metric",
            id="an id of the bot",
        ),
        pytest.param(
            [{"label": "two\nlines"}],
            "bad.json: compiler.metrics[0].label: expected `str` matching",
            id="two lines",
        ),
        pytest.param(
            [{"about": "long " * 99}],
            "bad.json: compiler.metrics[0].about: expected `str` matching",
            id="long",
        ),
        pytest.param(
            [{"id": f"x{number}"} for number in range(33)],
            "compiler.metrics: expected `array` of length <= 32",
            id="many",
        ),
        pytest.param([], "cells[0]: unknown metric 'kernels'", id="undeclared"),
    ],
)
def test_a_snapshot_with_impossible_declarations_is_refused(
    tmp_path: Path, changes: list[dict[str, str]], message: str
) -> None:
    declare(tmp_path, OWN)
    bot(tmp_path, "compare", code=0)
    snapshot = json.loads((tmp_path / "out/base.json").read_text())
    metric = snapshot["compiler"]["metrics"][0]
    snapshot["compiler"]["metrics"] = [metric | change for change in changes]
    (tmp_path / "bad.json").write_text(json.dumps(snapshot))
    sides = ("--base", "bad.json", "--head", "out/head.json")
    printed = bot(tmp_path, "report", *sides, "--out", "bad", code=2)
    assert message in printed


LOOK = """
import os, socket, json
try:
    socket.create_connection(("127.0.0.1", int(open("port.txt").read())), 1)
    network = 1
except OSError:
    network = 0
secret = sum("SECRET" in name or "TOKEN" in name for name in os.environ)
print(os.getcwd(), sorted(os.listdir(".")), network, secret, os.environ["HOME"])
raise SystemExit(1)
"""


def test_a_command_sees_no_network_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        sources = {"look.py": LOOK}
        write(
            tmp_path,
            [sys.executable, "{model}"],
            sources,
            base="x",
            head="x",
            sources=["*.txt"],
        )
        (tmp_path / "port.txt").write_text(port)
        bot(tmp_path, "measure", "--compiler", "x", "--out", "out/head.json", code=5)
    message = cells(tmp_path)["look"]["failure"]["message"]
    network = "0" if confined.has_namespaces() else "1"
    assert (
        message == f"code-size-cell ['look.py', 'out', 'port.txt', 'tmp'] {network} 0"
        " code-size-cell"
    ), message
    assert ("network is OPEN" in confined.isolation()) == (network == "1")


def without_namespaces(home: Path, *arguments: str) -> str:
    """Run the bot as on a machine without namespaces, such as a container.

    Returns its standard error.
    """
    hidden = (
        "import sys, bot.system.confined as c; c.has_namespaces = lambda: False; import"
        " runpy; "
    )
    hidden += "runpy.run_module('bot', run_name='__main__', alter_sys=True)"
    argv = [sys.executable, "-c", hidden, *arguments, "--cache", "other"]
    return subprocess.run(
        argv, cwd=home, check=True, capture_output=True, text=True
    ).stderr


def test_without_namespaces_one_runs_at_a_time_at_the_same_path(tmp_path: Path) -> None:
    write(
        tmp_path,
        CC,
        {"a.c": LIBRARY % 8, "b.c": LIBRARY % 64, "where.c": "#error here\n"},
    )
    arguments = ["measure", "--compiler", "cc -g -Os", "--jobs", "2"]
    bot(tmp_path, *arguments, "--out", "out/with.json")
    without_namespaces(tmp_path, *arguments, "--out", "out/without.json")
    isolated_cells, unisolated_cells = (
        json.loads((tmp_path / "out" / f"{name}.json").read_text())["cells"]
        for name in ("with", "without")
    )
    for isolated, unisolated in zip(isolated_cells, unisolated_cells, strict=True):
        assert (
            isolated["artifact_digest"] == unisolated["artifact_digest"]
            and isolated["failure"] == unisolated["failure"]
        )


@pytest.mark.slow
def test_without_namespaces_a_package_keeps_all_but_the_closed_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No secret, time and memory bounded, nothing left alive.

    And the run says that the network is open.
    """
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    wheel(tmp_path / "wheels", "1.0")
    package(tmp_path, base="1.0", head="1.0")
    data = yaml.safe_load((tmp_path / "code-size.yml").read_text())
    data["models"], data["compiler"]["run"] = ["*.sh"], ["sh", "{model}"]
    (tmp_path / "code-size.yml").write_text(yaml.safe_dump(data))
    leftover = f"sleep {4000 + os.getpid()}.5"
    (tmp_path / "good.sh").write_text(
        f"{leftover} & setsid {leftover} & python -m kerneler out/code.bin"
    )
    (tmp_path / "hangs.sh").write_text(f"{leftover} & {leftover}")
    look = (
        "echo $(env | grep -c SECRET) $(ulimit -d) $(ulimit -f) $(pwd) $(command -v"
        " python) >&2; exit 1"
    )
    (tmp_path / "looks.sh").write_text(look)
    printed = without_namespaces(
        tmp_path, "measure", "--compiler", "1.0", "--out", "out/head.json"
    )
    assert "the network is OPEN: this machine allows no namespaces" in printed
    rows = cells(tmp_path)
    assert rows["good"]["metrics"]["artifact_bytes"] == 100
    assert rows["hangs"]["status"] == "timeout"
    message = f"0 {16 << 20} {1 << 21} code-size-cell python/bin/python"
    assert rows["looks"]["failure"]["message"] == message
    alive = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout
    assert leftover not in alive.splitlines()


def test_two_commits_are_the_sides(tmp_path: Path) -> None:
    run = ["make", "-s", "OUT={out}"]
    makefile = "$(OUT)/code.o: lib.c shared.h\n\tcc -Os -c lib.c -o $@\n"
    files = {
        "lib.c": '#include "shared.h"\n' + LIBRARY % 9,
        "shared.h": "int one(void) { return 1; }\n",
    }
    write(
        tmp_path,
        run,
        files,
        base="ref:HEAD~1",
        head="ref:HEAD",
        sources=["Makefile", "*.h", "lib.c"],
    )
    (tmp_path / "Makefile").write_text(makefile)
    config = yaml.safe_load((tmp_path / "code-size.yml").read_text()) | {
        "models": ["Makefile"]
    }
    (tmp_path / "code-size.yml").write_text(yaml.safe_dump(config))
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path)]
    (tmp_path / ".gitignore").write_text("cache\nout\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for text in (
        "int one(void) { return 1; }\n",
        "int one(void) { return 1; }\nint two(int x) { return x * 77 / 3; }\n",
    ):
        (tmp_path / "shared.h").write_text(text)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "x"], check=True)
    bot(tmp_path, "compare", code=0)
    [cell] = report(tmp_path)["cells"]
    assert [(row["name"], row["base"]) for row in cell["dispatches"]] == [("two", None)]


MANGLED = """
template <int N> __attribute__((noinline)) int kernel(int a MORE) { return a * N + (N > 2 ? a / N : 0); }
int both(int a) { return kernel<2>(a LESS) + kernel<3>(a LESS); }
"""


def test_a_frame_is_of_the_file_that_its_function_is_in(tmp_path: Path) -> None:
    source = (
        "static int own(int a) { volatile char room[%d]; return room[a]; }\nint %s(int"
        " a) { return own(a); }\n"
    )
    files = {"a.c": source % (4096, "fa"), "b.c": source % (16, "fb")}
    run = [
        "sh",
        "-c",
        (
            "cp a.c b.c out; cd out; {side} -fstack-usage -c a.c b.c && cc -r a.o b.o"
            " -o both.o"
        ),
    ]
    write(tmp_path, run, files, artifacts=["*.o"], sources=["*.c"])
    bot(tmp_path, "measure", "--compiler", "cc -O0", "--out", "head.json")
    frames = {
        (cell["executable"], cell["name"]): cell["stack_bytes"]
        for cell in cells(tmp_path, out=".")["a"]["dispatches"]
    }
    assert (
        frames["a.o", "own"] > 2000 > frames["b.o", "own"]
        and frames["both.o", "own"] == frames["a.o", "own"]
    )
    assert (
        cells(tmp_path, out=".")["a"]["metrics"]["stack_max_bytes"]
        == frames["a.o", "own"]
    )


def test_kernels_keep_their_identity_when_mangled_names_change(tmp_path: Path) -> None:
    sides = {"base": "c++ -DMORE= -DLESS=", "head": "c++ '-DMORE=,float' -DLESS=,0.5f"}
    write(tmp_path, [*CC[:2], "-O1", *CC[3:]], {"k.cpp": MANGLED}, **sides)
    bot(tmp_path, "compare")
    names = {
        name: {row["name"] for row in cells(tmp_path, name)["k"]["dispatches"]}
        for name in ("base", "head")
    }
    assert names["base"] & names["head"] == {"_Z4bothi"} and all(
        len(name) == 3 for name in names.values()
    )
    [cell] = report(tmp_path)["cells"]
    assert all(row["base"] and row["head"] for row in cell["dispatches"]), cell[
        "dispatches"
    ]


KERNELER = """
import sys
sizes = {"1.0": 100, "1.1": 100, "1.2": 900, "1.3": 950}
open(sys.argv[1], "wb").write(bytes(sizes["VERSION"]))
if sys.argv[2:]:
    open(sys.argv[2], "w").write('{"peak_bytes": %d, "kernels": 3}' % (10 * sizes["VERSION"]))
print("made by", "VERSION", "with Python %d.%d" % sys.version_info[:2])
"""


def wheel(folder: Path, version: str, tag: str = "py3-none-any") -> Path:
    """A compiler that makes larger files from 1.2 on."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"kerneler-{version}-{tag}.whl"
    info = f"kerneler-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kerneler.py", KERNELER.replace("VERSION", version))
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: kerneler\nVersion: {version}\n",
        )
        archive.writestr(
            f"{info}/WHEEL",
            f"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: {tag}\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def package(home: Path, *, facts: bool = False, **compiler: Any) -> None:
    """A configuration of that compiler, from a folder of wheels."""
    run = ["python", "-m", "kerneler", "{out}/code.bin", *["{out}/facts.json"] * facts]
    write(
        home,
        run,
        {"a.txt": "x"},
        package="kerneler",
        artifacts=["*.bin"],
        find_links="wheels",
        **compiler,
    )
    config = home / "code-size.yml"
    data = yaml.safe_load(config.read_text())
    if "requirements" in compiler:
        del data["compiler"]["base"], data["compiler"]["head"]
    config.write_text(yaml.safe_dump(data))


@pytest.mark.slow
def test_releases_of_a_package_with_metrics_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for version in ("1.0", "1.1", "1.2", "1.3"):
        wheel(tmp_path / "wheels", version)
    package(tmp_path, base="1.0", head="latest", metrics=OWN, facts=True)
    for name in ("pip.py", "venv.py"):  # of the repository that is measured: never run
        (tmp_path / name).write_text("raise SystemExit('was run')")
    assert "kerneler 1.0.0 → kerneler 1.3.0" in bot(tmp_path, "compare")
    snapshot = json.loads((tmp_path / "out/head.json").read_text())
    assert snapshot["compiler"]["spec"] == "latest = kerneler==1.3.0"

    bot(tmp_path, "history", "--releases", "1.0..latest", "--out", "years")
    history = json.loads((tmp_path / "years/history.json").read_text())
    sizes = {
        point["compiler"]: point["metrics"]["artifact_bytes"]
        for point in history["points"]
    }
    assert sizes == {"1.0.0": 100, "1.1.0": 100, "1.2.0": 900, "1.3.0": 950}
    cell = ("--model", "a", "--target", "here")
    printed = bot(tmp_path, "bisect", "kerneler==1.0", "1.3", *cell, "--out", "found")
    assert (
        "first bad: 1.2.0" in printed
        and "last good: 1.1.0, the candidate before it" in printed
    )
    printed = bot(
        tmp_path,
        "bisect",
        "1.0",
        "1.3",
        "--metric",
        "peak_bytes",
        *cell,
        "--limit",
        "2KiB",
        "--out",
        "step",
    )
    assert "first bad: 1.2.0" in printed and "1,000 → 9,000 B" in printed
    assert "no metric is called 'peak'" in bot(
        tmp_path, "bisect", "1.0", "1.3", "--metric", "peak", *cell, code=2
    )
    for spec, message in (
        ("nightly", "only IREE has nightly releases"),
        ("1.4", "newest: 1.0, 1.1, 1.2, 1.3"),
    ):
        assert message in bot(tmp_path, "compare", "1.0", spec, code=4)


def test_where_python_is_installed_is_no_part_of_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wheel(tmp_path / "wheels", "1.0")
    digests = set()
    for place in (tmp_path / "here", tmp_path / "there"):
        place.mkdir()
        (place / "python3").symlink_to(Path(sys.executable).resolve())
        monkeypatch.setattr(sys, "_base_executable", str(place / "python3"))
        command = Command(("x",), ("*",), str(tmp_path), "kerneler")
        packaged = command_compiler(
            command,
            spec=str(path),
            cache=place / "cache",
            places=Places(no_index=True),
            say=print,
            cancel=Cancel(),
        )
        digests.add(packaged.info.digest)
    assert len(digests) == 1


def test_a_package_is_pinned_in_requirements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for version, side in (("1.1", "base"), ("1.2", "head")):
        wheel(tmp_path / side / "wheels", version)
        package(tmp_path / side, requirements="pins.txt")
        (tmp_path / side / "pins.txt").write_text(
            f"iree-base-compiler==3.13.0\nKerneler=={version}  # until 1.3\n"
        )
    options = ["--config=base/code-size.yml", "--head-config=head/code-size.yml"]
    bot(tmp_path, "compare", *options)
    assert [
        cells(tmp_path, side)["a"]["metrics"]["artifact_bytes"]
        for side in ("base", "head")
    ] == [100, 900]
    (tmp_path / "head/pins.txt").write_text("kerneler>=1.2\n")
    assert "kerneler is not pinned to one release" in bot(
        tmp_path, "compare", *options, code=2
    )


def test_a_wheel_for_another_python_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheel(tmp_path / "wheels", "1.0", "cp39-none-any")
    package(tmp_path, base="1.0", head="1.0")
    printed = bot(
        tmp_path, "measure", "--compiler", "1.0", "--out", "out/head.json", code=4
    )
    assert (
        "could not be fetched" in printed
        and "run code-size-bot with a Python that fits its wheels" in printed
    ), printed
