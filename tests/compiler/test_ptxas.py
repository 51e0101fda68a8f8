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
from bot.core.policy import is_local
from bot.core.reading import PtxModule
from bot.errors import Interrupted
from bot.readers.cubin import read_assembled
from bot.system.processes import Cancel

PTX = PtxModule("sm_80", (FIXTURES / "binaries" / "dense.cuda.ptx").read_bytes().rstrip(b"\0"))


def real() -> Ptxas:
    return installed() or needs.missing("the extra cuda is not installed")


def fake(home: Path, body: str, seconds: float = 20) -> Assembler:
    """An assembler that is a shell script."""
    binary = home / "ptxas"
    binary.write_text(f"#!/bin/sh\n{body}\n")
    binary.chmod(0o755)
    return Assembler(Cancel(), seconds, Ptxas(binary, "1.2.3"))


def test_the_real_assembler_says_what_it_says_by_hand(tmp_path: Path) -> None:
    found = Assembler(Cancel(), 60, real()).assembled([PTX])
    assert not isinstance(found, str)
    (tmp_path / "other.ptx").write_bytes(PTX.text)
    command = [str(real().binary), "-v", "-O3", "--gpu-name", "sm_80", "-o", "other.cubin", "other.ptx"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (tmp_path / "other.cubin").read_bytes() == found[0].cubin
    registers = [int(each) for each in re.findall(r"Used (\d+) registers", said.stdout + said.stderr)]
    assert [code.registers for code in read_assembled(found[0]).functions] == registers != []


def test_the_version_is_the_programs_own() -> None:
    said = subprocess.run([real().binary, "--version"], capture_output=True, text=True, check=True).stdout
    assert f"V{real().version}" in said
    assert assembler_of("cuda") == f"ptxas {real().version} -O3"


@pytest.mark.parametrize(
    "text", [b"garbage", b".version 99.0\n.target sm_80", b".version 7.6\n.target sm_80\n.entry k() { x; }"]
)
def test_the_real_assembler_refuses_in_its_own_words(text: bytes) -> None:
    found = Assembler(Cancel(), 60, real()).assembled([PtxModule("sm_80", text)])
    assert isinstance(found, str) and found.startswith("ptxas refuses the PTX text: ptxas module.ptx, line ")
    assert "\n" not in found and not is_local(found)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Assembler(Cancel(), 20, None).assembled([PTX]) == MISSING
    assert "code-size-bot[cuda]" in MISSING
    monkeypatch.setattr(module, "PACKAGE", "no-such-package-of-anyone")
    installed.cache_clear()
    try:
        assert installed() is None and assembler_of("cuda") == ""
    finally:
        installed.cache_clear()


def test_only_cuda_depends_on_it() -> None:
    assert assembler_of("llvm-cpu") == assembler_of("rocm") == ""
    one = Assembler(Cancel(), 20, Ptxas(Path("ptxas"), "1.2.3"))
    assert (one.name_for("cuda"), one.name_for("rocm")) == ("ptxas 1.2.3 -O3", None)


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    found = fake(tmp_path, "sleep 60", 0.3).assembled([PTX])
    assert isinstance(found, str) and "ptxas did not end within 0.3 s" in found and is_local(found)


def test_one_that_dies_says_so(tmp_path: Path) -> None:
    found = fake(tmp_path, "kill -SEGV $$").assembled([PTX])
    assert isinstance(found, str) and "SIGSEGV" in found and is_local(found)


def test_one_that_leaves_nothing_has_not_assembled(tmp_path: Path) -> None:
    assert fake(tmp_path, "exit 0").assembled([PTX]) == "ptxas refuses the PTX text without a word, exit code 0"


def test_one_that_cannot_be_started(tmp_path: Path) -> None:
    found = Assembler(Cancel(), 20, Ptxas(tmp_path / "none", "1")).assembled([PTX])
    assert isinstance(found, str) and "cannot be started" in found and is_local(found)


def test_a_text_is_assembled_once_and_a_refusal_is_asked_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    one = fake(tmp_path, f"echo x >> {runs}\ncp module.ptx module.cubin\necho said >&2")
    first = one.assembled([PTX, PTX])
    assert not isinstance(first, str) and first == one.assembled([PTX, PTX])
    assert (first[0].cubin, first[0].said) == (PTX.text, "said\n")
    assert runs.read_text().count("x") == 1


def test_all_of_a_long_print_is_kept(tmp_path: Path) -> None:
    found = fake(tmp_path, "touch module.cubin\nseq 1 50000 >&2").assembled([PTX])
    assert not isinstance(found, str) and found[0].said.endswith("50000\n")


def test_it_sees_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    found = fake(tmp_path, "env > module.cubin").assembled([PTX])
    assert not isinstance(found, str) and b"secret" not in found[0].cubin


def test_it_ends_with_the_run(tmp_path: Path) -> None:
    one = fake(tmp_path, "sleep 60")
    one._cancel.set()
    with pytest.raises(Interrupted):
        one.assembled([PTX])
