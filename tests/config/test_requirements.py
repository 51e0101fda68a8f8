"""bot.config.requirements: the one line that pins the compiler, however it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config.requirements import asks_for_compiler, pinned_compiler, requirements_file
from bot.errors import ConfigError

PIN = "iree-base-compiler==3.13.0"


def pinned(folder: Path, text: str | bytes) -> str:
    path = folder / "requirements.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return pinned_compiler(path)


def refusal(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        pinned(folder, text)
    return caught.value.line.removeprefix(f"{folder}/requirements.txt")


@pytest.mark.parametrize(
    "text",
    [
        PIN,
        f"{PIN}\n",
        f"numpy>=1.26\n\n{PIN}\ntorch==2.4\n",
        f"{PIN}\r\nnumpy\r\n",
        f"  {PIN}  # the compiler\n",
        "iree-base-compiler == 3.13.0",
        "IREE_Base.Compiler==3.13.0",
        "iree--base_compiler==3.13.0",
        "iree-base-compiler[onnx]==3.13.0",
        "iree-base-compiler [onnx, extra] ==3.13.0",
        f"{PIN} ; python_version >= '3.10'",
        f"{PIN};sys_platform=='linux'",
        f"{PIN} \\\n    --hash=sha256:00\n",
        f"# {PIN.replace('13', '12')}\n{PIN}",
        f"iree-base-compiler-extras==1.0\niree-base-runtime==3.13.0\n{PIN}",
        b"\xef\xbb\xbf" + PIN.encode(),
    ],
    ids=range(16),
)
def test_a_pin_is_found_however_it_is_written(tmp_path: Path, text: str | bytes) -> None:
    assert pinned(tmp_path, text) == PIN


@pytest.mark.parametrize("version", ["3.13.0rc20261016", "3.11.0.dev1", "3.13.0+abc1234"])
def test_a_pre_release_is_a_release(tmp_path: Path, version: str) -> None:
    assert pinned(tmp_path, f"iree-base-compiler=={version}") == f"iree-base-compiler=={version}"


@pytest.mark.parametrize(
    "text",
    ["", "numpy==2.0\n", f"# {PIN}\n", "iree-base-runtime==3.13.0\n", "iree-base-compilers==3.13.0\n", f"my-{PIN}\n"],
)
def test_a_file_without_pin_is_refused(tmp_path: Path, text: str) -> None:
    line = ": pins no iree-base-compiler (write one line: iree-base-compiler==X.Y.Z)"
    assert refusal(tmp_path, text) == line


def test_two_pins_are_refused(tmp_path: Path) -> None:
    assert "pins iree-base-compiler more than once" in refusal(tmp_path, f"{PIN}\niree_base_compiler==3.12.0\n")


@pytest.mark.parametrize(
    "pin",
    [
        "iree-base-compiler",
        "iree-base-compiler>=3.13.0",
        "iree-base-compiler~=3.13.0",
        "iree-base-compiler===3.13.0",
        "iree-base-compiler==",
        "iree-base-compiler==3.13.*",
        "iree-base-compiler==3.13.0,!=3.13.1",
        "iree-base-compiler==latest",
    ],
)
def test_what_is_no_single_release_is_refused_with_its_line(tmp_path: Path, pin: str) -> None:
    line = refusal(tmp_path, f"numpy\n{pin}  # why\n")
    assert line == f":2: iree-base-compiler is not pinned to one release: '{pin}' (write iree-base-compiler==X.Y.Z)"


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        pinned_compiler(tmp_path / "none.txt")
    assert caught.value.line == f"{tmp_path}/none.txt: cannot be read: No such file or directory"
    assert refusal(tmp_path, b"\xff\xfe") == ": is not UTF-8 (save the file as UTF-8)"


def project(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        f'[project]\ndependencies = [\n  "numpy>=2",\n  "{PIN}",\n]\n',
        f"[project]\ndependencies = ['{PIN}']\n",
        f'[project.optional-dependencies]\ncompiler = ["numpy", "{PIN}"]  # and "iree-base-compiler==3.12.0" once\n',
        f"[dependency-groups]\ndev = [\"{PIN}; python_version >= '3.10'\"]\n",
        f'[dependency-groups]\ndev = ["{PIN}; python_version >= \\"3.10\\""]\n',
        f'# "iree-base-compiler==3.12.0"\n[project]\ndependencies = ["iree-base-runtime==3.12.0", "{PIN}"]\n',
    ],
    ids=["lines", "literal", "extra", "marker", "escaped", "comment"],
)
def test_a_pin_is_found_in_a_project_file(tmp_path: Path, text: str) -> None:
    assert pinned_compiler(project(tmp_path, text)) == PIN


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[project]\n", ": pins no iree-base-compiler "),
        (f"{PIN}\n", ": pins no iree-base-compiler "),
        ('dev = ["iree-base-compiler>=3.11"]', ":1: iree-base-compiler is not pinned to one release: "),
        ('"iree-base-compiler" = "3.13.0"', ":1: iree-base-compiler is not pinned to one release: "),
        (f'a = ["{PIN}"]\nb = ["{PIN}"]\n', ": pins iree-base-compiler more than once "),
    ],
    ids=["none", "no string", "range", "other table", "twice"],
)
def test_a_project_file_without_one_pin_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = project(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        pinned_compiler(path)
    assert caught.value.line.removeprefix(str(path)).startswith(words)
    assert asks_for_compiler(path) is ("pins no" not in words)


def test_the_file_is_named_from_the_top_of_the_repository_or_beside_the_configuration(tmp_path: Path) -> None:
    beside = tmp_path / "repo" / "ci"
    beside.mkdir(parents=True)
    (tmp_path / "pins.txt").write_text("outside\n")
    top = tmp_path / "repo"
    assert requirements_file("pins.txt", top, beside) == top / "pins.txt", "where there is none, errors name this one"
    (beside / "pins.txt").write_text("beside\n")
    assert requirements_file("pins.txt", top, beside) == beside / "pins.txt"
    (top / "pins.txt").write_text("top\n")
    assert requirements_file("pins.txt", top, beside) == top / "pins.txt"
    assert requirements_file("../pins.txt", top, beside) == beside / "../pins.txt"
