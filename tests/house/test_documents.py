"""What the documents say is there: files, links, metrics, causes, keys, exit codes and configurations."""

from __future__ import annotations

import re
from pathlib import Path

import documents
import pytest
import yaml
from documents import PAGES, Block, anchors, blocks, links, name_of
from generated import SCHEMAS
from places import ROOT
from test_architecture import FLOORS, SOURCES

from bot import errors
from bot.cli.init import PLACEHOLDER
from bot.cli.main import COMMANDS
from bot.config.configuration import CompilerKeys, load_config
from bot.config.events import INPUTS
from bot.config.experiments import load_experiments
from bot.core.backends import BACKEND_BY_NAME
from bot.core.delta import STATES
from bot.core.explanation import CAUSES
from bot.core.metrics import METRIC_IDS

README = ROOT / "README.md"
DOCS = ROOT / "docs"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
README_LINES = 150
ALL_PAGES = pytest.mark.parametrize("page", PAGES, ids=name_of)
COMPILER_KEYS = CompilerKeys.__struct_fields__
FOLDERS = "bot|configs|tests|docs|core|readers|config|explain|study|show"
BLOCKS = [block for page in PAGES for block in blocks(page)]


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def column(page: str) -> set[str]:
    """The names in the first column of a page's tables."""
    rows = re.findall(r"^\| (`[^|]*`|\d+) \|", text(ROOT / page), re.MULTILINE)
    return {name for row in rows for name in re.split(r"[`, ]+", row) if name}


def pages_that_links_reach(first: Path) -> set[Path]:
    """The pages that a reader of the first one finds by following links from page to page."""
    reached = {first}
    waiting = [first]
    while waiting:
        page = waiting.pop()
        for link in links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target in PAGES and target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def test_the_readme_is_short_and_leads_to_a_page_for_every_question() -> None:
    assert len(text(README).splitlines()) <= README_LINES
    assert {page for page in PAGES if page.parent == DOCS} <= pages_that_links_reach(
        README
    )


def test_the_glossary_is_sorted_and_gives_each_word_one_sentence() -> None:
    rows = re.findall(
        r"^\| (.+?) \| (.+) \|$", text(DOCS / "glossary.md"), re.MULTILINE
    )[1:]
    terms = [word for word, _ in rows]
    assert len(terms) > 50
    assert terms == sorted(set(terms), key=str.casefold)
    for word, meaning in rows:
        assert re.fullmatch(r"\S.*[^.]\.", meaning), word
        assert ". " not in meaning, f"{word} has more than one sentence"
        assert len(meaning.split()) <= 25, word


def test_the_page_about_reading_names_every_section_of_a_page_and_every_fold_of_a_comment() -> (
    None
):
    page = text(DOCS / "example" / "report.html")
    comment = text(DOCS / "example" / "comment.md")
    sections = re.findall(r"<h2[^>]*>(.*?)</h2>", page, re.DOTALL)
    folds = re.findall(r"^<details><summary>(\w.*?)</summary>", comment, re.MULTILINE)
    titles = [re.sub(r"<[^>]+>", "", title) for title in (*sections, *folds)]
    names = {re.split(r"[(:\d]", title)[0].strip() for title in titles}
    assert len(names) > 10
    reading = text(DOCS / "reading.md")
    assert [name for name in names if name not in reading] == []


def test_the_placeholder_of_the_action_is_the_same_everywhere_and_the_readme_explains_it() -> (
    None
):
    for workflow in (ROOT / "configs" / "workflows").glob("*.yml"):
        uses = re.findall(r"uses: (OWNER/\S+)", text(workflow))
        assert uses and set(uses) == {PLACEHOLDER}, workflow.name
    assert text(README).count(PLACEHOLDER) == 1


def test_every_document_names_one_path_of_the_configuration() -> None:
    for page in (README, DOCS / "tutorial.md"):
        paths = set(re.findall(r"[\w./-]*code-size\.yml", text(page)))
        assert paths == {
            ".github/code-size.yml",
            ".github/workflows/code-size.yml",
        }, page.name


def test_the_floor_plan_is_that_of_the_test() -> None:
    rows = re.findall(r"^\| (\d) \| `(\w+)` \| \S.* \|$", ARCHITECTURE, re.MULTILINE)
    assert {name: int(floor) for floor, name in rows} == FLOORS
    floors = [int(floor) for floor, _ in rows]
    assert floors == sorted(floors, reverse=True)


@ALL_PAGES
def test_every_module_and_file_that_is_named_is_there(page: Path) -> None:
    for path in re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", text(page)):
        assert (ROOT / path).exists() or (ROOT / "bot" / path).exists(), path
    for name in re.findall(
        r"`((?:core|study|compiler|explain|readers|system)\.[\w.]+)`", text(page)
    ):
        # A name may go on with a function. `test_path_of_a_request.py` checks that.
        module = ".".join(["bot", *name.split(".")[:2]])
        assert module in SOURCES or name.removeprefix("compiler.") in COMPILER_KEYS, (
            name
        )


@ALL_PAGES
def test_every_link_leads_to_a_file_of_the_repository_and_a_heading_in_it(
    page: Path,
) -> None:
    for link in links(page):
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", place):
            assert place.startswith("https://"), link
            continue
        target = (page.parent / place).resolve() if place else page
        assert target.exists() and target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link
    assert not [word for word in documents.words(page) if "][" in word], (
        "a reference lacks its address"
    )


def test_the_license_is_there_and_is_the_one_that_is_declared() -> None:
    license_text = text(ROOT / "LICENSE")
    assert "Apache License" in license_text and "Version 2.0" in license_text
    assert 'license = "Apache-2.0"' in text(ROOT / "pyproject.toml")


# Tables


def test_the_page_of_the_commands_lists_each_of_them() -> None:
    missing = set(COMMANDS) - column("docs/commands.md")
    assert not missing, "docs/commands.md has no row for these commands"


def test_every_state_cause_key_and_exit_code_is_described() -> None:
    assert column("docs/metrics.md") - set(METRIC_IDS) - set(BACKEND_BY_NAME) == set(
        STATES
    )
    assert column("docs/why.md") == set(CAUSES)
    assert column("docs/configuration.md") | {"schema"} == set(
        SCHEMAS["configs/schema.json"]["properties"]
    )
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    codes = {value.exit_code for value in classes if issubclass(value, errors.BotError)}
    assert column("README.md") == {"0", "1", *map(str, codes)}


# Blocks


def test_every_block_says_what_it_holds() -> None:
    assert {block.language for block in BLOCKS} == {
        "bash",
        "sh",
        "yaml",
        "python",
        "mlir",
        "text",
    }


@pytest.mark.parametrize(
    "block",
    [block for block in BLOCKS if block.language == "yaml"],
    ids=lambda block: f"{block.page}:{block.line}",
)
def test_every_yaml_block_is_a_configuration_or_a_step_that_is_understood(
    block: Block, tmp_path: Path
) -> None:
    data = yaml.safe_load(block.text)
    if isinstance(data, list):
        (step,) = data
        assert set(step["with"]) <= set(INPUTS)
        return
    if "experiments" in data:
        (tmp_path / "experiments.yml").write_text(block.text, encoding="utf-8")
        assert load_experiments(tmp_path / "experiments.yml")
        return
    for folder in (tmp_path / "models", tmp_path / ".github" / "models"):
        folder.mkdir(parents=True)
        (folder / "mobilenet_v1.mlir").write_text("module {}\n")
    for glob in (
        data["models"] if data.get("compiler", {}).get("kind") == "command" else ()
    ):
        path = tmp_path / ".github" / glob.replace("*", "one")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / ".github" / "code-size.yml").write_text(block.text, encoding="utf-8")
    config = load_config(tmp_path / ".github" / "code-size.yml")
    assert config.models
