"""bot.config.yaml_file: plain values with lines.

Everything dangerous or ambiguous is one clear error.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.config.yaml_file import MAX_BYTES, MAX_DEPTH, key_text, read_yaml
from bot.errors import ConfigError

EXAMPLE = """\
# a comment
text: iree
numbers: [1, 2.5,
          -3]
nested:
  deep:
    - name: a
      on_date: 2020-01-01
    - name: b
nothing:
truth: true
"""


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "c.yml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def message(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    return caught.value.line.replace(str(path), "c.yml")


def test_values_are_plain_and_dates_stay_text(tmp_path: Path) -> None:
    assert read_yaml(write(tmp_path, EXAMPLE)).data == {
        "text": "iree",
        "numbers": [1, 2.5, -3],
        "nested": {"deep": [{"name": "a", "on_date": "2020-01-01"}, {"name": "b"}]},
        "nothing": None,
        "truth": True,
    }


def test_every_value_has_its_line(tmp_path: Path) -> None:
    file = read_yaml(write(tmp_path, EXAMPLE))
    assert file.line(("text",)) == 2
    assert file.line(("numbers", 2)) == 4
    assert file.line(("nested", "deep", 0, "on_date")) == 8
    assert file.line(("nested", "deep", 1)) == 9
    assert file.line(("nested", "deep", 1, "absent", "deeper")) == 9, (
        "the nearest value around it"
    )
    assert file.line(("absent",)) == 2, "the mapping itself"


def test_an_error_names_file_line_and_key(tmp_path: Path) -> None:
    path = write(tmp_path, EXAMPLE)
    error = read_yaml(path).error(("nested", "deep", 1, "name"), "is bad", "hint it")
    assert error.line == f"{path}:9: nested.deep[1].name: is bad (hint it)"
    assert (key_text(("thresholds", 2, "warn", "absolute")), key_text(())) == (
        "thresholds[2].warn.absolute",
        "",
    )
    assert read_yaml(write(tmp_path, b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")).data == {
        "a": 1,
        "b": 2,
    }
    assert message(tmp_path) == "c.yml: cannot be read: Is a directory"
    assert (
        message(tmp_path / "none.yml")
        == "c.yml: cannot be read: No such file or directory"
    )


YAML_HINT = " (check the brackets, quotes and indentation)"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "a: 1\n---\nb: 2\n",
            "c.yml:2: a second document begins here (keep one document per file)",
        ),
        (
            "a: 1\n---\n",
            "c.yml:2: a second document begins here (keep one document per file)",
        ),
        ("", "c.yml:1: is empty (begin with 'schema: code-size-config/1')"),
        (
            "a: &x [1]\n",
            "c.yml:1: anchors and aliases are not allowed (repeat the value instead)",
        ),
        (
            "a: 1\nb: *x\n",
            "c.yml:2: anchors and aliases are not allowed (repeat the value instead)",
        ),
        (
            "a: !!str 1\n",
            (
                "c.yml:1: the tag 'tag:yaml.org,2002:str' is not allowed (write a plain"
                " value)"
            ),
        ),
        ("a: ! 1\n", "c.yml:1: the tag '!' is not allowed (write a plain value)"),
        (
            "a: 1\nb: 2\na: 3\n",
            "c.yml:3: a: repeats the key of line 1 (keep one of them)",
        ),
        (
            "x:\n  a: 1\n  a: 1\n",
            "c.yml:3: x.a: repeats the key of line 2 (keep one of them)",
        ),
        ("? [a]\n: 1\n", "c.yml:1: a key is text, not a list or a mapping"),
        ("a: 1\nb: 'x\x01'\n", "c.yml:2: the character U+0001 is not allowed"),
        (
            "a: 1\nb: [1\n",
            "c.yml:2: is not YAML: expected ',' or ']', but got '<stream end>'"
            + YAML_HINT,
        ),
        (
            "a: 1\n b: 1\n",
            "c.yml:2: is not YAML: mapping values are not allowed here" + YAML_HINT,
        ),
        (
            b"a: 1\nb: caf\xe9\n",
            "c.yml:2: byte 0xe9 is not UTF-8 (save the file as UTF-8)",
        ),
        (
            "a: 1\n".encode("utf-16"),
            "c.yml:1: byte 0xff is not UTF-8 (save the file as UTF-8)",
        ),
        (b"#" * (MAX_BYTES + 1), "c.yml: is larger than 1,048,576 bytes"),
    ],
)
def test_refused(tmp_path: Path, text: str | bytes, line: str) -> None:
    assert message(write(tmp_path, text)) == line


@pytest.mark.parametrize(
    "word",
    [
        *(
            "0100",
            "-010",
            "0o17",
            "0x10",
            "1:30",
            "1:30.5",
            "1_000",
            "1e3",
            ".5",
            ".inf",
            ".nan",
            "1e999",
            "0b_",
        ),
        *(
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "2020-01-01",
            "0100KiB",
            "1.2.3",
            "3.13.0",
            "1e",
            "=",
            "<<",
        ),
        *("1" + ":1" * 400_000, "9" * 900_000),
    ],
)
def test_what_not_all_read_as_one_number_or_switch_is_the_text_that_was_written(
    tmp_path: Path, word: str
) -> None:
    assert read_yaml(write(tmp_path, f"a: {word}\n'b': '3'\n")).data == {
        "a": word,
        "b": "3",
    }


@given(st.from_regex(r"[-+]?[0-9a-fox_.:eE]{1,8}", fullmatch=True))
def test_a_number_that_is_taken_is_decimal(
    tmp_path_factory: pytest.TempPathFactory, written: str
) -> None:
    try:
        value = read_yaml(write(tmp_path_factory.getbasetemp(), f"a: {written}\n")).data
    except ConfigError:
        return
    if isinstance(value, dict) and isinstance(value["a"], int | float):
        assert Fraction(str(value["a"])) == Fraction(written)


def test_deep_nesting_is_refused_before_it_exhausts_the_stack(tmp_path: Path) -> None:
    assert (
        message(write(tmp_path, "[" * 900_000))
        == "c.yml:1: is nested more than 32 levels deep"
    )
    deepest = "[" * (MAX_DEPTH - 1) + "1" + "]" * (MAX_DEPTH - 1)
    assert read_yaml(write(tmp_path, deepest)).data is not None
    assert (
        message(write(tmp_path, f"[{deepest}]"))
        == "c.yml:1: is nested more than 32 levels deep"
    )
    assert read_yaml(write(tmp_path, "a:\n" + "- [[1]]\n" * 100)).data == {
        "a": [[[1]]] * 100
    }


@given(st.text(max_size=60) | st.text("[]{}:-&*!|>'\"%@`#,? \n\tab0", max_size=40))
@settings(max_examples=150)
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = write(tmp_path_factory.getbasetemp(), text.encode("utf-8", "surrogatepass"))
    try:
        file = read_yaml(path)
    except ConfigError as error:
        assert error.line.startswith(f"{path}:")
    else:
        assert set(file.lines.values()) <= set(range(1, len(text.splitlines()) + 2))
