"""Digests of device code."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.readers.code.code_digest import code_digest, fingerprint, without_name, without_ordinals


@given(st.lists(st.binary(max_size=9), max_size=4))
def test_a_digest_is_the_start_of_sha_256_over_framed_pieces(pieces: list[bytes]) -> None:
    framed = b"".join(len(piece).to_bytes(8, "little") + piece for piece in pieces)
    assert fingerprint(*pieces) == hashlib.sha256(framed).digest()
    assert code_digest(*pieces) == base64.urlsafe_b64encode(fingerprint(*pieces)).decode()[:43]


def test_where_pieces_end_counts() -> None:
    assert code_digest(b"ab", b"c") != code_digest(b"a", b"bc") != code_digest(b"abc")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("main_dispatch_12_matmul_4x8_f32", "main_dispatch__matmul_4x8_f32"),
        ("main$async_dispatch_3", "main$async_dispatch_"),
        ("expf", "expf"),
        ("dispatch_3", "dispatch_3"),
    ],
)
def test_ordinals_of_dispatches_go(name: str, found: str) -> None:
    assert without_ordinals(name) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b".entry k(.param k_param_0) { ld [k_param_0]; }", b".entry @(.param @_param_0) { ld [@_param_0]; }"),
        (b"kernel void k(kk a) { $k = k_1 + x.k; } k", b"kernel void @(kk a) { $k = k_1 + x.k; } @"),
    ],
)
def test_a_name_goes_as_a_whole(text: bytes, found: bytes) -> None:
    assert without_name(text, b"k") == found
