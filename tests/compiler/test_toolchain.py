"""bot.compiler.toolchain: every kind of SPEC, what is refused, and which compilers are the same one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from fake_compiler import BINARIES, FakeCompiler, install, install_native
from fake_wheels import DIST_INFO, LIBRARIES, LIBRARY, entries, wheel_name, write_wheel

from bot.compiler.toolchain import Toolchain, compiler_digest, resolve
from bot.errors import CompilerUnavailable
from bot.system.processes import Cancel

WRAPPER = f"#!{sys.executable}\nimport sys\nsys.exit('the wrapper must not be run')\n"
NATIVE = "iree/compiler/_mlir_libs/iree-compile"
OWN = f"cpython-{sys.version_info.major}{sys.version_info.minor}"


@pytest.fixture
def fake(tmp_path: Path) -> FakeCompiler:
    return install(tmp_path / "fake")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def never_said(line: str) -> None:
    raise AssertionError(line)


def resolved(spec: str | Path, cache: Path) -> Toolchain:
    return resolve(str(spec), cache, Cancel(), never_said)


def refused(spec: str | Path, cache: Path) -> str:
    """The one line that a SPEC gets which is no compiler."""
    with pytest.raises(CompilerUnavailable) as raised:
        resolved(spec, cache)
    assert raised.value.exit_code == 4 and "\n" not in raised.value.line
    return raised.value.line


def virtual_environment(top: Path, fake: FakeCompiler) -> Path:
    """As pip leaves it: a wrapper script in `bin`, the native binary among the packages."""
    install_native(top / "lib" / "python3.11" / "site-packages" / NATIVE, fake)
    (top / "bin").mkdir()
    (top / "bin" / "iree-compile").write_text(WRAPPER)
    (top / "bin" / "iree-compile").chmod(0o755)
    return top


def build_directory(top: Path, fake: FakeCompiler) -> Path:
    """As CMake leaves it: the binary under `tools`, the library under `lib`, bindings under `compiler`."""
    binary = install_native(top / "tools" / "iree-compile", fake)
    (top / "lib").mkdir()
    (binary.parent / "libIREECompiler.so").rename(top / "lib" / "libIREECompiler.so")
    (top / "compiler" / "bindings" / "python" / "iree" / "compiler" / "_mlir_libs").mkdir(parents=True)
    return top


# Forms of SPEC


def test_a_binary(tmp_path: Path, cache: Path, fake: FakeCompiler) -> None:
    binary = install_native(tmp_path / "somewhere" / "iree-compile", fake)
    found = resolved(binary, cache)
    assert found.binary == binary
    assert (found.info.version, found.info.revision) == ("3.13.0rc1", "ab" * 20)
    assert found.info.spec == "iree-compile"
    assert found.info.digest == compiler_digest(binary, None, cache)
    assert found.backends == ("llvm-cpu", "rocm", "vmvx", "vmvx-inline")
    assert (found.bindings, found.no_bindings) == (None, "no MLIR Python bindings beside this compiler")


def test_a_path_however_it_is_written(
    tmp_path: Path, cache: Path, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = install_native(tmp_path / "iree-compile", fake)
    (tmp_path / "link").symlink_to(binary)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for spec in (tmp_path / "link", "iree-compile", "./iree-compile", "~/iree-compile"):
        assert resolved(spec, Path("cache")).binary == binary
    install_native(tmp_path / "tree" / NATIVE, fake)
    assert resolved(tmp_path / "tree", cache).binary == tmp_path / "tree" / NATIVE, "an unpacked wheel"


@pytest.mark.parametrize("spec", [".", "bin", "bin/iree-compile"])
def test_a_virtual_environment(tmp_path: Path, cache: Path, fake: FakeCompiler, spec: str) -> None:
    top = virtual_environment(tmp_path / "venv", fake)
    if spec == "bin":
        assert "holds an iree-compile that is a script" in refused(top / spec, cache)
        return
    found = resolved(top / spec, cache)
    assert found.binary == top / "lib" / "python3.11" / "site-packages" / NATIVE
    assert found.info.spec == "venv"


def test_a_build_directory(tmp_path: Path, cache: Path, fake: FakeCompiler) -> None:
    top = build_directory(tmp_path / "iree-build", fake)
    found = resolved(top, cache)
    assert found.binary == top / "tools" / "iree-compile"
    (top / "lib" / "libIREECompiler.so").write_bytes(b"\x7fELF rebuilt")
    assert resolved(top, cache).info.digest != found.info.digest
    assert found.info.spec == "iree-build" and found.bindings is None
    root = top / "compiler" / "bindings" / "python"
    (root / "iree" / "compiler" / "_mlir_libs" / f"_mlir.{OWN}-x86_64-linux-gnu.so").write_bytes(b"\x7fELF")
    assert resolved(top, cache).bindings == root


def test_a_wheel_alone_or_in_a_directory(tmp_path: Path, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path / "dist" / wheel_name(), entries(fake))
    (tmp_path / "dist" / "iree_base_runtime-3.13.0-py3-none-any.whl").write_text("another package")
    monkeypatch.chdir(tmp_path)
    for spec, shown in ((wheel, wheel.name), (wheel.parent, "dist")):
        toolchain = resolved(spec, Path("cache"))
        assert toolchain.binary.is_relative_to(tmp_path / "cache") and toolchain.binary.match(f"*/{NATIVE}")
        assert (toolchain.info.spec, toolchain.info.version) == (shown, "3.13.0rc1")


# What is no compiler


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "  ",
        "newest",
        "3",
        "3.x",
        "no/such/file",
        "iree-compile==3.13.0",
        "~nobody-at-all/x",
        "a\0b",
        "3.13.0; ls",
    ],
)
def test_nonsense(cache: Path, spec: str) -> None:
    hint = "did you mean 3.13.0?" if spec.endswith("3.13.0") else "give a release such as 3.13.0"
    line = refused(spec, cache)
    assert f"is no compiler: no such file, directory or release ({hint}" in line


def test_directories_and_dead_links_in_the_places_of_a_binary(tmp_path: Path, cache: Path) -> None:
    assert len(refused("x" * 10_000, cache)) < 500
    (tmp_path / "top").mkdir()
    line = f"{tmp_path}/top: holds no iree-compile, and no iree_base_compiler wheel"
    assert refused(tmp_path / "top", cache).startswith(line)
    (tmp_path / "top" / "tools" / "iree-compile").mkdir(parents=True)
    (tmp_path / "top" / "iree-compile").symlink_to("nowhere")
    assert refused(tmp_path / "top", cache).startswith(line)


def test_a_wrapper_with_nothing_behind_it(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "top" / "bin").mkdir(parents=True)
    (tmp_path / "top" / "bin" / "iree-compile").write_text(WRAPPER)
    assert ": is a script, and no native" in refused(tmp_path / "top" / "bin" / "iree-compile", cache)
    assert "holds an iree-compile that is a script" in refused(tmp_path / "top", cache)


def test_a_file_that_cannot_be_run(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a program")
    assert "notes.txt: cannot be started: Permission denied" in refused(tmp_path / "notes.txt", cache)
    (tmp_path / "notes.txt").chmod(0o755)
    assert "notes.txt: cannot be started: Exec format error" in refused(tmp_path / "notes.txt", cache)
    shutil.copy(BINARIES / "dense.llvm-cpu-aarch64.so", tmp_path / "iree-compile")
    (tmp_path / "iree-compile").chmod(0o755)
    assert "(it must be an executable for this machine)" in refused(tmp_path / "iree-compile", cache)


def test_another_program_and_a_compiler_that_crashes_when_asked(
    tmp_path: Path, cache: Path, fake: FakeCompiler
) -> None:
    binary = install_native(tmp_path / "iree-compile", fake)
    fake.binary.write_text("import os\nprint('IREE compiler version 3.13.0', flush=True)\nos.abort()\n")
    assert "is no iree-compile" in refused(binary, cache)
    line = refused(shutil.which("git") or "", cache)
    assert "is no iree-compile: --version does not name an IREE compiler (it said: git version" in line
    assert "is no iree-compile" in refused(shutil.which("false") or "", cache)


# Identity


def release(*, of: FakeCompiler, **files: bytes) -> dict[str, bytes]:
    """A wheel's files with bindings; `files`: name of a part → other bytes."""
    parts = {
        "library": (f"{LIBRARIES}/libIREECompiler.so", LIBRARY),
        "linker": (f"{LIBRARIES}/iree-lld", b"\x7fELF lld"),
        "device": (f"{LIBRARIES}/iree_platform_libs/rocm/ocml.bc", b"BC"),
        "module": (f"{LIBRARIES}/_mlir.{OWN}-x86_64-linux-gnu.so", b"\x7fELF"),
        "python": ("iree/compiler/ir.py", b"pass"),
        "record": (f"{DIST_INFO}/RECORD", b"claims"),
        "other": ("iree/build/args.py", b"pass"),
    }
    return {**entries(of), **{name: files.get(part, data) for part, (name, data) in parts.items()}}


def digest_of_wheel(home: Path, cache: Path, files: dict[str, bytes]) -> str:
    return resolved(write_wheel(home / wheel_name(), files), cache).info.digest


@pytest.mark.parametrize("part", ["library", "linker", "device", "module", "python", "record", "other"])
def test_every_file_that_runs_is_part_of_the_identity_and_no_other(
    tmp_path: Path, cache: Path, fake: FakeCompiler, part: str
) -> None:
    first = digest_of_wheel(tmp_path / "a", cache, release(of=fake))
    other = digest_of_wheel(tmp_path / "b", cache, release(of=fake, **{part: b"\x7fELF another"}))
    assert (other != first) is (part not in ("record", "other"))


def test_the_same_compiler_elsewhere_is_the_same(tmp_path: Path, cache: Path, fake: FakeCompiler) -> None:
    first = resolved(write_wheel(tmp_path / wheel_name(), release(of=fake)), cache)
    shutil.copytree(first.binary.parents[3], tmp_path / "site-packages", dirs_exist_ok=True)
    (tmp_path / "site-packages" / "iree" / "compiler" / "__pycache__").mkdir()
    (tmp_path / "site-packages" / "iree" / "compiler" / "__pycache__" / "ir.cpython-311.pyc").write_bytes(b"code")
    assert resolved(tmp_path / "site-packages", cache).info.digest == first.info.digest


def test_digests_are_remembered_until_a_file_changes(tmp_path: Path, cache: Path, fake: FakeCompiler) -> None:
    binary = install_native(tmp_path / "iree-compile", fake)
    library = tmp_path / "libIREECompiler.so"
    first = resolved(binary, cache).info.digest
    [memo] = (cache / "digests").iterdir()
    assert memo.read_text() == first
    memo.write_text("ee" * 32)
    assert resolved(binary, cache).info.digest == "ee" * 32

    before = library.stat()
    library.write_bytes(library.read_bytes()[::-1])
    os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))  # same name, size and time of change
    assert library.stat().st_mtime_ns == before.st_mtime_ns
    second = resolved(binary, cache).info.digest
    (tmp_path / "iree-lld").write_bytes(b"\x7fELF")
    third = resolved(binary, cache).info.digest
    library.unlink()
    binary.write_bytes(binary.read_bytes() + b"\0")
    digests = {first, second, third, resolved(binary, cache).info.digest, "ee" * 32}
    assert len(digests) == 5
    for memo in (cache / "digests").iterdir():
        memo.write_text("ee" * 31)
    assert resolved(binary, cache).info.digest in digests - {"ee" * 32}, "a torn memo is ignored"


def test_a_change_right_after_the_digest_is_seen(tmp_path: Path, cache: Path, fake: FakeCompiler) -> None:
    binary, library = install_native(tmp_path / "iree-compile", fake), tmp_path / "libIREECompiler.so"
    seen = set()
    for number in range(20):
        with open(library, "r+b") as file:  # the same file, and the same size
            file.write(b"%04d" % number)
        seen.add(compiler_digest(binary, None, cache))
    assert len(seen) == 20


def test_a_compiler_that_is_being_built_is_refused(
    tmp_path: Path, cache: Path, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary, library = install_native(tmp_path / "iree-compile", fake), tmp_path / "libIREECompiler.so"
    monkeypatch.setattr("time.sleep", lambda _: library.write_bytes(b"\x7fELF linked a moment ago"))
    assert "iree-compile: is being written while it is read (wait until the build is done)" in refused(binary, cache)
    assert not (cache / "digests").exists()


# Bindings


@pytest.mark.parametrize("tag", [OWN, "cpython-39"])
def test_bindings_are_those_that_a_python_here_loads(tmp_path: Path, cache: Path, fake: FakeCompiler, tag: str) -> None:
    files = {**entries(fake), f"{LIBRARIES}/_mlir.{tag}-x86_64-linux-gnu.so": b"\x7fELF"}
    toolchain = resolved(write_wheel(tmp_path / wheel_name(), files), cache)
    why = "on this machine: no Python on PATH can load this compiler's MLIR bindings"
    expected = (toolchain.binary.parents[3], "") if tag == OWN else (None, why)
    assert (toolchain.bindings, toolchain.no_bindings) == expected
