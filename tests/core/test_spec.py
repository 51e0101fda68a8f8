"""bot.core.spec: one grammar for releases, wherever they are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from bot.core.spec import (
    Places,
    meant_spec,
    refused_link,
    release_of,
    requirement_of,
    without_secrets,
)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        *(
            (text, text)
            for text in (
                "3.13.0",
                "3.13.0rc20261016",
                "3.13.0.dev1+abc.1",
                "20260101.42",
            )
        ),
        *(
            (" 3.13 ", "3.13.0"),
            ("3.13.0RC1", "3.13.0rc1"),
            ("iree-base-compiler==3", "3.0.0"),
        ),
        *(
            (f"{name}==3.13.0", "3.13.0")
            for name in ("iree-base-compiler", "IREE_Base.Compiler")
        ),
        *(
            (f"iree-base-compiler{suffix}", "3.13.0")
            for suffix in (" == 3.13.0", "[onnx]==3.13.0")
        ),
        *(
            (text, None)
            for text in (
                "",
                " ",
                "main",
                "3",
                "4711",
                "12e4567",
                "v3.13.0",
                "3.13.x",
                "3.13.*",
            )
        ),
        *(
            (text, None)
            for text in (
                "3.13-fixes",
                "3.13.0/notes",
                "3.13.0,3.12.0",
                "\u0663.\u0661\u0663.\u0660",
            )
        ),
        *(
            (text, None)
            for text in (
                "iree-base-runtime==3.13.0",
                "==3.13.0",
                "snapshot.json",
                "1.json",
            )
        ),
        *(
            (f"iree-base-compiler{suffix}", None)
            for suffix in ("", ">=3.13.0", "===3.13.0", "==3.13.*")
        ),
        *(
            (f"iree-base-compiler{suffix}", None)
            for suffix in ("==3.13.0,!=3.13.1", " @ https://example.com/x.whl")
        ),
    ],
)
def test_a_release(text: str, release: str | None) -> None:
    assert release_of(text) == release


@given(st.text(max_size=40))
def test_any_text_is_a_version_or_none(text: str) -> None:
    release = release_of(text)
    assert release is None or str(Version(release)) == release == release_of(
        f"iree-base-compiler=={release}"
    )


@pytest.mark.parametrize(
    ("line", "requirement"),
    [
        ("numpy>=1  # why", "numpy>=1"),
        ("# numpy", ""),
        ("a==1 --hash=sha256:00", "a==1"),
        ("a==1 \\", "a==1"),
        ("-r other.txt", "-r other.txt"),
        ("a @ https://example.com/x#egg=a", "a @ https://example.com/x#egg=a"),
    ],
)
def test_the_requirement_of_a_line(line: str, requirement: str) -> None:
    assert requirement_of(line) == requirement


@given(st.text(max_size=60))
def test_any_text_is_a_place_or_refused_and_loses_its_secrets(text: str) -> None:
    assert refused_link(f"https://{text}") or "@" not in text.partition("/")[0]
    address = f"https://{text.replace('/', '').replace(' ', '')}@host/"
    assert any(char.isspace() for char in address) or "@" not in without_secrets(
        address
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "at https://me:pw@host/x?token=1 and https://b/c",
            "at https://host/x and https://b/c",
        ),
        ("is it a?b=c and a@b", "is it a?b=c and a@b"),
        ("https://host:8000/x@1?y", "https://host:8000/x@1"),
    ],
)
def test_what_is_reported_has_no_login(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_places_add_up_and_tell_themselves_apart() -> None:
    page = Places(("https://a/",))
    folder = Places(("dist",), no_index=True)
    combined = page + folder + page
    assert combined == Places(("https://a/", "dist"), no_index=True)
    assert combined.argv == [
        "--find-links=https://a/",
        "--find-links=dist",
        "--no-index",
    ]
    assert (
        Places().key,
        Places().changeable,
        page.changeable,
        combined.changeable,
    ) == (
        "",
        False,
        False,
        True,
    )
    assert (
        len(
            {
                place.key
                for place in (
                    Places(),
                    page,
                    folder,
                    combined,
                    Places(("https://a/",), no_index=True),
                )
            }
        )
        == 5
    )


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("3.13.0.0", "3.13.0"),
        ("3.13.0.1", "3.13.0.1"),
        ("3.14rc20261101", "3.14.0rc20261101"),
        ("3.13+abc.1", "3.13.0+abc.1"),
        ("3.13.post1", "3.13.0.post1"),
        ("1!3.13", "1!3.13.0"),
        ("iree-base-compiler==3.13", "3.13.0"),
        ("20260101.42", "20260101.42"),
    ],
)
def test_a_release_has_one_full_form(written: str, full: str) -> None:
    assert release_of(written) == full


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(
            (text, "3.11.0")
            for text in (
                "v3.11.0",
                "V3.11",
                "iree-3.11.0",
                "iree_3.11.0",
                "release-3.11.0",
            )
        ),
        *(
            (text, "3.11.0")
            for text in (
                "iree-base-compiler-3.11.0",
                "iree==3.11.0",
                "iree-base-compiler=3.11",
            )
        ),
        *(
            (text, "3.11.0")
            for text in (
                "iree-base-compiler>=3.11.0",
                "IREE 3.11.0",
                "iree-base-compiler@3.11.0",
            )
        ),
        ("v3.14.0rc20261101", "3.14.0rc20261101"),
        ("lastest", "latest"),
        ("nightlies", "nightly"),
        *(
            (text, "")
            for text in (
                "latest",
                "nightly",
                "3.11",
                "",
                "build",
                "dist/v3.11.0",
                "v3.11.0.json",
                "v3",
                "iree",
                "x.whl",
                "3.x",
            )
        ),
    ],
)
def test_a_release_with_a_name_in_front_is_recognised(written: str, meant: str) -> None:
    assert meant_spec(written) == meant
