"""`ratchet`: a patch that tightens limits and changes nothing else; applied, there is no other."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from growth import steps
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from report_factory import cell, digest, failed, snapshot, with_metrics
from series import write

from bot.cli.main import main
from bot.cli.showing import TerminalShow
from bot.config.configuration import load_config
from bot.config.units import in_style, parse_amount
from bot.config.yaml_file import KeyPath, with_values
from bot.core.planned import PlannedCell
from bot.core.policy import Amount, LevelSpec, Rule
from bot.core.ratcheting import Evidence, Kept, Tighter, ratcheted
from bot.core.snapshot import Cell, CellKey, Outcome, Snapshot
from bot.study.prepare import Request, Work
from bot.system.processes import Cancel

Ratchet = Callable[..., tuple[int, str, str]]
Edit = Callable[[CellKey, Cell], Cell]
CONFIG = """\
schema: code-size-config/1   # a comment: limit: 96KiB
models: [models/*.mlir]
targets: [llvm-cpu-x86_64, vmvx]
thresholds:
  # What fits into the loader: limit: 96KiB, and not a byte more.
  - {name: CPU, metrics: [artifact_bytes], targets: ["llvm-cpu-*"], warn: {absolute: 1KiB}, limit: 96KiB}  # 96KiB
  - name: small models
    metrics: [artifact_bytes]
    models: [a]
    fail:
      # each one has to fit
      limit:   "128 KiB"
    warn: 5%
  - name: stack
    metrics: [stack_max_bytes]
    warn: {limit: 4096}
    fail: {limit: 8192}
  - metrics: ["*"]
"""


def git(home: Path, *words: str, text: str = "") -> str:
    done = subprocess.run(["git", "-C", home, *words], input=text.encode(), capture_output=True, check=True)
    return done.stdout.decode()


def cells_of(home: Path) -> tuple[PlannedCell, ...]:
    config = home / "code-size.yml"
    return Work(Request(config=config), load_config(config), TerminalShow(quiet=True), Cancel()).planned().cells


def unchanged(_key: CellKey, found: Cell) -> Cell:
    return found


def measured(home: Path, edit: Edit = unchanged, **figures: int) -> Snapshot:
    """What the configuration's cells have; all of them `figures`."""
    by_key = {one.key: one for one in cells_of(home)}

    def made(key: CellKey, _found: Cell) -> Cell:
        known = {"artifact_bytes": 90_112, "stack_max_bytes": 1024, **figures}
        found = with_metrics(cell(key, by_key[key].target.backend), **known)
        return edit(key, structs.replace(found, command=by_key[key].command()))

    targets = {one.key.target: one.target.backend for one in by_key.values()}
    models = {one.key.model: one.model.digest for one in by_key.values()}
    return structs.replace(snapshot("3.13.0", made, tuple(models), targets), models=models)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose configuration has loose limits."""
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.autocrlf", "false")
    (tmp_path / "models").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"models/{name}.mlir").write_text(f"module @{name} {{}}\n")
    (tmp_path / "code-size.yml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def ratchet(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Ratchet:
    """Exit code, standard output and standard error, for a snapshot."""

    def run(made: Snapshot, *arguments: str) -> tuple[int, str, str]:
        write(home / "out/head.json", made)
        code = main(["ratchet", "out", "--config", "code-size.yml", *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def applied(home: Path, text: str) -> str:
    git(home, "apply", "-", text=text)
    return (home / "code-size.yml").read_bytes().decode()


def test_the_patch_tightens_the_limits_and_changes_nothing_else(home: Path, ratchet: Ratchet) -> None:
    code, text, err = ratchet(measured(home))
    assert code == 0, err
    assert text.startswith("Limits as tight as measured with IREE 3.13.0rc20261016\n")
    assert "CPU: 96KiB -> 88KiB; the largest is artifact_bytes of b on llvm-cpu-x86_64, 90,112 B" in text
    assert "small models: 128 KiB -> 88 KiB; the largest is artifact_bytes of a on vmvx, 90,112 B" in text
    wanted = CONFIG.replace("limit: 96KiB}", "limit: 88KiB}").replace('"128 KiB"', '"88 KiB"').replace("4096}", "1024}")
    assert applied(home, text) == wanted
    code, text, err = ratchet(measured(home))
    assert (code, text) == (0, "No limit can be tighter than it is, as measured with IREE 3.13.0rc20261016\n"), err


def test_headroom_stays_and_is_not_taken_again(home: Path, ratchet: Ratchet) -> None:
    _, text, _ = ratchet(measured(home), "--headroom", "2%")
    assert "CPU: 96KiB -> 91915B;" in text, "90,112 and 2 %, rounded up, are no whole KiB"
    applied(home, text)
    _, text, _ = ratchet(measured(home), "--headroom", "2%")
    assert text.startswith("No limit can be tighter")
    code, _, err = ratchet(measured(home), "--headroom", "2")
    assert code == 2 and "--headroom: '2' is no percentage" in err


def test_headroom_loosens_no_limit(home: Path, ratchet: Ratchet) -> None:
    for limit in ("88KiB", "89KiB"):
        (home / "code-size.yml").write_text(CONFIG.replace("limit: 96KiB}", f"limit: {limit}}}"))
        _, text, _ = ratchet(measured(home), "--headroom", "2%")
        assert "CPU" not in text and "small models: 128 KiB -> 91915 B" in text, f"91,915 B are more than {limit}"


def test_a_limit_that_is_exceeded_or_met_stays(home: Path, ratchet: Ratchet) -> None:
    _, text, _ = ratchet(measured(home, artifact_bytes=140_000, stack_max_bytes=4096))
    assert text.startswith("No limit can be tighter") and "diff --git" not in text


def test_of_two_limits_the_one_is_tightened_that_comes_first(home: Path, ratchet: Ratchet) -> None:
    _, text, _ = ratchet(measured(home, stack_max_bytes=5000))
    assert "stack: 8192 -> 5000;" in text and "4096" not in text.partition("diff --git")[0]
    assert "fail: {limit: 5000}" in applied(home, text)


def only(*changed: str, by: Edit) -> Edit:
    return lambda key, found: by(key, found) if key.model in changed and key.target == "vmvx" else found


DOUBTS: dict[str, tuple[Edit, str]] = {
    "failed": (lambda _, found: failed(found, "error: no"), "a on vmvx was not measured: error: no"),
    "unstable": (
        lambda _, found: structs.replace(found, others=(Outcome("ok", found.metrics, "e" * 64),)),
        "a on vmvx is not deterministic: the same command gives other artifacts",
    ),
    "flags": (
        lambda _, found: structs.replace(found, command=found.command.replace(" -o", " --iree-opt-level=O2 -o")),
        "a on vmvx was measured with other flags",
    ),
    "unknown": (
        lambda _, found: structs.replace(
            with_metrics(found, artifact_bytes=None), reasons={"artifact_bytes": "cut off"}
        ),
        "artifact_bytes of a on vmvx is not known: cut off",
    ),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_no_limit_is_tightened_without_every_cell_and_the_reason_is_told(
    home: Path, ratchet: Ratchet, doubt: str
) -> None:
    by, why = DOUBTS[doubt]
    _, text, _ = ratchet(measured(home, only("a", by=by)))
    assert f"small models (line 7): {why}" in text.partition("Left as they are:")[2], text
    assert "small models: " not in text and "CPU: 96KiB -> 88KiB" in text, "other rules are not hindered by it"
    assert '"128 KiB"' in applied(home, text)


def test_a_snapshot_of_fewer_cells_or_another_model_proves_nothing(home: Path, ratchet: Ratchet) -> None:
    whole = measured(home)
    _, text, _ = ratchet(structs.replace(whole, cells=whole.cells[:-1]))
    assert "b on vmvx is not in the snapshot" in text and "stack: " not in text
    _, text, _ = ratchet(structs.replace(whole, models={**whole.models, "a": digest("other")}))
    assert "was measured with another text of the model" in text and "diff --git" not in text


def test_line_ends_and_the_end_of_the_file_stay(home: Path, ratchet: Ratchet) -> None:
    text = CONFIG.rstrip("\n").replace("\n", "\r\n")
    (home / "code-size.yml").write_bytes(text.encode())
    _, changed, _ = ratchet(measured(home), "--out", "limits.patch")
    assert changed == ""
    git(home, "apply", "limits.patch")
    wanted = text.replace("limit: 96KiB}", "limit: 88KiB}").replace('"128 KiB"', '"88 KiB"').replace("4096}", "1024}")
    assert (home / "code-size.yml").read_bytes().decode() == wanted


def test_a_report_or_a_directory_stands_for_its_snapshot_and_the_patch_is_of_the_top(
    home: Path, ratchet: Ratchet, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (home / ".github").mkdir()
    (home / ".github/code-size.yml").write_text(CONFIG.replace("models/*", "../models/*"))
    _, whole, _ = ratchet(measured(home), "--config", ".github/code-size.yml")
    assert "diff --git a/.github/code-size.yml b/.github/code-size.yml" in whole
    write(home / "alone/snapshot.json", measured(home))
    (home / "out/report.json").touch()
    for named in ("out/head.json", "out/report.json", "alone", "alone/snapshot.json"):
        assert main(["ratchet", named]) == 0
        assert capfdbinary.readouterr().out.decode() == whole
    git(home, "apply", "-", text=whole)
    assert main(["ratchet", "nothing"]) == main(["ratchet", "models"]) == 2
    said = capfdbinary.readouterr().err.decode()
    assert "nothing: cannot be read" in said and "models/head.json: cannot be read" in said


@pytest.mark.parametrize(
    ("config", "words"),
    [("default", "the packaged configuration is not for you to change"), ("plain.yml", "has no thresholds of its own")],
)
def test_there_has_to_be_a_file_with_thresholds(home: Path, ratchet: Ratchet, config: str, words: str) -> None:
    (home / "plain.yml").write_text("schema: code-size-config/1\nmodels: [models/*.mlir]\n")
    code, _, err = ratchet(measured(home), "--config", config)
    assert code == 2 and words in err.splitlines()[-1]


KEYS = [CellKey(model, target) for model in ("a", "b") for target in ("cuda", "vmvx")]


@given(
    st.lists(st.integers(0, 1 << 30), min_size=4, max_size=4),
    st.lists(st.integers(0, 1 << 30), min_size=1, max_size=3),
    st.integers(0, 50),
)
def test_never_looser_never_below_a_value_once_is_enough(values: list[int], limits: list[int], percent: int) -> None:
    figures = dict(zip(KEYS, values, strict=True))
    made = snapshot(
        "1", lambda key, found: with_metrics(found, executables=figures[key]), ("a", "b"), {"cuda": "", "vmvx": ""}
    )
    rules = [rule_of(str(place), limit) for place, limit in enumerate(limits)]
    rules = [structs.replace(rule, models=("a",)) if rule.name == "0" else rule for rule in rules]
    evidence, headroom = Evidence(made, KEYS, {}), Fraction(percent, 100)
    found = list(ratcheted(rules, evidence, headroom))
    for one in found:
        if isinstance(one, Tighter):
            assert figures[one.key] == one.value <= one.limit < one.old.value
            assert one.value == max(figures[key] for key in KEYS if (key.model == "a") == (one.place == 0))
            rules[one.place] = rule_of(str(one.place), one.limit, rules[one.place])
        else:
            assert one == Kept(rules[2], "it decides nothing that has a value")
    assert not any(isinstance(one, Tighter) for one in ratcheted(rules, evidence, headroom))


def rule_of(name: str, limit: int, like: Rule | None = None) -> Rule:
    level = LevelSpec(limit=Amount(limit, "own", str(limit)))
    return structs.replace(like, fail=level) if like else Rule(name, ("executables",), fail=level)


@pytest.mark.parametrize(
    ("text", "value", "new"),
    [
        ("96KiB", 90_112, "88KiB"),
        ("96KiB", 90_113, "90113B"),
        ("1.5MiB", 1 << 20, "1MiB"),
        ("1.5s", 1_200, "1200ms"),
        ("120", 7, "7"),
        ("96 KiB", 2048, "2 KiB"),
        ("5B", 4, "4B"),
        ("2 MiB", 1_000_000, "1000000 B"),
    ],
)
def test_an_amount_keeps_its_unit_where_that_is_exact(text: str, value: int, new: str) -> None:
    assert in_style(text, value) == new
    assert parse_amount(new).value == value and parse_amount(new).dimension == parse_amount(text).dimension


def test_a_value_that_cannot_be_found_is_for_a_person(home: Path, ratchet: Ratchet) -> None:
    (home / "code-size.yml").write_text(CONFIG.replace('"128 KiB"', '"1\\x328 KiB"'))
    _, text, _ = ratchet(measured(home))
    assert "small models (line 7): is written in a way that cannot be edited" in text.partition("Left as they are")[2]
    assert "CPU: 96KiB -> 88KiB" in text and '"1\\x328 KiB"' in applied(home, text)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.data())
def test_of_equal_values_the_right_ones_are_replaced(values: list[int], data: st.DataObject) -> None:
    changed: Mapping[int, int] = data.draw(
        st.dictionaries(st.integers(0, len(values) - 1), st.integers(1, 400), min_size=1)
    )
    text = "\n".join(f"k{at}: {value} # {value}" for at, value in enumerate(values))
    lines = [f"k{at}: {changed.get(at, value)} # {value}" for at, value in enumerate(values)]
    new: dict[KeyPath, str] = {(f"k{place}",): str(value) for place, value in changed.items()}
    assert with_values(Path("x.yml"), text, new) == ("\n".join(lines), {})


def test_the_work_grows_with_the_number_of_equal_limits(home: Path) -> None:
    """Every second rule has cells that are not known, so that of equal texts some stay."""

    def work(number: int) -> int:
        for path in (home / "models").iterdir():
            path.unlink()
        for at in range(number):
            (home / f"models/m{at:03}.mlir").write_text(f"module @m{at} {{}}\n")
        rules = [f"  - {{metrics: [artifact_bytes], models: [m{at:03}], limit: 96KiB}}\n" for at in range(number)]
        head = CONFIG.partition("thresholds:")[0].replace("llvm-cpu-x86_64, ", "")
        (home / "code-size.yml").write_text(f"{head}thresholds:\n{''.join(rules)}  - metrics: ['*']\n")
        made = measured(home, lambda key, found: failed(found, "no") if int(key.model[1:]) % 2 else found)
        write(home / "out/head.json", made)
        count = steps(lambda: main(["ratchet", "out", "--out", "limits.patch"]))
        assert (home / "limits.patch").read_text().count("96KiB -> 88KiB") == number / 2
        return count

    fixed = work(10)
    assert work(70) - fixed < 2.2 * (work(40) - fixed)
