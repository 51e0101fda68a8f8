"""bot.config.requirements: the line that pins the compiler, and all that projects write around it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from places import FIXTURES

from bot.config.requirements import requirements_file, sought_compiler
from bot.core.spec import Places, Sought
from bot.errors import ConfigError

PIN = "iree-base-compiler==3.13.0"
IREE = "https://iree.dev/pip-release-links.html"
WAVE = "https://github.com/iree-org/wave/releases/expanded_assets/dev-wheels"
REAL = FIXTURES / "requirements"


def sought(folder: Path, text: str, top: Path | None = None) -> Sought:
    path = folder / "requirements.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return sought_compiler(path, top)


def notes(requirements: Sought, folder: Path) -> list[str]:
    return [note.replace(f"{folder}/", "") for note in requirements.notes]


def test_pins_of_real_projects() -> None:
    turbine, shark = (
        sought_compiler(REAL / f"{name}-pinned.txt") for name in ("turbine", "shark-ai")
    )
    assert turbine == Sought("iree-base-compiler==3.6.0rc20250714", Places((IREE,)))
    assert shark == Sought(
        "iree-base-compiler==3.8.0rc20251005", Places((WAVE, IREE), no_index=True)
    )
    for name in ("shark-ai-unpinned.txt", "test-suites-torch-ops.txt"):
        with pytest.raises(ConfigError) as raised:
            sought_compiler(REAL / name)
        expected = (
            f"{name}:8: iree-base-compiler is not pinned to one release:"
            " 'iree-base-compiler' "
        )
        assert (
            raised.value.line.removeprefix(f"{REAL}/")
            == expected + "(write iree-base-compiler==X.Y.Z)"
        )


# A line, however it is written.


def refusal(folder: Path, text: str | bytes) -> str:
    path = folder / "requirements.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        sought_compiler(path)
    return caught.value.line.removeprefix(str(path))


def test_a_pin_is_found_however_it_is_written(tmp_path: Path) -> None:
    spellings = [
        "iree-base-compiler == 3.13.0",
        "IREE_Base.Compiler==3.13.0",
        "iree--base_compiler==3.13.0",
    ]
    spellings += [
        "iree-base-compiler[onnx]==3.13.0",
        "iree-base-compiler [onnx, extra] ==3.13.0",
    ]
    for text in (
        *(
            PIN,
            f"{PIN}\n",
            f"numpy>=1.26\n\n{PIN}\ntorch==2.4\n",
            f"{PIN}\r\nnumpy\r\n",
            f"  {PIN}  # the compiler\n",
        ),
        *spellings,
        *(
            f"{PIN} ; python_version >= '3.10'",
            f"{PIN};sys_platform=='linux'",
            f"{PIN} \\\n    --hash=sha256:00\n",
        ),
        *(f"# {PIN.replace('13', '12')}\n{PIN}", f"\ufeff{PIN}"),
        f"iree-base-compiler-extras==1.0\niree-base-runtime==3.13.0\n{PIN}",
    ):
        assert sought(tmp_path, text).spec == PIN
    for version in ("3.13.0rc20261016", "3.11.0.dev1", "3.13.0+abc1234"):
        assert (
            sought(tmp_path, f"iree-base-compiler=={version}").spec
            == f"iree-base-compiler=={version}"
        )


def test_a_file_without_one_pin_is_refused(tmp_path: Path) -> None:
    hint = "(write one line: iree-base-compiler==X.Y.Z)"
    for name in (
        "iree-base-runtime",
        "iree-base-compilers",
        "my-iree-base-compiler",
        "numpy",
        f"# {PIN} ",
    ):
        assert (
            refusal(tmp_path, f"{name}==3.13.0\n")
            == f": pins no release of iree-base-compiler {hint}"
        )
    assert refusal(tmp_path, "") == f": pins no release of iree-base-compiler {hint}"
    twice = (
        f"{PIN} ; sys_platform == 'linux'\niree_base_compiler==3.12.0 ; sys_platform =="
        " 'darwin'\n"
    )
    assert (
        refusal(tmp_path, twice)
        == f":2: pins 3.13.0 and 3.12.0 of iree-base-compiler {hint}"
    )
    assert sought(tmp_path, f"{PIN}\n{PIN}\n").spec == PIN
    assert refusal(tmp_path, b"\xff\xfe") == ": is not UTF-8 (save the file as UTF-8)"
    with pytest.raises(ConfigError) as caught:
        sought_compiler(tmp_path / "none.txt")
    assert caught.value.line.startswith(
        f"{tmp_path}/none.txt: cannot be read: No such file or directory (compiler."
    )
    for requirement in (
        "",
        ">=3.13.0",
        "~=3.13.0",
        "===3.13.0",
        "==",
        "==3.13.*",
        "==3.13.0,!=3.13.1",
        "==latest",
    ):
        expected = (
            ":2: iree-base-compiler is not pinned to one release:"
            f" 'iree-base-compiler{requirement}' "
        )
        line = refusal(tmp_path, f"numpy\niree-base-compiler{requirement}  # why\n")
        assert line == f"{expected}(write iree-base-compiler==X.Y.Z)"


def project(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        f'[project]\ndependencies = [\n  "numpy>=2",\n  "{PIN}",\n]\n',
        f"[project]\ndependencies = ['{PIN}']\n",
        (
            f'[project.optional-dependencies]\ncompiler = ["numpy", "{PIN}"]  # and'
            ' "iree-base-compiler==3.12.0" once\n'
        ),
        f"[dependency-groups]\ndev = [\"{PIN}; python_version >= '3.10'\"]\n",
        f'[dependency-groups]\ndev = ["{PIN}; python_version >= \\"3.10\\""]\n',
        (
            '# "iree-base-compiler==3.12.0"\n[project]\ndependencies ='
            f' ["iree-base-runtime==3.12.0", "{PIN}"]\n'
        ),
        f'[project]\nkeywords = ["iree-base-compiler"]\ndependencies = ["{PIN}"]\n',
        (
            '[project]\nkeywords = ["iree-base-compiler==3.12.0", "x"]\ndependencies ='
            f' ["""{PIN}"""]\n'
        ),
        f'[build-system]\nrequires = ["setuptools", "{PIN}"]\n',
        f'[tool.uv]\ndev-dependencies = ["{PIN}"]\n',
        (
            '[dependency-groups]\na = [{include-group = "b"}]\nb = ["IREE_Base.Compiler'
            ' == 3.13.0"]\n'
        ),
    ],
    ids=[
        *(
            "lines",
            "literal",
            "extra",
            "marker",
            "escaped",
            "comment",
            "keyword",
            "other keyword",
            "build",
            "tool",
        ),
        "group",
    ],
)
def test_a_pin_is_found_in_a_project_file(tmp_path: Path, text: str) -> None:
    assert sought_compiler(project(tmp_path, text)).spec == PIN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project]\n", ": pins no release of iree-base-compiler "),
        (f"{PIN}\n", ": is not a TOML file: "),
        (
            f'[project]\nkeywords = ["{PIN}"]\n',
            ": pins no release of iree-base-compiler ",
        ),
        (
            f'[project]\ndescription = "needs {PIN}"\n',
            ": pins no release of iree-base-compiler ",
        ),
        (
            (
                '[dependency-groups]\n# iree-base-compiler>=3.11\ndev = [\n  "numpy",\n'
                '  "iree-base-compiler>=3.11",\n]\n'
            ),
            ":5: iree-base-compiler is not pinned to one release: ",
        ),
        (
            (
                '[project]\nkeywords = ["iree-base-compiler"]\ndependencies ='
                ' ["iree-base-compiler"]\n'
            ),
            ":3: iree-base-compiler is not pinned to one release: ",
        ),
        (
            f'[dependency-groups]\na = ["{PIN}"]\nb = ["{PIN}.1"]\n',
            ":3: pins 3.13.0 and 3.13.0.1 of iree-base-compiler ",
        ),
        (
            (
                f'[project.optional-dependencies]\na = ["{PIN}"]\nb = ["""\\\n '
                f' {PIN}.1"""]\n'
            ),
            ":4: pins 3.13.0 and 3.13.0.1 of iree-base-compiler ",
        ),
    ],
    ids=[
        "none",
        "no TOML",
        "keyword",
        "description",
        "range",
        "keyword and range",
        "twice",
        "several lines",
    ],
)
def test_a_project_file_without_one_pin_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    path = project(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        sought_compiler(path)
    assert caught.value.line.removeprefix(str(path)).startswith(message)


def test_the_file_is_named_from_the_top_of_the_repository_or_beside_the_configuration(
    tmp_path: Path,
) -> None:
    beside = tmp_path / "repo" / "ci"
    beside.mkdir(parents=True)
    (tmp_path / "pins.txt").write_text("outside\n")
    top = tmp_path / "repo"
    assert requirements_file("pins.txt", top, beside) == top / "pins.txt", (
        "where there is none, errors name this one"
    )
    (beside / "pins.txt").write_text("beside\n")
    assert requirements_file("pins.txt", top, beside) == beside / "pins.txt"
    (top / "pins.txt").write_text("top\n")
    assert requirements_file("pins.txt", top, beside) == top / "pins.txt"
    assert requirements_file("../pins.txt", top, beside) == beside / "../pins.txt"


# Places of wheels.


def test_a_page_in_every_spelling_and_a_directory_from_the_file(tmp_path: Path) -> None:
    spellings = (
        f"-f {IREE}",
        f"-f{IREE}",
        f"--find-links {IREE}",
        f"--find-links={IREE}  # nightly",
        f"  -f '{IREE}'",
    )
    for option in spellings:
        assert sought(tmp_path, f"{PIN}\n{option}\n{option}\n") == Sought(
            PIN, Places((IREE,))
        )
    (tmp_path / "pins" / "wheels").mkdir(parents=True)
    sought_pin = sought(tmp_path / "pins", f"-f wheels\n{PIN}\n", tmp_path)
    assert sought_pin == Sought(PIN, Places((str(tmp_path / "pins" / "wheels"),)))


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("file:///etc", "is neither an HTTPS page nor a directory"),
        ("https:///links.html", "is neither an HTTPS page nor a directory"),
        ("http://localhost.evil.example/x", "is neither an HTTPS page nor a directory"),
        ("http://127.0.0.1@evil.example/x", "is neither an HTTPS page nor a directory"),
        ("https://me:hunter2@iree.dev/links.html", "contains credentials"),
        ("https://${TOKEN}@iree.dev/links.html", "contains credentials"),
        ("nowhere", "is not a directory"),
        ("..", "leaves the repository"),
        ("wheels", "leaves the repository"),
    ],
)
def test_a_place_that_is_not_taken_is_reported_without_its_words(
    tmp_path: Path, link: str, reason: str
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "wheels").symlink_to(tmp_path)
    sought_pin = sought(top, f"{PIN}\n-f {link}\n", top)
    assert sought_pin.places == Places()
    assert notes(sought_pin, top) == [
        f"requirements.txt:2: ignored the place of wheels: it {reason}"
    ]


def test_other_indexes_and_files_are_not_used_and_what_is_not_understood_is_reported(
    tmp_path: Path,
) -> None:
    index = (
        "requirements.txt:1: ignored the index: the bot uses the index of its own"
        " machine"
    )
    followed = (
        "requirements.txt:1: ignored the included file: the configuration has to name"
        " the file with the pin"
    )
    for expected_notes, options in (
        (
            [index],
            (
                "-i https://me:hunter2@index.example/simple",
                "--index-url=https://x.example",
            ),
        ),
        ([index], ("--extra-index-url https://x.example",)),
        (
            [followed],
            (
                "-r ../secret.txt",
                "--requirement=x.txt",
                "-c https://x.example/c.txt",
                "-rx.txt",
            ),
        ),
        (
            [],
            (
                "--pre",
                "--trusted-host x.example",
                "-e .",
                "--hash=sha256:00",
                "--require-hashes",
            ),
        ),
        (
            ["requirements.txt:1: ignored options that the bot does not understand"],
            ("-f", "-f 'open", "--find-links"),
        ),
    ):
        for option in options:
            sought_pin = sought(tmp_path, f"{option}\n{PIN}\n")
            assert (
                sought_pin.spec,
                sought_pin.places,
                notes(sought_pin, tmp_path),
            ) == (PIN, Places(), expected_notes)


def test_where_another_file_may_have_the_pin_the_first_that_is_named_is_reported(
    tmp_path: Path,
) -> None:
    expected = (
        "pins no iree-base-compiler, and the bot does not read the file that is"
        " included here "
    )
    expected += "(name the file with the pin)"
    for text, line in (
        ("numpy\n-r pins.txt\n-c more.txt\n", 2),
        ("--no-index\n-f .\n--constraint=pins.txt", 3),
    ):
        assert refusal(tmp_path, text) == f":{line}: {expected}"
    assert ":3: iree-base-compiler is not pinned to" in refusal(
        tmp_path, "-r a.txt\n\niree-base-compiler\n"
    )
    assert ":3: pins 3.13.0 and 3.13.0.1 of" in refusal(
        tmp_path, f"-r a.txt\n{PIN}\n{PIN}.1\n"
    )


def test_a_variable_of_the_environment_is_not_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    sought_pin = sought(tmp_path, f"-f https://iree.dev/${{TOKEN}}/links.html\n{PIN}\n")
    assert sought_pin.places.find_links == ("https://iree.dev/${TOKEN}/links.html",)
    assert os.environ["TOKEN"] not in repr(sought_pin)


# Digests of the wheel.


def test_the_digests_of_a_pin_are_those_of_its_release(tmp_path: Path) -> None:
    first_digest = f"sha256:{'0' * 64}"
    second_digest = f"sha512:{'1' * 128}"
    hashes = (("3.13.0", first_digest), ("3.13.0", second_digest))
    for text in (
        f"{PIN} --hash={first_digest} --hash={second_digest}\n",
        (
            f"numpy==2.0 \\\n    --hash=sha256:ff\n{PIN} \\\n    --hash={first_digest} \\\n   "
            f" --hash {second_digest}\n"
        ),
        f"{PIN} --hash={first_digest}\n{PIN} --hash={second_digest}  # both\n",
    ):
        sought_pin = sought(tmp_path, text)
        assert (sought_pin.spec, sought_pin.places.hashes) == (PIN, hashes), text
    assert sought(tmp_path, f"{PIN}  # --hash={first_digest}\n").places.hashes == ()


def test_a_digest_that_pip_does_not_allow_is_refused(tmp_path: Path) -> None:
    for digest in ("md5:00", "sha256:xyz", "00"):
        line = refusal(tmp_path, f"numpy\n{PIN} --hash={digest}\n")
        assert line.startswith(
            f":2: '{digest}' is not a digest that pip accepts (write --hash=sha256:"
        )
