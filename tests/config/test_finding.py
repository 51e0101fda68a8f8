"""bot.config: the configuration that is found where nobody names one, and flags that are written as one text."""

from __future__ import annotations

from pathlib import Path

import pytest
from github_runner import git

from bot.config.configuration import CONFIG_NAMES, chosen_config, find_config
from bot.config.targets import parse_flags
from bot.errors import ConfigError


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("schema: code-size-config/1\n", encoding="utf-8")


def test_a_configuration_is_looked_for_up_to_the_top_of_the_repository_and_no_further(
    tmp_path: Path,
) -> None:
    assert find_config(tmp_path) is None
    for name in CONFIG_NAMES[::-1]:
        folder = tmp_path / f"in {name.replace('/', ' ')}"
        below = folder / "top" / "compiler" / "tests"
        below.mkdir(parents=True)
        put(folder / name)
        assert find_config(folder) == Path(name) and find_config(below) is None, (
            "outside a repository nothing above"
        )
        git(folder / "top", "init", "--quiet")
        assert find_config(below) is None
        put(folder / "top" / name)
        assert find_config(below) == Path("../..") / name
        put(folder / "top" / "compiler" / name)
        assert find_config(below) == Path("..") / name
        put(tmp_path / name)
        assert find_config(tmp_path) == Path(name), "of both the one that GitHub takes"


def test_what_was_taken_is_said_unless_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.chdir(tmp_path)
    assert chosen_config(None, messages.append) is None
    put(tmp_path / "code-size.yml")
    assert chosen_config(None, messages.append) == Path("code-size.yml")
    assert chosen_config(Path("default"), messages.append) is None
    assert chosen_config(Path("code-size.yml"), messages.append) == Path(
        "code-size.yml"
    )
    assert messages == [
        "configuration: the packaged suite",
        "configuration: code-size.yml",
    ]
    put(tmp_path / "default")
    assert chosen_config(Path("default"), messages.append) == Path("default")


def test_one_that_is_not_there_names_the_places(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        chosen_config(tmp_path / "none.yml", print)
    assert all(
        name in caught.value.line
        for name in (str(tmp_path / "none.yml"), *CONFIG_NAMES, "quick")
    )


def test_flags_are_words_of_a_shell_and_refused_in_one_line_as_a_configuration_does() -> (
    None
):
    for text, flags in (
        ("--iree-opt-level=O2", ("--iree-opt-level=O2",)),
        ("--a='x y' --b", ("--a=x y", "--b")),
        ("--a\n\n--b=1", ("--a", "--b=1")),
        ("", ()),
    ):
        assert parse_flags(text) == flags
    for text, expected in (
        ("O2", "'O2' is not a flag: a flag begins with - and has its value after ="),
        ("--a x", "'x' is not a flag"),
        ("--a='x", "a quotation mark is not closed"),
        (
            "--a='x\ty'",
            "'--a=x\\ty' does not fit: a flag begins with - and is on one line",
        ),
        ("-", "'-' does not fit: a flag begins with - and is on one line"),
    ):
        with pytest.raises(ValueError) as caught:
            parse_flags(text)
        assert str(caught.value).startswith(expected)
