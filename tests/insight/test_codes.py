"""Code is the same by its whole digest, whatever its text's length: on real kernels, called by other names."""

from __future__ import annotations

import re

import pytest
from reader_checks import fixture
from replacing import replace

from bot.core.explanation import code_differs, named_bytes
from bot.core.reading import EntryPoint, Reader
from bot.core.snapshot import Dispatch
from bot.explain.matching import Match
from bot.explain.phases import same_numbers
from bot.readers.kernel_text import METAL, PTX


def _row(entry: EntryPoint) -> Dispatch:
    return Dispatch("e", entry.name, code_bytes=entry.code_bytes, stack_bytes=entry.stack_bytes, code=entry.code)


@pytest.mark.parametrize(("reader", "name"), [(PTX, "dense.cuda.ptx"), (METAL, "dense.metal-spirv.1.metal")])
def test_the_tenth_dispatch_has_a_longer_name_and_the_same_code(reader: Reader, name: str) -> None:
    data = fixture(name)
    longer = re.sub(rb"(?<=_dispatch_)(?=\d)", b"1", data)
    for before, after in zip(reader.read(data).entry_points, reader.read(longer).entry_points, strict=True):
        base, head = _row(before), _row(after)
        assert (base.code_bytes or 0) < (head.code_bytes or 0), "the exact figure of each is measured"
        assert code_differs(base, head) is False and same_numbers(base, head)
        bytes_more = (head.code_bytes or 0) - (base.code_bytes or 0)
        assert named_bytes(Match(base, head, "same-source")) == bytes_more > 0
        short = replace(base, code=(base.code or "")[:4])
        assert code_differs(short, head) is False


def test_of_other_or_unknown_code_no_bytes_are_of_names() -> None:
    base = Dispatch("e", "n", code_bytes=10, code="a" * 43)
    for head in (replace(base, code="b" * 43, code_bytes=12), replace(base, code=None, code_bytes=12)):
        assert named_bytes(Match(base, head, "same-source")) == 0
        assert code_differs(base, head) is True and not same_numbers(base, head)
    unsized = replace(base, code_bytes=None)
    assert named_bytes(Match(base, unsized, "same-source")) == named_bytes(Match(base, None, "removed")) == 0
    assert code_differs(base, unsized) is False and not same_numbers(base, unsized)
