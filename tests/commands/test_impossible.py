"""Facts that cannot be: each is one failed build with its reason, or one clear line and the exit code 2."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_project import CC, LIBRARY, bot, cells, compiler, write
from elf_files import tiny_object
from fake_compiler import TEMPLATES, install, install_native, write_model

from bot.core.record import INT_LIMIT
from bot.readers.vm_module import parse_module

__all__ = ["compiler"]  # a fixture

Snapshot = dict[str, Any]


@pytest.fixture(scope="module")
def measured_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two models, their snapshot and its report."""
    home = tmp_path_factory.mktemp("measured")
    write(home, CC, {"a.c": LIBRARY % 8, "b.c": LIBRARY % 80})
    bot(home, "measure", "--compiler", "cc -Os", "--out", "out/head.json")
    bot(
        home,
        "report",
        "--base",
        "out/head.json",
        "--head",
        "out/head.json",
        "--out",
        "fine",
    )
    return home


@pytest.fixture
def snapshot(tmp_path: Path, measured_home: Path) -> Snapshot:
    """A snapshot of two models, as the command wrote it; its text stays in `out/head.json`."""
    shutil.copytree(measured_home, tmp_path, dirs_exist_ok=True)
    return json.loads((tmp_path / "out/head.json").read_text())  # type: ignore[no-any-return]


def refused(home: Path, text: str) -> str:
    (home / "bad.json").write_text(text)
    printed = bot(
        home,
        "report",
        "--base",
        "bad.json",
        "--head",
        "out/head.json",
        "--out",
        "no",
        code=2,
    )
    assert "Traceback" not in printed
    assert not (home / "no" / "report.json").exists()
    return printed


def parts_that_sum_to_more(cell: Snapshot) -> None:
    cell["parts"]["executables/text"] += 1


def code_larger_than_the_file(cell: Snapshot) -> None:
    cell["dispatches"][0]["code_bytes"] = 10**15


def a_part_larger_than_the_file(cell: Snapshot) -> None:
    cell["metrics"]["executable_bytes"] = 10**15


def parts_that_are_together_larger_than_the_file(cell: Snapshot) -> None:
    cell["metrics"]["rodata_bytes"] = cell["metrics"]["artifact_bytes"] - 1


IMPOSSIBLE: dict[str, Callable[[Snapshot], None]] = {
    "its parts sum to": parts_that_sum_to_more,
    "code_bytes of 'area' is 1,000,000,000,000,000, and artifact_bytes is": (
        code_larger_than_the_file
    ),
    "sum to 1,000,000,000,00": a_part_larger_than_the_file,
    "rodata_bytes, unattributed_bytes sum to": (
        parts_that_are_together_larger_than_the_file
    ),
}


@pytest.mark.parametrize("contradiction", IMPOSSIBLE)
def test_figures_of_a_snapshot_that_contradict_each_other_are_refused(
    tmp_path: Path, snapshot: Snapshot, contradiction: str
) -> None:
    IMPOSSIBLE[contradiction](snapshot["cells"][0])
    printed = refused(tmp_path, json.dumps(snapshot))
    assert contradiction in printed and "bad.json: cells[0]" in printed


def test_sizes_whose_sum_no_reader_holds_are_refused(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    for cell in snapshot["cells"]:
        cell["metrics"]["artifact_bytes"] = INT_LIMIT - 1
        cell["parts"] = {"executables/unread": INT_LIMIT - 1}
    assert (
        "artifact_bytes of all cells sums to more than 9,007,199,254,740,992"
        in refused(tmp_path, json.dumps(snapshot))
    )


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"status":"ok"', '"status":"failed","status":"ok"', "status"),
        ('"artifact_bytes":', '"artifact_bytes":1,"artifact_bytes":', "artifact_bytes"),
        ('"schema":', '"schema":"code-size-snapshot/1","schema":', "schema"),
        ('"flags":', '"flags":["x"],"flags":', "flags"),
        ('"version":', '"version":"1","version":', "version"),
    ],
)
@pytest.mark.parametrize("is_pretty", [False, True])
def test_a_key_that_stands_twice_in_a_snapshot_is_refused(
    tmp_path: Path, snapshot: Snapshot, old: str, new: str, key: str, is_pretty: bool
) -> None:
    text = (
        json.dumps(snapshot, separators=(",", ":"))
        if is_pretty
        else (tmp_path / "out/head.json").read_text()
    )
    assert old in text
    assert f"has the key '{key}' twice in one object" in refused(
        tmp_path, text.replace(old, new, 1)
    )


def test_a_key_that_stands_twice_in_another_file_is_refused(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    assert snapshot["cells"]
    text = (tmp_path / "fine/report.json").read_text()
    (tmp_path / "report.json").write_text(
        text.replace('"verdict":', '"verdict":{"status":"pass"},"verdict":', 1)
    )
    argv = [
        sys.executable,
        "-m",
        "bot",
        "explain",
        "report.json",
        "--model",
        "a",
        "--target",
        "here",
    ]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "has the key 'verdict' twice in one object" in done.stderr
    (tmp_path / "twice.json").write_text(
        '{"schema": "code-size-config/1", "models": ["a.c"], "models": ["b.c"]}'
    )
    printed = bot(
        tmp_path,
        "measure",
        "--config",
        "twice.json",
        "--compiler",
        "cc",
        "--out",
        "x.json",
        code=2,
    )
    assert (
        "twice.json:1" in printed and "models" in printed and "Traceback" not in printed
    )


def sized(size: int) -> bytes:
    """An object whose only function claims that many bytes, in a section of 24."""
    data = tiny_object(64, "<")
    place = data.index(struct.pack("<IBBHQQ", 1, 2, 0, 1, 0, 24)) + 16
    return data[:place] + size.to_bytes(8, "little") + data[place + 8 :]


def test_a_function_larger_than_its_section_fails_its_build_alone(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        ["sh", "-c", "cp {model} {out}/code.o"],
        dict.fromkeys(("fine.o", "huge.o", "more.o"), ""),
    )
    for name, size in (("fine", 24), ("huge", 10**15), ("more", 25)):
        (tmp_path / f"{name}.o").write_bytes(sized(size))
    bot(tmp_path, "measure", "--compiler", "x", "--out", "out/head.json")
    rows = cells(tmp_path)
    assert rows["fine"]["metrics"]["executable_bytes"] == 24
    for name, figure in (("huge", "1,000,000,000,000,000"), ("more", "25")):
        assert rows[name]["status"] == "failed"
        message = (
            f"code.o: function 'kernel' has {figure} bytes in a section of 24 bytes"
        )
        assert rows[name]["failure"]["message"] == message


FOLDER = "mkdir tmp/more; cp {out}/real.o tmp/more; ln -s ../tmp/more {out}/more"
LINKS = {
    "artifact": "{side} -c {model} -o {out}/real.o; ln -s real.o {out}/code.o",
    "outside": "{side} -c {model} -o {out}/real.o; ln -s /etc/passwd {out}/code.o",
    "stack": (
        "{side} -c {model} -o {out}/real.o; echo 'a.c:1:f\t8\tstatic' > {out}/x; ln -s"
        " x {out}/real.su"
    ),
    "facts": (
        "{side} -c {model} -o {out}/real.o; echo '{}' > {out}/x; ln -s x"
        " {out}/facts.json"
    ),
    "folder": f"{{side}} -c {{model}} -o {{out}}/real.o; {FOLDER}",
}
NAMES = {
    "artifact": "code.o",
    "outside": "code.o",
    "stack": "real.su",
    "facts": "facts.json",
}


@pytest.mark.parametrize("kind", LINKS)
def test_no_link_among_the_files_of_a_command_is_followed(
    tmp_path: Path, kind: str
) -> None:
    write(tmp_path, ["sh", "-c", LINKS[kind]], {"a.c": "int x;\n"})
    code = 5 if kind in NAMES else 0
    bot(tmp_path, "measure", "--compiler", "cc", "--out", "out/head.json", code=code)
    cell = cells(tmp_path)["a"]
    if kind in NAMES:
        assert cell["failure"]["message"] == f"{NAMES[kind]} is a link"
    else:
        assert cell["metrics"]["executables"] == 1


def test_an_artifact_with_overlapping_parts_fails_its_build_alone(
    tmp_path: Path,
) -> None:
    data = Path(TEMPLATES["llvm-cpu"]).read_bytes()
    first, second = sorted(
        span for span in parse_module(data).segments if span.size > 30
    )[:2]
    count_at = first.start - 4
    assert data[count_at : first.start] == struct.pack("<I", first.size)
    larger = struct.pack("<I", second.start + 1 - first.start)
    (tmp_path / "overlapping.vmfb").write_bytes(
        data[:count_at] + larger + data[first.start :]
    )
    templates = TEMPLATES | {"llvm-cpu": str(tmp_path / "overlapping.vmfb")}
    binary = install_native(
        tmp_path / "bin" / "iree-compile",
        install(tmp_path / "fake", templates=templates),
    )
    write_model(tmp_path, "a")
    text = (
        "schema: code-size-config/1\nmodels: ['*.mlir']\ntargets: [vmvx,"
        " llvm-cpu-x86_64]\n"
    )
    (tmp_path / "code-size.yml").write_text(text)
    bot(tmp_path, "measure", "--compiler", str(binary), "--out", "out/head.json")
    rows = {
        row["target"]: row
        for row in json.loads((tmp_path / "out/head.json").read_text())["cells"]
    }
    assert rows["vmvx"]["status"] == "ok"
    assert rows["llvm-cpu-x86_64"]["status"] == "failed"
    message = f"artifact: two parts share the byte at offset {second.start}"
    assert message in rows["llvm-cpu-x86_64"]["failure"]["message"]
