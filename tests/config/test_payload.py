"""bot.config.events: values of hostile documents are what they must be, or an error that names the key."""

from __future__ import annotations

import pytest

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
        *("", "octo", "octo/", "/name", "octo/..", "octo/.", "a/b/c", "octo/re po", "-o/r", "o/r\n", "ö/r", "o/ü"),
    ),
    "ref": (
        *("", "-x", "a..b", "a b", "a\nb", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a@{1}", "\u202emain"),
        *("a\ud800", "a" * 301, "main\n", "a\x7f", "a\u2028b", "a\u0085b"),
    ),
    "login": ("", "a b", "@octocat", "octocat[bot", "[bot]", "a\n", "x" * 101, "ä"),
    "word": ("", "Opened", "a b", "::set-output", "a\n", "x" * 61),
    "url": (
        *(
            "",
            "javascript:alert(1)",
            "https://",
            "https://a b",
            "https://a/<b>",
            "https://a/)",
            "https://a\n",
            "ftp://a",
        ),
    ),
    "text": (),
}


def value(raw: object) -> Value:
    return Value({"a": {"b": raw}}, "document").at("a", "b")


@pytest.mark.parametrize("kind", GOOD)
def test_reads_what_is_as_it_must_be_and_refuses_the_rest_without_repeating_it(kind: Kind) -> None:
    assert [value(text).read(kind) for text in GOOD[kind]] == [*GOOD[kind]]
    for text in BAD[kind]:
        with pytest.raises(InputError) as caught:
            value(text).read(kind)
        assert caught.value.where == "document: a.b" and caught.value.what.startswith("is not ")
        assert len(text) < 5 or text.strip() not in caught.value.line
    others: tuple[object, ...] = (None, 1, 1.5, True, [], {}, b"main")
    for raw in others:
        with pytest.raises(InputError, match=r"document: a\.b: is (missing|not)"):
            value(raw).read(kind)


def test_numbers_flags_and_what_may_be_empty() -> None:
    assert [value(raw).read_or_empty("sha") for raw in (None, "", SHA)] == ["", "", SHA]
    assert [value(raw).id() for raw in (1, (1 << 63) - 1)] == [1, (1 << 63) - 1]
    assert [value(raw).number() for raw in ("1", "007", "9223372036854775807")] == [1, 7, (1 << 63) - 1]
    assert [value(raw).flag() for raw in (True, False, None)] == [True, False, False]
    digits: list[object] = ["0", "", "-1", "1.0", "١", "9223372036854775808", "1\n", " 1", 1, None, "9" * 9999]
    wrong: list[tuple[str, list[object]]] = [
        ("id", [0, -1, 1 << 63, True, 1.0, "1", None, [1]]),
        ("number", digits),
        ("flag", [0, 1, "true", []]),
    ]
    for kind, values in wrong:
        for raw in values:
            with pytest.raises(InputError, match=r"a\.b: is (missing|not|neither true nor false)"):
                getattr(value(raw), kind)()
    for raw in (0, "main"):
        with pytest.raises(InputError):
            value(raw).read_or_empty("sha")


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
