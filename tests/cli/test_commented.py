"""The grammar of commands in a comment: what is read, and what is refused in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from bot.cli.commented import read_command
from bot.core.asked import COMMANDS, PREFIX, Typed
from bot.errors import UsageError


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("help", Typed("help")),
        ("  RERUN  ", Typed("rerun")),
        ("compare 3.11.0 nightly", Typed("compare", "3.11.0", "nightly")),
        (
            "compare ref:main iree-base-compiler==3.13.0",
            Typed("compare", "ref:main", "iree-base-compiler==3.13.0"),
        ),
        (
            (
                "compare --model 'bert*' base head --model m --target vmvx --flags"
                " '--iree-opt-level=O2 --a' --flags=--b=1"
            ),
            Typed(
                verb="compare",
                base="base",
                head="head",
                models=("bert*", "m"),
                targets=("vmvx",),
                flags=("--iree-opt-level=O2", "--a", "--b=1"),
            ),
        ),
        (
            "compare base\u00a0head --flags --iree-opt-level=O3",
            Typed("compare", "base", "head", flags=("--iree-opt-level=O3",)),
        ),
        (
            'accept it\'s "fine" --really',
            Typed("accept", reason='it\'s "fine" --really'),
        ),
    ],
)
def test_a_command_is_read(line: str, typed: Typed) -> None:
    assert read_command(f"/code-size {line}") == typed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "missing: a command (write /code-size help)"),
        ("acept x", "unknown command 'acept' (did you mean /code-size accept?)"),
        ("42", "unknown command '42' (write /code-size help)"),
        ("rerun now", "unexpected argument 'now' (write /code-size rerun)"),
        ("accept", "missing: the reason (write /code-size accept REASON)"),
        ("accept " + "x" * 301, "the reason is longer than 300 characters"),
        ("accept " + "x" * 2000, "is longer than 1000 characters"),
        ("help \x1b[2J", "has characters that cannot be printed"),
        ("compare", "missing: BASE, HEAD"),
        ("compare base", "missing: HEAD"),
        ("compare base head more", "unexpected argument 'more'"),
        ("compare base 'head", "a quotation mark is not closed"),
        (
            "compare base nightyl",
            "'nightyl' is not a side for a comment (did you mean nightly?)",
        ),
        ("compare base v3.13.0", "(did you mean 3.13.0?)"),
        (
            "compare base head --modle x",
            "--modle: unknown option (did you mean '--model'?)",
        ),
        (
            "compare base head --model",
            "--model: the value is missing (write --model GLOB)",
        ),
        ("compare -h", "-h: unknown option (see /code-size help)"),
    ],
)
def test_a_mistake_is_one_line_with_the_way_out(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_command(f"/code-size {line}")
    assert message in caught.value.line


@pytest.mark.parametrize(
    "side",
    [
        *(
            "/etc/passwd",
            "./dist",
            "../x",
            "dist/*.whl",
            "x.whl",
            "code-size-measured/base.json",
            "snapshot.json",
            "~",
        ),
        *(
            "https://example.org/x.whl",
            "file:///etc/passwd",
            "main",
            "HEAD~1",
            "-",
            "ref:",
            "''",
            "'ref:a b'",
            "@x",
        ),
    ],
)
def test_a_side_is_no_file_and_no_address(side: str) -> None:
    for sides in (f"{side} head", f"base {side}"):
        with pytest.raises(UsageError):
            read_command(f"/code-size compare {sides}")


@pytest.mark.parametrize(
    "flag",
    [
        *(
            "-o=x",
            "--o=x",
            "-ox",
            "--iree-hal-dump-executable-files-to=x",
            "--iree-hal-dump-executable-files-to",
        ),
        *(
            "--stack-usage-file=1",
            "--mlir-print-ir-tree-dir=1",
            "--iree-link-bitcode=x.bc",
            "--data-dir=x",
        ),
        *(
            "--iree-opt-import-parameters=x.irpa",
            "--iree-opt-export-parameters=a=x",
            "--load-pass-plugin=x.so",
        ),
        *(
            "--iree-llvmcpu-target-cpu=../x",
            "--iree-codegen-tuning-spec-path=x",
            "--iree-llvmcpu-link-embedded=false",
        ),
        *(
            "--mlir-pass-pipeline-crash-reproducer=x",
            "--iree-vm-bytecode-source-listing=x",
            "@x",
            "x.mlir",
            "--compile-to=x",
        ),
        *(
            "--iree-cuda-use-ptxas=true",
            "--iree-llvmcpu-target-triple=wasm32",
            "--iree-hal-executable-object-search-path=x",
        ),
        *("--Iree-x=1", "--unknown-option=word"),
    ],
)
def test_a_flag_that_may_read_or_write_a_file_or_start_a_program_is_refused(
    flag: str,
) -> None:
    with pytest.raises(UsageError):
        read_command(f"/code-size compare base head --flags='{flag}'")


def test_the_page_and_the_workflow_list_every_command() -> None:
    page = (ROOT / "docs" / "github.md").read_text(encoding="utf-8")
    workflow = (ROOT / "configs" / "workflows" / "code-size-commands.yml").read_text(
        encoding="utf-8"
    )
    for usage, _ in COMMANDS.values():
        assert f"| `{PREFIX} {usage}` | " in page
        assert f"\n#   {PREFIX} {usage}\n" in workflow


@given(st.sampled_from([*COMMANDS, ""]), st.text() | st.text("-'\"= abcref:.*/\\@$`"))
def test_any_text_is_read_or_refused_in_one_line(verb: str, text: str) -> None:
    try:
        typed = read_command(f"/code-size {verb} {text}")
    except UsageError as error:
        assert error.line.isprintable()
    else:
        assert all(flag.startswith("--") for flag in typed.flags)
