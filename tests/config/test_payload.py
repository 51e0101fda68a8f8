"""bot.config.events: values of hostile documents are what they must be, or an error that names the key."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.config.events import Kind, Value
from bot.errors import InputError

SHA = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
GOOD: dict[Kind, tuple[str, ...]] = {
    "sha": (SHA,),
    "repository": ("octo/repo", "O-c_t0/.github", "octo/a.b_c-d", "octo/..."),
    "ref": ("main", "refs/heads/main", "user/x@y", "$(id)", "<b>", "größe", "a" * 300),
    "login": ("octocat", "dependabot[bot]", "short_company", "a-b"),
    "word": ("opened", "ready_for_review"),
    "url": ("https://api.github.com", "http://127.0.0.1:8080/api/v3", "https://ghe.example/a-b/actions/runs/1"),
    "text": ("", "any\nthing\x00"),
}
BAD: dict[Kind, tuple[str, ...]] = {
    "sha": ("", SHA[:-1], SHA + "0", SHA.upper(), SHA + "\n", SHA[:-1] + "٣", "main"),
    "repository": (
        "",
        "octo",
        "octo/",
        "/name",
        "octo/..",
        "octo/.",
        "a/b/c",
        "octo/re po",
        "-o/r",
        "o/r\n",
        "ö/r",
        "o/ü",
    ),
    "ref": (
        "",
        "-x",
        "a..b",
        "a b",
        "a\nb",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "a@{1}",
        "\u202emain",
        "a\ud800",
        "a" * 301,
        "main\n",
        "a\x7f",
        "a\u2028b",
    ),
    "login": ("", "a b", "@octocat", "octocat[bot", "[bot]", "a\n", "x" * 101, "ä"),
    "word": ("", "Opened", "a b", "::set-output", "a\n", "x" * 61),
    "url": (
        "",
        "javascript:alert(1)",
        "https://",
        "https://a b",
        "https://a/<b>",
        "https://a/)",
        "https://a\n",
        "ftp://a",
    ),
    "text": (),
}


def pairs(table: dict[Kind, tuple[str, ...]]) -> list[tuple[Kind, str]]:
    return [(kind, text) for kind, texts in table.items() for text in texts]


def value(raw: object) -> Value:
    return Value({"a": {"b": raw}}, "document").at("a", "b")


@pytest.mark.parametrize(("kind", "text"), pairs(GOOD))
def test_reads_what_is_as_it_must_be(kind: Kind, text: str) -> None:
    assert value(text).read(kind) == text


@pytest.mark.parametrize(("kind", "text"), pairs(BAD))
def test_refuses_without_repeating_the_value(kind: Kind, text: str) -> None:
    with pytest.raises(InputError) as caught:
        value(text).read(kind)
    assert caught.value.where == "document: a.b"
    assert caught.value.what.startswith("is not ")
    assert len(text) < 5 or text.strip() not in caught.value.line


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("raw", [None, 1, 1.5, True, [], {}, b"main"])
def test_other_types_are_no_text(kind: Kind, raw: object) -> None:
    with pytest.raises(InputError, match=r"document: a\.b: is (missing|not)"):
        value(raw).read(kind)


def test_empty_is_allowed_only_where_asked_for() -> None:
    assert [value(raw).read_or_empty("sha") for raw in (None, "", SHA)] == ["", "", SHA]
    with pytest.raises(InputError):
        value(0).read_or_empty("sha")
    with pytest.raises(InputError):
        value("main").read_or_empty("sha")


def test_ids_are_positive_integers() -> None:
    assert [value(raw).id() for raw in (1, (1 << 63) - 1)] == [1, (1 << 63) - 1]
    for raw in (0, -1, 1 << 63, True, 1.0, "1", None, [1]):
        with pytest.raises(InputError, match=r"a\.b: is (missing|not a positive integer)"):
            value(raw).id()


def test_numbers_are_positive_integers_in_digits() -> None:
    assert [value(raw).number() for raw in ("1", "007", "9223372036854775807")] == [1, 7, (1 << 63) - 1]
    bad: list[object] = ["0", "", "-1", "1.0", "١", "9223372036854775808", "1\n", " 1", 1, None, "9" * 9999]
    for raw in bad:
        with pytest.raises(InputError):
            value(raw).number()


def test_flags() -> None:
    assert [value(raw).flag() for raw in (True, False, None)] == [True, False, False]
    bad: list[object] = [0, 1, "true", []]
    for raw in bad:
        with pytest.raises(InputError, match="neither true nor false"):
            value(raw).flag()


def test_the_place_is_where_the_document_ends() -> None:
    document = Value({"a": {"b": None, "c": [1]}}, "document")
    assert document.at("a", "b").missing and document.at("x").missing
    for keys, line in (
        (("a", "b", "c"), "document: a.b: is missing"),
        (("x", "y", "z"), "document: x: is missing"),
        (("a", "c", "d"), "document: a.c: is no object"),
    ):
        with pytest.raises(InputError) as caught:
            document.at(*keys)
        assert caught.value.line == line
    with pytest.raises(InputError, match="document: top level: is no object"):
        Value([], "document").at("a")


@given(st.text(max_size=80), st.sampled_from([kind for kind in GOOD if kind != "text"]))
@example("a\u0085b", "ref")
def test_what_is_read_is_one_printable_word(text: str, kind: Kind) -> None:
    try:
        read = value(text).read(kind)
    except InputError:
        return
    assert read == text and read.isprintable() and read.split() == [read]
    assert not read.startswith("-")
    read.encode()
