"""bot.compiler.ptxas: the real assembler, and ones that refuse, hang, die or are not there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import needs
import pytest
from places import FIXTURES

from bot.compiler import ptxas as module
from bot.compiler.ptxas import MISSING, Assembler, Ptxas, assembler_of, installed
from bot.core.reading import PtxModule
from bot.core.this_machine import is_local
from bot.errors import Interrupted
from bot.readers.cubin import read_assembled
from bot.system.cancel import Cancel

PTX = PtxModule(
    "sm_80", (FIXTURES / "binaries" / "dense.cuda.ptx").read_bytes().rstrip(b"\0")
)


def real() -> Ptxas:
    return installed() or needs.missing("the extra cuda is not installed")


def fake(home: Path, body: str, seconds: float = 20) -> Assembler:
    """An assembler that is a shell script."""
    binary = home / "ptxas"
    binary.write_text(f"#!/bin/sh\n{body}\n")
    binary.chmod(0o755)
    return Assembler(Cancel(), seconds, Ptxas(binary, "1.2.3"))


def test_the_real_assembler_says_what_it_says_by_hand(tmp_path: Path) -> None:
    assembled = Assembler(Cancel(), 60, real()).assembled([PTX])
    assert not isinstance(assembled, str)
    (tmp_path / "other.ptx").write_bytes(PTX.text)
    command = [
        str(real().binary),
        "-v",
        "-O3",
        "--gpu-name",
        "sm_80",
        "-o",
        "other.cubin",
        "other.ptx",
    ]
    process = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (tmp_path / "other.cubin").read_bytes() == assembled[0].cubin
    registers = [
        int(count)
        for count in re.findall(
            r"Used (\d+) registers", process.stdout + process.stderr
        )
    ]
    assert (
        [code.registers for code in read_assembled(assembled[0]).entry_points]
        == registers
        != []
    )


def test_the_version_is_the_programs_own() -> None:
    printed = subprocess.run(
        [real().binary, "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert f"V{real().version}" in printed
    assert assembler_of("cuda", installed()) == f"ptxas {real().version} -O3"


@pytest.mark.parametrize(
    "text",
    [
        b"garbage",
        b".version 99.0\n.target sm_80",
        b".version 7.6\n.target sm_80\n.entry k() { x; }",
    ],
)
def test_the_real_assembler_refuses_in_its_own_words(text: bytes) -> None:
    refusal = Assembler(Cancel(), 60, real()).assembled([PtxModule("sm_80", text)])
    assert isinstance(refusal, str) and refusal.startswith(
        "ptxas refuses the PTX text: ptxas module.ptx, line "
    )
    assert "\n" not in refusal and not is_local(refusal)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Assembler(Cancel(), 20, None).assembled([PTX]) == MISSING
    assert "code-size-bot[cuda]" in MISSING
    monkeypatch.setattr(module, "PACKAGE", "no-such-package-of-anyone")
    installed.cache_clear()
    try:
        assert installed() is None and assembler_of("cuda", installed()) == ""
    finally:
        installed.cache_clear()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sleep 60", "ptxas did not end within 1 s"),
        ("kill -SEGV $$", "SIGSEGV"),
        ("exit 0", "ptxas refuses the PTX text without a message, exit code 0"),
        ("", "cannot be started"),
    ],
)
def test_one_that_hangs_dies_leaves_nothing_or_is_not_there(
    tmp_path: Path, body: str, message: str
) -> None:
    assembler = (
        fake(tmp_path, body, 1)
        if body
        else Assembler(Cancel(), 20, Ptxas(tmp_path / "none", "1"))
    )
    reason = assembler.assembled([PTX])
    assert (
        isinstance(reason, str)
        and message in reason
        and is_local(reason) is (body != "exit 0")
    )


def test_a_text_is_assembled_once_and_a_refusal_is_asked_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assembler = fake(
        tmp_path, f"echo x >> {runs}\ncp module.ptx module.cubin\necho said >&2"
    )
    first = assembler.assembled([PTX, PTX])
    assert not isinstance(first, str) and first == assembler.assembled([PTX, PTX])
    assert (first[0].cubin, first[0].said) == (PTX.text, "said\n")
    assert runs.read_text().count("x") == 1


def test_all_of_a_long_print_is_kept_and_no_secret_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    assembled = fake(tmp_path, "env > module.cubin\nseq 1 50000 >&2").assembled([PTX])
    assert not isinstance(assembled, str) and assembled[0].said.endswith("50000\n")
    assert b"secret" not in assembled[0].cubin


def test_it_ends_with_the_run(tmp_path: Path) -> None:
    assembler = fake(tmp_path, "sleep 60")
    assembler._cancel.set()
    with pytest.raises(Interrupted):
        assembler.assembled([PTX])
