"""The answer to `/code-size lab`: an experiment as a comment, within GitHub's limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.core.lab import Lab
from bot.show.blocks import Block, Sentence, Span, phrase
from bot.show.comment import COMMENT_LIMIT
from bot.show.lab import lab_blocks
from bot.show.renderers import fitting_text, length
from bot.show.views import FILE

_FILES = "The files lab.md, lab.html and lab.json have everything."


def lab_comment(
    lab: Lab,
    mark: str,
    notes: Sequence[str],
    run_url: str,
    templates: Path | None = None,
) -> str:
    """Return the comment: the answer and its tables, or as much of them as fits.

    `mark`: the hidden first line; `notes`: who asked, and other important notes;
    `run_url`: the address of the run that has the files; `templates`: the user's
    templates, searched before the default ones.

    Raises TemplateError if a template does not work.
    """
    text = fitting_text(
        ("lab.md.j2", "blocks.md.j2"),
        tuple(_blocks(lab, notes=notes, run_url=run_url)),
        values=lambda blocks: {"answer": "lab", "blocks": blocks},
        limit=COMMENT_LIMIT - length(f"{mark}\n"),
        templates_dir=templates,
    )
    return f"{mark}\n{text}"


def _blocks(lab: Lab, notes: Sequence[str], run_url: str) -> Iterator[Block]:
    """Yield the heading, the notes, the answer, and where the files are."""
    heading, *blocks = lab_blocks(lab, FILE)
    yield heading
    for note in notes:
        yield Sentence(phrase(note))
    yield from blocks
    yield Sentence(phrase(f"{_FILES} See the ", Span("workflow run", to=run_url), "."))
