"""C++ and archives that a real compiler makes: frames of functions, members of archives, and what is refused."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import needs
import pytest
from command_project import bot, cells, write

CXX = ["{side}", "-c", "-fstack-usage", "{model}", "-o", "{out}/code.o"]
FRAMES = """
struct View { int rank; };
namespace a {
struct K {
  K(int); ~K(); int v;
  int operator()(int x) const;
  bool operator<(const K &) const;
  operator unsigned long() const;
};
template <typename T> __attribute__((noinline)) T get(T x, unsigned long n) {
  volatile char room[200 * sizeof(T)]; room[1] = x; return room[n];
}
template <int N> __attribute__((noinline)) int fixed(int x) {
  volatile char room[1000 * N]; room[1] = x; return room[2];
}
K::K(int x) : v(x) {}
K::~K() { volatile char room[64]; room[0] = v; }
int K::operator()(int x) const { volatile char room[300]; room[0] = v; return room[x]; }
bool K::operator<(const K &other) const { return v < other.v; }
K::operator unsigned long() const { return v; }
}
namespace {
__attribute__((noinline)) int local(const View &v, unsigned long n) {
  volatile char room[512]; room[0] = v.rank; return room[n];
}
__attribute__((noinline)) int local(const View &v, const char *const *n) {
  volatile char room[4096]; room[0] = v.rank; return room[n[0][0]];
}
}
int variadic(const char *format, ...) { volatile char room[700]; return room[format[0]]; }
int use(const View &v, int n, const char *const *words) {
  auto twice = [&](auto q) __attribute__((noinline)) { volatile char room[1024]; room[0] = q; return room[n]; };
  return local(v, 1ul) + local(v, words) + twice(1) + twice(2.0) + a::get(1, 2) + a::get('c', 2)
       + a::fixed<3>(n) + a::fixed<30>(n);
}
extern "C" int plain(int n) { volatile char room[99]; return room[n]; }
static int at_start = use(View(), 3, 0);
"""
LEAST_BYTES = {
    "_ZN1a1KD1Ev": 64,
    "_ZN1a1KD2Ev": 64,
    "_ZNK1a1KclEi": 300,
    "_ZNK1a1KltERKS0_": 0,
    "_ZNK1a1KcvmEv": 0,
    "_ZN1a3getIiEET_S1_m": 800,
    "_ZN1a3getIcEET_S1_m": 200,
    "_ZN1a5fixedILi3EEEii": 3000,
    "_ZN1a5fixedILi30EEEii": 30_000,
    "_ZN12_GLOBAL__N_15localERK4Viewm": 512,
    "plain": 99,
    "_ZN12_GLOBAL__N_15localERK4ViewPKPKc": 4096,
    "_Z8variadicPKcz": 700,
}
"""Function → the array on its stack. A frame has more, or less where the array reaches into the red zone."""
RED_ZONE_BYTES = 128
MORE_BYTES = 300


def frames_of(home: Path, side: str = "head", model: str = "code") -> dict[str, int]:
    rows = cells(home, side)[model]["dispatches"]
    return {row["name"]: row["stack_bytes"] for row in rows if "stack_bytes" in row}


@pytest.fixture(autouse=True)
def tools() -> None:
    for program in ("c++", "ar"):
        if shutil.which(program) is None:
            needs.missing(f"no {program}")


@pytest.mark.parametrize(
    "flags",
    [
        "-O0",
        "-O2 -fno-ipa-cp -fno-ipa-sra",
        "-Os -ffunction-sections -fno-ipa-cp -fno-ipa-sra",
    ],
)
def test_each_function_of_cxx_has_its_own_frame(tmp_path: Path, flags: str) -> None:
    write(tmp_path, CXX, {"code.cpp": FRAMES})
    bot(
        tmp_path,
        "measure",
        "--compiler",
        f"c++ -std=c++17 {flags}",
        "--out",
        "out/head.json",
    )
    cell = cells(tmp_path)["code"]
    frames = frames_of(tmp_path)
    for name, least_bytes in LEAST_BYTES.items():
        assert (
            least_bytes - RED_ZONE_BYTES <= frames[name] <= least_bytes + MORE_BYTES
        ), (
            name,
            frames[name],
        )
    assert frames.keys() == {row["name"] for row in cell["dispatches"]}
    assert cell["metrics"]["stack_max_bytes"] == max(frames.values())


def test_overloads_of_several_linked_objects_are_told_apart_or_not_known(
    tmp_path: Path,
) -> None:
    first_source = "int f(int n) { volatile char r[5000]; return r[n]; }\n"
    first_source += "int f(const char *n) { volatile char r[90]; return r[*n]; }\n"
    second_source = (
        "template <class T> int g(T n) { volatile char r[sizeof(T) * 100]; return"
        " r[(int)n]; }\n"
    )
    second_source += "template int g(int); template int g(double);"
    run = (
        "cp one.cpp other.cpp out; cd out; {side} -fstack-usage -c one.cpp other.cpp &&"
        " c++ -r one.o other.o -o all.o"
    )
    write(
        tmp_path,
        ["sh", "-c", run],
        {"one.cpp": first_source},
        artifacts=["all.o"],
        sources=["*.cpp"],
    )
    (tmp_path / "other.cpp").write_text(second_source)
    bot(tmp_path, "measure", "--compiler", "c++ -O0", "--out", "out/head.json")
    cell = cells(tmp_path)["one"]
    frames = frames_of(tmp_path, model="one")
    assert frames["_Z1fi"] > 4000 > frames["_Z1fPKc"]
    # the lines of two instances of g say the same but for [with T]
    assert frames.keys() == {
        "_Z1fi",
        "_Z1fPKc",
    }
    assert cell["metrics"]["stack_max_bytes"] is None
    assert cell["reasons"]["stack_max_bytes"].startswith("unknown for _Z1gI")


ARCHIVE = """
set -e
for name in one two; do mkdir -p {out}/$name; {side} -fstack-usage -c $name.c -o {out}/$name/f.o; done
{side} -c long.c -o {out}/a_member_with_a_long_name.o
ar qcD {out}/libf.a {out}/one/f.o {out}/two/f.o {out}/a_member_with_a_long_name.o
ranlib -D {out}/libf.a
"""
MEMBERS = {
    "one.c": "int first(int n) { volatile char r[1111]; return r[n]; }\n",
    "two.c": "int second(int n) { volatile char r[2222]; return r[n] + n; }\n",
    "long.c": "int third(int n) { return n * 3; }\nint table[50] = {1};\n",
}


def archive(home: Path, script: str = ARCHIVE, **compiler: Any) -> None:
    run = ["sh", "-c", script.strip().replace("\n", "; ")]
    write(
        home,
        run,
        {"one.c": MEMBERS["one.c"]},
        artifacts=["*.a"],
        sources=["*.c"],
        **compiler,
    )
    for name, text in MEMBERS.items():
        (home / name).write_text(text)


def test_the_members_of_an_archive_are_measured(tmp_path: Path) -> None:
    archive(tmp_path, base="cc -Os", head="cc -O0")
    bot(tmp_path, "compare")
    cell = cells(tmp_path)["one"]
    rows = {row["name"]: row for row in cell["dispatches"]}
    assert {name: row["executable"] for name, row in rows.items()} == {
        "first": "libf.a(f.o)",
        "second": "libf.a(f.o #2)",
        "third": "libf.a(a_member_with_a_long_name.o)",
    }
    assert 900 < rows["first"]["stack_bytes"] < 2000 < rows["second"]["stack_bytes"]
    script = ARCHIVE.replace("{out}", "again").replace("{side}", "cc -O0")
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    library = tmp_path / "again/libf.a"
    listed = subprocess.run(
        ["size", "-A", str(library)], capture_output=True, text=True, check=True
    ).stdout
    sections = [
        line.split()
        for line in listed.splitlines()
        if line.startswith((".text", ".data"))
    ]
    text = sum(int(size) for name, size, _ in sections if name == ".text")
    assert (
        cell["parts"]["executables/text"] == cell["metrics"]["executable_bytes"] == text
    )
    assert cell["parts"]["executables/data"] == 200
    assert (
        sum(cell["parts"].values())
        == cell["metrics"]["artifact_bytes"]
        == library.stat().st_size
    )


@pytest.mark.parametrize(
    ("archiving", "status", "message"),
    [
        (
            "ar qcDT {out}/libf.a {out}/one/f.o",
            "failed",
            "libf.a is a thin archive without code",
        ),
        ("ar qcD {out}/libf.a {out}/one/f.o one.c", "ok", "libf.a(one.c): file: "),
        (
            "ar qcD {out}/x {out}/one/f.o; head -c 200 {out}/x > {out}/libf.a",
            "ok",
            "libf.a: archive: ",
        ),
    ],
)
def test_what_an_archive_does_not_show_is_said(
    tmp_path: Path, archiving: str, status: str, message: str
) -> None:
    script = ARCHIVE[: ARCHIVE.index("ar qcD")] + archiving
    archive(tmp_path, script)
    bot(
        tmp_path,
        "measure",
        "--compiler",
        "cc -Os",
        "--out",
        "out/head.json",
        code=5 if status == "failed" else 0,
    )
    cell = cells(tmp_path)["one"]
    assert cell["status"] == status
    if status == "failed":
        assert cell["failure"]["message"].startswith(message)
        return
    assert cell["metrics"]["executable_bytes"] is None
    assert message in cell["reasons"]["executable_bytes"]
    assert sum(cell["parts"].values()) == cell["metrics"]["artifact_bytes"]
