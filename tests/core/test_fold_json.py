"""`fold.json`: what is read is what was written, equal audits give equal bytes, and what is foreign is refused."""

from __future__ import annotations

import json

import fold_factory as make
import pytest
from fold_strategies import audits
from hypothesis import given
from replacing import replace

from bot.core.fold import FOLD_SCHEMA, FoldAudit
from bot.core.study_json import AUDIT_AGAIN, fold_lines, fold_of
from bot.errors import InputError


def saved(audit: FoldAudit) -> str:
    return b"".join(fold_lines(audit)).decode()


@given(audits())
def test_what_is_read_is_what_was_written(audit: FoldAudit) -> None:
    assert fold_of(saved(audit)) == audit
    assert saved(fold_of(saved(audit))) == saved(audit)


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


def edited(**changes: object) -> str:
    plain = json.loads(saved(make.many()))
    return json.dumps({**plain, **changes})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", f"f.json: is not a fold audit: it is empty ({AUDIT_AGAIN})"),
        (saved(make.many())[:300], f"f.json: is not a fold audit: it ends after 300 bytes: truncated? ({AUDIT_AGAIN})"),
        (
            edited(schema="code-size-fold/2"),
            "f.json: is not a fold audit that this version reads: its schema is 'code-size-fold/2', not "
            f"'{FOLD_SCHEMA}' ({AUDIT_AGAIN})",
        ),
        (
            '{"schema": "code-size-report/1"}',
            "f.json: is a report, a fold audit is wanted (give the fold.json of a fold)",
        ),
        (edited(weather="fine"), "object contains unknown field `weather`"),
        (edited(cells=[{"model": ""}]), "f.json: is not a fold audit: cells[0].model: expected `str` of length >= 1"),
        (edited(machine=3), "f.json: is not a fold audit: machine: expected `str`, got `int`"),
        (edited(models=[json.loads(saved(make.many()))["models"][0]] * 2), "f.json: models are not sorted and unique"),
        (edited(cells=json.loads(saved(make.many()))["cells"][::-1]), "f.json: cells are not sorted and unique"),
    ],
    ids=["empty", "cut", "version", "foreign", "field", "cell", "type", "twice", "order"],
)
def test_what_cannot_be_used_is_one_line(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        fold_of(text, "f.json")
    assert line in caught.value.line


def test_a_count_below_zero_is_refused() -> None:
    text = saved(make.many()).replace('"artifact_bytes":{"after":', '"artifact_bytes":{"after":-', 1)
    with pytest.raises(InputError, match=r"cells\[\d+\]\.artifact_bytes\.after"):
        fold_of(text)
