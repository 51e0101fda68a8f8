"""bot.config.events: what is read of the inputs, and that action.yml and docs/github.md say the same."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from bot.config.events import COMMANDS, INPUTS, read_inputs
from bot.core.context import ActionInputs
from bot.core.delta import STATES
from bot.errors import UsageError

ACTION: dict[str, Any] = yaml.safe_load(
    (ROOT / "action.yml").read_text(encoding="utf-8")
)


def read(name: str, value: str) -> Any:
    """One input, as the runner passes it to a Docker action, and the field that it fills."""
    return getattr(
        read_inputs({f"INPUT_{name.upper()}": value}), name.replace("-", "_")
    )


# --- action.yml, docs/github.md -------------------------------------------------------------------------------------


def test_action_yml_has_the_inputs_that_are_read_and_outputs_for_every_state() -> None:
    assert list(ACTION["inputs"]) == list(INPUTS)
    assert [name.replace("-", "_") for name in INPUTS] == [
        field.name for field in dataclasses.fields(ActionInputs)
    ]
    assert all(
        entry["required"] is False and entry["description"]
        for entry in ACTION["inputs"].values()
    )
    names = [
        "verdict",
        "findings",
        "report-path",
        "comment-url",
        "matrix",
        "asked",
        "sha",
        *STATES,
    ]
    assert list(ACTION["outputs"]) == names
    described = re.search(
        r"Command to run: (.*?)\.", ACTION["inputs"]["command"]["description"]
    )
    assert described and described[1].split(", ") == list(COMMANDS)


def test_action_yml_runs_the_image_of_this_repository_and_the_token_has_no_default() -> (
    None
):
    assert ACTION["runs"] == {
        "using": "docker",
        "image": "Dockerfile",
        "args": ["action"],
    }
    assert (ROOT / "Dockerfile").is_file()
    defaults = {
        name: entry["default"]
        for name, entry in ACTION["inputs"].items()
        if entry["default"]
    }
    assert defaults == {"command": "auto"}


def inputs_table() -> str:
    rows = [
        f"| `{name}` | {entry['description']} |"
        f" {f'`{default}`' if (default := entry['default']) else ''} |"
        for name, entry in ACTION["inputs"].items()
    ]
    return "\n".join(["| input | what it is | default |", "|:--|:--|:--|", *rows])


def outputs_table() -> str:
    rows = [
        f"| `{name}` | {entry['description']} |"
        for name, entry in ACTION["outputs"].items()
    ]
    return "\n".join(["| output | what it is |", "|:--|:--|", *rows])


def between(name: str, page: str, table: str) -> str:
    """The page with the table between its markers, each on a line of its own."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    assert len(pattern.findall(page)) == 1, (
        f"docs/github.md needs <!-- {name} --> and <!-- /{name} --> once"
    )
    return pattern.sub(lambda match: f"{match[1]}{table}\n{match[2]}", page)


def test_the_page_on_github_names_every_input_and_output() -> None:
    path = ROOT / "docs" / "github.md"
    page = path.read_text(encoding="utf-8")
    expected = between(
        "outputs", between("inputs", page, inputs_table()), outputs_table()
    )
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(expected, encoding="utf-8")
        page = expected
    assert page == expected, (
        "the tables changed: UPDATE_GOLDENS=1 writes them into docs/github.md"
    )


# --- reading --------------------------------------------------------------------------------------------------------


def test_nothing_given_is_the_default_of_everything() -> None:
    assert read_inputs({}) == ActionInputs()
    assert (
        read_inputs({f"INPUT_{name.upper()}": " \n" for name in INPUTS})
        == ActionInputs()
    )


def test_everything_given() -> None:
    variables = {
        "INPUT_COMMAND": "measure",
        "INPUT_GITHUB-TOKEN": "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
        "INPUT_CONFIG": "ci/code size.yml",
        "INPUT_BASE": "3.12.0",
        "INPUT_HEAD": " refs/heads/topic ",
        "INPUT_MODELS": "bert* mobilenet_*\n",
        "INPUT_TARGETS": "vmvx\n  llvm-cpu-*\n",
        "INPUT_FLAGS": "--iree-opt-level=O2 --a='b c'\n--d=e\n",
        "INPUT_PULL-REQUEST": "1234",
        "INPUT_ASKED": "{}",
        "INPUT_SHARDS": "8",
        "INPUT_SHARD": "2/8",
        "INPUT_PLAN": '{"include": [\n]}',
        "INPUT_PARTS": "parts/*.json more.json",
        "INPUT_MEASURED": "measured",
        "INPUT_OUTCOME": "failure",
        "INPUT_BASELINES": ".code-size-data",
        "INPUT_JOBS": "4",
        "INPUT_CACHE": ".cache/code-size",
        "INPUT_OUT": "out",
        "INPUT_UNKNOWN": "ignored",
    }
    assert read_inputs(variables) == ActionInputs(
        command="measure",
        github_token="ghs_16C7e42F292c6912E7710c838347Ae178B4a",
        config="ci/code size.yml",
        base="3.12.0",
        head="refs/heads/topic",
        models=("bert*", "mobilenet_*"),
        targets=("vmvx", "llvm-cpu-*"),
        flags=("--iree-opt-level=O2", "--a=b c", "--d=e"),
        pull_request=1234,
        asked="{}",
        shards=8,
        shard=(2, 8),
        plan='{"include": [\n]}',
        parts=("parts/*.json", "more.json"),
        measured="measured",
        outcome="failure",
        baselines=".code-size-data",
        jobs=4,
        cache=".cache/code-size",
        out="out",
    )


def test_hyphens_are_kept_in_the_names_of_variables_and_every_command_is_one() -> None:
    assert read_inputs({"INPUT_PULL_REQUEST": "12"}).pull_request is None
    assert [read("command", command) for command in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "command",
            "merge",
            (
                "'merge' is not a command; known commands: auto, measure, report,"
                " store, post, plan, pages"
            ),
        ),
        ("config", "a\nb", "has more than one line"),
        ("config", "-x", "'-x' begins with a dash"),
        ("config", "x" * 256, "is longer than a path can be"),
        ("out", "ö/" * 1001, "is longer than a path can be"),
        ("base", "--upload-pack=x", "'--upload-pack=x' begins with a dash"),
        ("models", "a\x00b", "has characters that cannot be printed"),
        (
            "flags",
            "--a b",
            "'b' is not a flag: a flag begins with - and has its value after =",
        ),
        ("pull-request", "#12", "'#12' is not a number from 1 to 2147483647"),
        ("pull-request", "0", "not a number from 1"),
        ("pull-request", "١", "not a number from 1"),
        ("pull-request", "2147483648", "not a number from 1"),
        ("jobs", f"{'0' * 5000}1", "not a number from 1"),
        ("shards", "257", "'257' is not a number from 1 to 256"),
        ("outcome", "${{ x }}", "'${{ x }}' is not the result of a job"),
        ("shard", "5/4", "'5/4' is not I/N with 1 <= I <= N, such as 2/4"),
        ("plan", "{\x1b}", "has characters that cannot be printed"),
    ],
)
def test_mistakes_name_the_input_and_what_is_right(
    name: str, value: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(name, value)
    assert caught.value.where == f"input {name}"
    assert message in caught.value.what


any_text = (
    st.text(st.characters()) | st.text("019/-='\"\\ \n${{") | st.just("a" * 100_000)
)


@given(any_text)
def test_any_text_is_read_or_refused_in_one_short_line(text: str) -> None:
    for name in INPUTS:
        try:
            value = read(name, text)
        except UsageError as error:
            assert (
                error.line.startswith(f"input {name}: ")
                and error.line.isprintable()
                and len(error.line) < 200
            )
        else:
            assert name not in (
                "config",
                "base",
                "head",
                "cache",
                "out",
            ) or not value.startswith("-")
            assert name != "flags" or all(flag.startswith("-") for flag in value)


@pytest.mark.parametrize("token", ["sec ret", "sec\nret", "sec\x00ret", "secrét"])
def test_a_token_is_in_no_error_and_in_no_repr(token: str) -> None:
    with pytest.raises(UsageError) as caught:
        read("github-token", token)
    assert "sec" not in caught.value.line and caught.value.where == "input github-token"
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert "ghs_x" not in repr(read_inputs({"INPUT_GITHUB-TOKEN": "ghs_x"}))
