"""Toolchains and wheels: every kind of SPEC, what is refused, which compilers are the same one, and their wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from fake_compiler import BINARIES, FakeCompiler, install, install_native
from fake_wheels import (
    DIST_INFO,
    HERE,
    LIBRARIES,
    LIBRARY,
    entries,
    wheel_name,
    write_wheel,
)
from small_disk import small_disk

from bot.compiler.bindings_python import interpreter
from bot.compiler.compiler_digest import compiler_digest
from bot.compiler.toolchain import Toolchain, resolve
from bot.compiler.wheels import fetch_release, only_fitting, pip, release_home, unpack
from bot.errors import BotError, CompilerUnavailable, OutputError
from bot.system.cancel import Cancel

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
    (
        top / "compiler" / "bindings" / "python" / "iree" / "compiler" / "_mlir_libs"
    ).mkdir(parents=True)
    return top


# Forms of SPEC


def test_a_binary(tmp_path: Path, cache: Path, fake: FakeCompiler) -> None:
    binary = install_native(tmp_path / "somewhere" / "iree-compile", fake)
    toolchain = resolved(binary, cache)
    assert toolchain.binary == binary
    assert (toolchain.info.version, toolchain.info.revision) == ("3.13.0rc1", "ab" * 20)
    assert toolchain.info.spec == "iree-compile"
    assert toolchain.info.digest == compiler_digest(binary, None, cache)
    assert (toolchain.bindings, toolchain.no_bindings) == (
        None,
        "no MLIR Python bindings beside this compiler",
    )


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
    assert resolved(tmp_path / "tree", cache).binary == tmp_path / "tree" / NATIVE, (
        "an unpacked wheel"
    )


@pytest.mark.parametrize("spec", [".", "bin", "bin/iree-compile"])
def test_a_virtual_environment(
    tmp_path: Path, cache: Path, fake: FakeCompiler, spec: str
) -> None:
    top = virtual_environment(tmp_path / "venv", fake)
    if spec == "bin":
        assert "holds an iree-compile that is a script" in refused(top / spec, cache)
        return
    toolchain = resolved(top / spec, cache)
    assert toolchain.binary == top / "lib" / "python3.11" / "site-packages" / NATIVE
    assert toolchain.info.spec == "venv"


def test_a_build_directory(tmp_path: Path, cache: Path, fake: FakeCompiler) -> None:
    top = build_directory(tmp_path / "iree-build", fake)
    toolchain = resolved(top, cache)
    assert toolchain.binary == top / "tools" / "iree-compile"
    (top / "lib" / "libIREECompiler.so").write_bytes(b"\x7fELF rebuilt")
    assert resolved(top, cache).info.digest != toolchain.info.digest
    assert toolchain.info.spec == "iree-build" and toolchain.bindings is None
    root = top / "compiler" / "bindings" / "python"
    (
        root / "iree" / "compiler" / "_mlir_libs" / f"_mlir.{OWN}-x86_64-linux-gnu.so"
    ).write_bytes(b"\x7fELF")
    assert resolved(top, cache).bindings == root
    before = resolved(top, cache).info.digest
    (top / "tools" / "libIREECompiler.so").write_bytes(b"\x7fELF beside the binary")
    beside = resolved(top, cache).info.digest
    (top / "tools" / "libIREECompiler.so").write_bytes(b"\x7fELF another")
    assert len({before, beside, resolved(top, cache).info.digest}) == 3


def test_a_wheel_alone_or_in_a_directory(
    tmp_path: Path, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(tmp_path / "dist" / wheel_name(), entries(fake))
    (tmp_path / "dist" / "iree_base_runtime-3.13.0-py3-none-any.whl").write_text(
        "another package"
    )
    monkeypatch.chdir(tmp_path)
    for spec, expected in ((wheel, wheel.name), (wheel.parent, "dist")):
        toolchain = resolved(spec, Path("cache"))
        assert toolchain.binary.is_relative_to(
            tmp_path / "cache"
        ) and toolchain.binary.match(f"*/{NATIVE}")
        assert (toolchain.info.spec, toolchain.info.version) == (expected, "3.13.0rc1")


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
        "~nobody-at-all/x",
        "a\0b",
        "3.13.0; ls",
    ],
)
def test_nonsense(cache: Path, spec: str) -> None:
    line = (
        "is not a compiler: no such file, directory or release (give a release such as"
        " 3.13.0"
    )
    assert line in refused(spec, cache)


def test_directories_and_dead_links_in_the_places_of_a_binary(
    tmp_path: Path, cache: Path
) -> None:
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
    assert (
        ": is a script, and its virtual environment or build has no native"
        in refused(tmp_path / "top" / "bin" / "iree-compile", cache)
    )
    assert "holds an iree-compile that is a script" in refused(tmp_path / "top", cache)


def test_a_file_that_cannot_be_run(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a program")
    assert "notes.txt: cannot be started: Permission denied" in refused(
        tmp_path / "notes.txt", cache
    )
    (tmp_path / "notes.txt").chmod(0o755)
    assert "notes.txt: cannot be started: Exec format error" in refused(
        tmp_path / "notes.txt", cache
    )
    shutil.copy(BINARIES / "dense.llvm-cpu-aarch64.so", tmp_path / "iree-compile")
    (tmp_path / "iree-compile").chmod(0o755)
    assert "(name an executable for this machine)" in refused(
        tmp_path / "iree-compile", cache
    )


def test_another_program_and_a_compiler_that_crashes_when_asked(
    tmp_path: Path, cache: Path, fake: FakeCompiler
) -> None:
    binary = install_native(tmp_path / "iree-compile", fake)
    fake.binary.write_text(
        "import os\nprint('IREE compiler version 3.13.0', flush=True)\nos.abort()\n"
    )
    assert "is not an iree-compile" in refused(binary, cache)
    line = refused(shutil.which("git") or "", cache)
    assert (
        "is not an iree-compile: --version does not name an IREE compiler (it said: git"
        " version" in line
    )
    assert "is not an iree-compile" in refused(shutil.which("false") or "", cache)


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
    return {
        **entries(of),
        **{name: files.get(part, data) for part, (name, data) in parts.items()},
    }


def digest_of_wheel(home: Path, cache: Path, files: dict[str, bytes]) -> str:
    return resolved(write_wheel(home / wheel_name(), files), cache).info.digest


@pytest.mark.parametrize(
    "part", ["library", "linker", "device", "module", "python", "record", "other"]
)
def test_every_file_that_runs_is_part_of_the_identity_and_no_other(
    tmp_path: Path, cache: Path, fake: FakeCompiler, part: str
) -> None:
    first = digest_of_wheel(tmp_path / "a", cache, release(of=fake))
    other_digest = digest_of_wheel(
        tmp_path / "b", cache, release(of=fake, **{part: b"\x7fELF another"})
    )
    assert (other_digest != first) is (part not in ("record", "other"))


def test_the_same_compiler_elsewhere_is_the_same(
    tmp_path: Path, cache: Path, fake: FakeCompiler
) -> None:
    first = resolved(write_wheel(tmp_path / wheel_name(), release(of=fake)), cache)
    shutil.copytree(
        first.binary.parents[3], tmp_path / "site-packages", dirs_exist_ok=True
    )
    (tmp_path / "site-packages" / "iree" / "compiler" / "__pycache__").mkdir()
    (
        tmp_path
        / "site-packages"
        / "iree"
        / "compiler"
        / "__pycache__"
        / "ir.cpython-311.pyc"
    ).write_bytes(b"code")
    assert resolved(tmp_path / "site-packages", cache).info.digest == first.info.digest


def test_digests_are_remembered_until_a_file_changes(
    tmp_path: Path, cache: Path, fake: FakeCompiler
) -> None:
    binary = install_native(tmp_path / "iree-compile", fake)
    library = tmp_path / "libIREECompiler.so"
    first = resolved(binary, cache).info.digest
    [memo] = (cache / "digests").iterdir()
    assert memo.read_text() == first
    memo.write_text("ee" * 32)
    assert resolved(binary, cache).info.digest == "ee" * 32

    before = library.stat()
    library.write_bytes(library.read_bytes()[::-1])
    # same name, size and time of change
    os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))
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
    assert resolved(binary, cache).info.digest in digests - {"ee" * 32}, (
        "a torn memo is ignored"
    )


def test_a_change_right_after_the_digest_is_seen(
    tmp_path: Path, cache: Path, fake: FakeCompiler
) -> None:
    binary = install_native(tmp_path / "iree-compile", fake)
    library = tmp_path / "libIREECompiler.so"
    digests = set()
    for number in range(20):
        with open(library, "r+b") as file:  # the same file, and the same size
            file.write(b"%04d" % number)
        digests.add(compiler_digest(binary, None, cache))
    assert len(digests) == 20


def test_a_compiler_that_is_being_built_is_refused(
    tmp_path: Path, cache: Path, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = install_native(tmp_path / "iree-compile", fake)
    library = tmp_path / "libIREECompiler.so"
    monkeypatch.setattr(
        "time.sleep", lambda _: library.write_bytes(b"\x7fELF linked a moment ago")
    )
    assert (
        "iree-compile: changed while the bot was reading it (wait until the build is"
        " done)" in refused(binary, cache)
    )
    assert not (cache / "digests").exists()


# Bindings


@pytest.mark.parametrize("tag", [OWN, "cpython-39"])
def test_bindings_are_those_that_a_python_here_loads(
    tmp_path: Path, cache: Path, fake: FakeCompiler, tag: str
) -> None:
    files = {
        **entries(fake),
        f"{LIBRARIES}/_mlir.{tag}-x86_64-linux-gnu.so": b"\x7fELF",
    }
    toolchain = resolved(write_wheel(tmp_path / wheel_name(), files), cache)
    reason = "on this machine: no Python on PATH can load this compiler's MLIR bindings"
    expected = (toolchain.binary.parents[3], "") if tag == OWN else (None, reason)
    assert (toolchain.bindings, toolchain.no_bindings) == expected


# Wheels: unpacked, hostile, and fetched from a folder


@pytest.fixture
def wheel(tmp_path: Path, fake: FakeCompiler) -> Path:
    return write_wheel(tmp_path / "dist" / wheel_name(), entries(fake))


def leftovers(cache: Path) -> list[str]:
    toolchains = cache / "toolchains"
    return [path.name for path in toolchains.iterdir()] if toolchains.exists() else []


def test_a_wheel_is_unpacked_once(
    tmp_path: Path, wheel: Path, fake: FakeCompiler
) -> None:
    root = unpack(wheel, tmp_path / "cache")
    binary = root / LIBRARIES / "iree-compile"
    assert (
        "IREE compiler version"
        in subprocess.run([binary, "--version"], capture_output=True, text=True).stdout
    )
    assert os.access(root / LIBRARIES / "iree-lld", os.X_OK)
    assert {name: (root / name).read_bytes() for name in entries(fake)} == entries(fake)
    before = binary.stat().st_ino
    assert unpack(wheel, tmp_path / "cache") == root
    assert binary.stat().st_ino == before and leftovers(tmp_path / "cache") == [
        root.name
    ]


def test_other_bytes_are_another_compiler_and_half_of_one_is_unpacked_again(
    tmp_path: Path, wheel: Path, fake: FakeCompiler
) -> None:
    root = unpack(wheel, tmp_path / "cache")
    for path in root.iterdir():
        if path.is_file():
            path.unlink()
    (root / LIBRARIES / "libIREECompiler.so").write_bytes(b"half")
    assert unpack(wheel, tmp_path / "cache") == root
    assert (root / LIBRARIES / "libIREECompiler.so").read_bytes() != b"half"
    assert leftovers(tmp_path / "cache") == [root.name]
    write_wheel(wheel, entries(fake, b"\x7fELF rebuilt"))
    second = unpack(wheel, tmp_path / "cache")
    assert (
        second != root
        and (second / LIBRARIES / "libIREECompiler.so").read_bytes()
        == b"\x7fELF rebuilt"
    )


def test_two_runs_unpack_at_once(tmp_path: Path, wheel: Path) -> None:
    roots: list[Path] = []
    threads = [
        threading.Thread(target=lambda: roots.append(unpack(wheel, tmp_path / "cache")))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(roots) == 6 and len(set(roots)) == 1
    assert leftovers(tmp_path / "cache") == [roots[0].name]


@pytest.mark.parametrize(
    "name",
    ["../../evil", "/tmp/code-size-evil", "iree/../../../evil", "..\\evil", "link"],
)
def test_nothing_is_written_outside_and_a_link_is_no_way_out(
    tmp_path: Path, fake: FakeCompiler, name: str
) -> None:
    wheel = tmp_path / wheel_name()
    outside = tmp_path / "outside"
    outside.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        link = zipfile.ZipInfo("iree/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(outside))
        for path, data in {name: b"evil", **entries(fake)}.items():
            archive.writestr(path, data)
    root = unpack(wheel, tmp_path / "cache")
    assert [
        path for path in tmp_path.rglob("*evil*") if not path.is_relative_to(root)
    ] == []
    assert (
        not Path("/tmp/code-size-evil").exists()
        and not (root / "iree" / "link").is_symlink()
    )


def test_a_wheel_that_was_cut_or_has_another_byte_is_whole_or_refused(
    tmp_path: Path, wheel: Path
) -> None:
    whole = wheel.read_bytes()
    cache = tmp_path / "cache"
    for size in (*range(0, len(whole), 5), *range(len(whole) - 40, len(whole))):
        wheel.write_bytes(whole[:size])
        with pytest.raises(CompilerUnavailable, match="is not a wheel"):
            unpack(wheel, cache)
    refusals = 0
    for offset in range(0, len(whole), 11):
        wheel.write_bytes(
            whole[:offset] + bytes([whole[offset] ^ 0x41]) + whole[offset + 1 :]
        )
        try:
            shutil.rmtree(unpack(wheel, cache))
        except BotError:
            refusals += 1
    assert refusals > len(whole) / 44 and leftovers(cache) == []


def test_what_cannot_be_unpacked_leaves_nothing_behind(
    tmp_path: Path, wheel: Path, fake: FakeCompiler
) -> None:
    files = entries(fake)
    bare = {
        name: data for name, data in files.items() if not name.endswith("iree-compile")
    }
    blocked = {"iree": b"a file", **files}
    for inside, line in (
        (bare, r"\.whl: holds no iree/compiler/_mlir_libs/iree-compile"),
        (blocked, "cannot be unpacked"),
    ):
        with pytest.raises(BotError, match=line):
            unpack(
                write_wheel(tmp_path / line[-8:] / wheel_name(), inside),
                tmp_path / "cache",
            )
        assert leftovers(tmp_path / "cache") == []
    with small_disk(tmp_path / "disk") as disk:
        large = write_wheel(tmp_path / wheel_name(), entries(fake, bytes(1 << 20)))
        with pytest.raises(OutputError, match="No space left on device"):
            unpack(large, disk)
        assert leftovers(disk) == []
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="cannot be written"):
        unpack(wheel, tmp_path / "file")


# Which wheel


def test_a_wheel_is_for_this_machine_and_named_as_one(
    tmp_path: Path, fake: FakeCompiler
) -> None:
    messages = dict.fromkeys(
        ("win_amd64", "macosx_13_0_universal2", "manylinux_2_28_s390x"),
        "is a wheel for another platform",
    )
    names = {wheel_name(platform=platform): line for platform, line in messages.items()}
    for name, line in {
        **names,
        "compiler.whl": "does not have a wheel's file name",
    }.items():
        with pytest.raises(CompilerUnavailable, match=line):
            unpack(write_wheel(tmp_path / name, entries(fake)), tmp_path / "cache")
    multi_platform = wheel_name(python="cp39", platform=f"win_amd64.{HERE}")
    assert unpack(
        write_wheel(tmp_path / multi_platform, entries(fake)), tmp_path / "cache"
    ).is_dir()


def touched(directory: Path, *names: str) -> list[Path]:
    for name in names:
        (directory / name).touch()
    return [directory / name for name in names]


def test_of_several_wheels_the_one_that_fits(tmp_path: Path) -> None:
    names = (
        wheel_name(),
        wheel_name(python="cp39"),
        wheel_name(platform="win_amd64"),
        wheel_name("3.12.0"),
    )
    fitting, old, foreign, newer = touched(tmp_path, *names)
    assert (
        only_fitting([fitting, old, foreign], tmp_path) == fitting
        and only_fitting([old, foreign], tmp_path) == old
    )
    with pytest.raises(
        CompilerUnavailable,
        match=r"several wheels fit this machine: .*3\.12\.0.*3\.13\.0",
    ) as raised:
        only_fitting([newer, fitting], tmp_path)
    assert raised.value.hint == "name one wheel"
    with pytest.raises(
        CompilerUnavailable, match=r"no wheel fits this platform: .*win_amd64"
    ):
        only_fitting([foreign], tmp_path)


# Releases


def test_a_release_from_a_folder_of_wheels(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    messages: list[str] = []
    root = fetch_release("3.13.0", tmp_path / "cache", Cancel(), messages.append)
    assert messages == ["fetching iree-base-compiler==3.13.0"]
    assert (root / LIBRARIES / "iree-compile").is_file()
    assert fetch_release("3.13.0", tmp_path / "cache", Cancel(), never_said) == root
    with pytest.raises(
        CompilerUnavailable, match=r"==3\.9\.9: no such release .*\(newest: 3\.13\.0\)"
    ):
        fetch_release("3.9.9", tmp_path / "cache", Cancel(), messages.append)
    assert leftovers(tmp_path / "cache") == [root.name]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("soabi", "cpython-312-x86_64-linux-gnu"),
        ("soabi", "cpython-311-x86_64-linux-musl"),
        ("machine", "riscv64"),
    ],
)
def test_what_another_python_or_machine_fetched_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    homes = [release_home("3.13.0", tmp_path)]
    if variable == "soabi":
        monkeypatch.setattr("sysconfig.get_config_var", {"SOABI": value}.get)
    else:
        monkeypatch.setattr("platform.machine", lambda: value)
    homes.append(release_home("3.13.0", tmp_path))
    assert len({*homes, release_home("3.12.0", tmp_path)}) == 3


def test_what_lies_in_the_current_directory_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the checkout of a pull request."""
    shadow = tmp_path / "iree" / "compiler"
    (shadow / "_mlir_libs").mkdir(parents=True)
    (shadow / "_mlir_libs" / "_mlir.cpython-39-x.so").touch()
    (shadow / "ir.py").write_text("import colorsys")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("pip", "colorsys"):
        (checkout / f"{name}.py").write_text("raise SystemExit(open('ran', 'w'))")
    monkeypatch.chdir(checkout)
    assert pip("help", cancel=Cancel()).exit_code is not None
    assert interpreter(tmp_path, Cancel()) == sys.executable
    assert not (checkout / "ran").exists()


def test_pip_sees_its_own_settings_and_the_proxy_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environments: list[dict[str, str]] = []
    allowed = {
        "HTTP_PROXY": "a",
        "https_proxy": "b",
        "no_proxy": "c",
        "PIP_INDEX_URL": "d",
    }
    for name, value in {
        **allowed,
        "GITHUB_TOKEN": "secret",
        "MY_PIP_TOKEN": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        "bot.compiler.wheels.run",
        lambda _argv, **options: environments.append(options["environment"]),
    )
    pip("--version", cancel=Cancel())
    assert (
        allowed.items() <= environments[0].items()
        and "secret" not in environments[0].values()
    )
