"""The page of an experiment: its tables, sortable, with a picture of each, in one file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from bot.core.lab.lab_sums import fits, sums
from bot.core.lab.lab_values import Lab
from bot.render.html.skeleton import skeleton
from bot.render.lab.lab_pictures import pictures
from bot.render.lab.lab_view import LabRoom, lab_view
from bot.render.text.environment import drawn, load

TEMPLATE = "lab.html.j2"
_SCRIPT = "page/lab.js"
_ROOM = LabRoom(5_000, 200, 200, 200)


def lab_pieces(lab: Lab, templates_dir: Path | None = None) -> Iterator[str]:
    """A self-contained HTML page, piece by piece.

    Args:
        templates_dir: the user's templates, searched before the default ones.

    Raises:
        TemplateError: a template does not work.
    """
    drawings = [
        (picture.title, json.dumps(picture.plain, ensure_ascii=True))
        for picture in pictures(lab, sums(lab), list(fits(lab)))
    ]
    frame = skeleton(templates_dir, scripts=(_SCRIPT,), charts=True)
    yield from drawn(load(TEMPLATE, templates_dir), view=lab_view(lab, _ROOM), pictures=drawings, skeleton=frame)
