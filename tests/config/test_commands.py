"""bot.config.events: the commands of comments, and what is refused."""

from __future__ import annotations

import re

import pytest
from growth import LINEAR, cpu_growth
from hypothesis import example, given
from hypothesis import strategies as st

from bot.config.events import HELP, MAX_REASON, parse_command
from bot.core.context import Command


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/code-size rerun", Command("rerun")),
        ("/code-size\trerun  ", Command("rerun")),
        ("/code-size rerun\r\nthank you", Command("rerun")),
        ("/code-size rerun\naccept all", Command("rerun")),
        ("/code-size rerun\r/code-size help", Command("rerun")),
        ("/code-size help", Command("help")),
        ("/code-size help me", Command("help")),
        ("/code-size", Command("help")),
        ("/code-size \nrerun", Command("help")),
        ('/code-size accept "worth 4 KiB"', Command("accept", ("worth 4 KiB",))),
        ("/code-size accept 'worth it'", Command("accept", ("worth it",))),
        ("/code-size accept worth   4\tKiB", Command("accept", ("worth 4 KiB",))),
        ("/code-size accept we don't care", Command("accept", ("we don't care",))),
        ('/code-size accept see the "why" of #12', Command("accept", ('see the "why" of #12',))),
        ("/code-size accept “typed on a telephone”", Command("accept", ("typed on a telephone",))),
        ('/code-size accept "two" words', Command("accept", ('"two" words',))),
        ("/code-size accept the users'", Command("accept", ("the users'",))),
        ("/code-size accept für größere Modelle", Command("accept", ("für größere Modelle",))),
    ],
)
def test_commands(body: str, command: Command) -> None:
    assert parse_command(body) == command


@pytest.mark.parametrize(
    "body",
    [
        *("", "code-size rerun", " /code-size rerun", "\n/code-size rerun", "> /code-size rerun"),
        *("please /code-size rerun", "/code-sizes rerun", "/code-size-rerun", "/code-size\u00a0rerun"),
        *("/code-size\u2028rerun", "/code-size\x0brerun", "/Code-Size rerun", "`/code-size rerun`"),
    ],
)
def test_other_comments(body: str) -> None:
    assert parse_command(body) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("reboot", "unknown command, known are rerun, accept, help"),
        ("rerun now", "rerun takes no arguments"),
        ("compare 3.12.0 3.13.0", "unknown command"),
        ("accept", "accept needs a reason"),
        ('accept ""', "accept needs a reason"),
        ('accept " \u200b "', "accept needs a reason"),
        ("accept “”", "accept needs a reason"),
        ("accept '", "accept needs a reason"),
        ("accept " + "x" * (MAX_REASON + 1), "the reason is longer than 300 characters"),
        ("accept " + "x" * 3000, "the line is longer than 2,000 characters"),
    ],
)
def test_problems(line: str, problem: str) -> None:
    command = parse_command(f"/code-size {line}")
    assert command is not None and command.name == "help" and command.arguments == ()
    assert problem in command.problem


def test_a_reason_of_the_largest_length_and_without_control_characters() -> None:
    assert parse_command("/code-size accept " + "x" * MAX_REASON) == Command("accept", ("x" * MAX_REASON,))
    body = "/code-size accept a\x1b[31m\u202eb\x00\u2028c\x85d\ud800e"
    assert parse_command(body) == Command("accept", ("a[31mb c de",))


@pytest.mark.parametrize(("start", "piece"), [("accept ", '"'), ("help", "\n"), ("rerun", " ")])
def test_time_is_linear_in_the_length(start: str, piece: str) -> None:
    growth = cpu_growth(lambda size: f"/code-size {start}{piece * (size // len(piece))}", parse_command, 30_000)
    assert growth < LINEAR


words = st.sampled_from(["rerun", "accept", "help", "main", '"', "'", "\\", "..", "pull/1", "@a", "<b>", "\ud800"])


@given(st.one_of(st.text(), st.lists(st.one_of(words, st.text(max_size=8)), max_size=6).map(" ".join)))
@example('accept "a\\')
def test_any_comment_is_harmless(text: str) -> None:
    command = parse_command(f"/code-size {text}")
    assert command is not None
    assert command.name in ("rerun", "accept", "help")
    assert command.problem == "" or (command.name, command.arguments) == ("help", ())
    assert all(argument and argument.isprintable() and len(argument) <= MAX_REASON for argument in command.arguments)
    repr(command.arguments).encode()


@given(st.text(min_size=12, alphabet=st.characters(min_codepoint=33)))
def test_problems_do_not_repeat_the_comment(text: str) -> None:
    for line in (text, f"rerun {text}"):
        command = parse_command(f"/code-size {line}")
        assert command is not None and (text not in command.problem)


def test_help_has_an_example_of_every_command_and_each_is_one() -> None:
    examples = re.findall(r"\| `(/code-size [^`]+)` \|$", HELP, re.MULTILINE)
    parsed = [parse_command(example) for example in examples]
    assert [one.name for one in parsed if one] == ["rerun", "accept", "help"]
    assert not any(one.problem for one in parsed if one)
