"""bot.config.events: values of hostile documents are what they must be, or an error that names the key."""

from __future__ import annotations

import pytest

from bot.config.events import Document, Kind
from bot.errors import InputError

SHA = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
GOOD: dict[Kind, tuple[str, ...]] = {
    "sha": (SHA,),
    "repository": ("octo/repo", "O-c_t0/.github", "octo/a.b_c-d", "octo/..."),
    "ref": ("main", "refs/heads/main", "user/x@y", "$(id)", "<b>", "größe", "a" * 300),
    "login": ("octocat", "dependabot[bot]", "short_company", "a-b"),
    "word": ("opened", "ready_for_review"),
    "url": (
        "https://api.github.com",
        "http://127.0.0.1:8080/api/v3",
        "https://ghe.example/a-b/actions/runs/1",
    ),
    "number": ("1", "007", "9223372036854775807"),
    "text": ("", "any\nthing\x00"),
}
BAD: dict[Kind, tuple[str, ...]] = {
    "sha": ("", SHA[:-1], SHA + "0", SHA.upper(), SHA + "\n", SHA[:-1] + "٣", "main"),
    "repository": (
        *(
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
    ),
    "ref": (
        *(
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
        ),
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
    "number": ("0", "", "-1", "1.0", "١", "1\n", " 1", "9" * 9999),
    "text": (),
}


def document(raw: object) -> Document:
    return Document({"a": {"b": raw}}, "document")


@pytest.mark.parametrize("kind", GOOD)
def test_reads_what_is_as_it_must_be_and_refuses_the_rest_without_repeating_it(
    kind: Kind,
) -> None:
    assert [document(text).read("a.b", kind) for text in GOOD[kind]] == [*GOOD[kind]]
    for text in BAD[kind]:
        with pytest.raises(InputError) as caught:
            document(text).read("a.b", kind)
        assert caught.value.where == "document: a.b" and caught.value.what.startswith(
            "is not "
        )
        assert len(text) < 5 or text.strip() not in caught.value.line
    wrong_values: tuple[object, ...] = (None, 1, 1.5, True, [], {}, b"main")
    for raw in wrong_values:
        with pytest.raises(InputError, match=r"document: a\.b: is (missing|not)"):
            document(raw).read("a.b", kind)


def test_ids_what_may_be_empty_and_what_is_not_there() -> None:
    assert [document(raw).read_or_empty("a.b", "sha") for raw in (None, "", SHA)] == [
        "",
        "",
        SHA,
    ]
    assert [document(raw).id("a.b") for raw in (1, (1 << 63) - 1)] == [1, (1 << 63) - 1]
    for raw in (0, -1, 1 << 63, True, 1.0, "1", None, [1]):
        with pytest.raises(
            InputError, match=r"a\.b: is (missing|not a positive integer)"
        ):
            document(raw).id("a.b")
    with pytest.raises(InputError):
        document(0).read_or_empty("a.b", "sha")
    for path in ("a.b.c", "x.y", "a"):
        with pytest.raises(InputError, match=f"^document: {path}: is "):
            document([1]).read(path, "ref")
    assert Document([], "document").get("a") is None
