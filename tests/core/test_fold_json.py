"""`fold.json`: what is read is what was written, and equal audits give equal bytes."""

from __future__ import annotations

import json

import fold_factory as make
from fold_strategies import audits
from hypothesis import given
from json_rows import fold_of
from replacing import replace

from bot.core.fold import FoldAudit, fold_lines


def saved(audit: FoldAudit) -> str:
    return b"".join(fold_lines(audit)).decode()


@given(audits())
def test_what_is_read_is_what_was_written(audit: FoldAudit) -> None:
    assert fold_of(saved(audit)) == audit


def test_a_cell_is_one_line_and_the_order_of_completion_does_not_matter() -> None:
    audit = make.audit()
    text = saved(audit)
    assert saved(replace(audit, cells=audit.cells[::-1], models=audit.models[::-1])) == text
    cells = [line for line in text.splitlines() if '"target":' in line]
    assert len(cells) == len(audit.cells) == 104
    assert text.endswith("}\n") and text.splitlines()[0].startswith('{"cells":[')


def test_the_contract_of_a_cell() -> None:
    plain = json.loads(saved(make.many()))
    assert plain["schema"] == "code-size-fold/1"
    for cell in plain["cells"]:
        assert {"model", "target", "executables", "artifact_bytes", "equal", "folded", "left"} <= cell.keys()
        assert cell["executables"].keys() == cell["artifact_bytes"].keys() == {"before", "after"}
        assert cell["equal"] in (True, False, None)
    assert any(cell["equal"] is None for cell in plain["cells"])
