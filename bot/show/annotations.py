"""Put the findings of a report on the lines of the repository that they concern."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from msgspec import structs

from bot.core.check_run import Annotation, AnnotationLevel
from bot.core.report import Report
from bot.show.blocks import by, plain
from bot.show.escape import clean, clip
from bot.show.facts import Facts
from bot.show.filters import plural
from bot.show.finding_words import finding_words

TITLE_CHARS = 255
_PATH_CHARS = 400
_MESSAGE_LINES = 20
_LEVELS: Mapping[str, AnnotationLevel] = {"warn": "warning", "fail": "failure"}


def annotations_of(
    facts: Facts, config_path: str, paths: Mapping[str, str]
) -> tuple[Annotation, ...]:
    """Return the annotations of a report, worst first, one for a place and title.

    `config_path`, `paths`: the files of the configuration and of the models in the
    repository.
    """
    return tuple(_merged(_annotations(facts, config_path, paths)))


def _annotations(
    facts: Facts, config_path: str, paths: Mapping[str, str]
) -> Iterator[Annotation]:
    """Yield annotations on the first line of the models with findings.

    Without a model's file, the annotation is on the rule's line. Without either there
    is no annotation.
    """
    for finding in facts.report.verdict.news:
        path = paths.get(finding.key.model, "")
        line = 1
        if not path:
            path = config_path
            line = finding.line or 0
        if finding.accepted is not None or not path or not line:
            continue
        if finding.metric:
            title = f"Code size rule: {finding.rule}"
        else:
            state = facts.state_words[facts.deltas[finding.key].state]
            title = f"Code size: {state}"
        yield Annotation(
            path=path,
            line=line,
            level=_LEVELS[finding.level],
            title=clip(clean(title), TITLE_CHARS),
            message=clean(plain(finding_words(facts, finding))),
        )


def _merged(annotations: Iterator[Annotation]) -> Iterator[Annotation]:
    """Yield one annotation for every place and title, with the worst of their levels.

    `annotations`: worst first.
    """
    groups = by(
        annotations,
        lambda annotation: (annotation.path, annotation.line, annotation.title),
    )
    for group in groups.values():
        lines = [annotation.message for annotation in group[:_MESSAGE_LINES]]
        hidden = len(group) - len(lines)
        if hidden:
            lines.append(f"and {plural(hidden, 'more finding')}")
        yield structs.replace(group[0], message="\n".join(lines))


def model_paths(report: Report) -> dict[str, str]:
    """Return model → its file, as the commands of head name it.

    Models from outside of the repository are left out.
    """
    paths: dict[str, str] = {}
    for cell in report.head.cells:
        if cell.command and cell.key.model not in paths:
            paths[cell.key.model] = _input_of(cell.command)
    return {model: path for model, path in paths.items() if path}


def _input_of(command: str) -> str:
    """Return the model's path in a command, which an untrusted run may have written.

    The path is empty if it is not in the repository.
    """
    try:
        arguments = shlex.split(command)
    except ValueError:
        return ""
    if arguments[:1] == ["iree-import-onnx"]:
        index = 1
    elif "<" in arguments:
        index = arguments.index("<") + 1
    else:
        return ""
    if index >= len(arguments):
        return ""
    path = arguments[index]
    if not _is_plain(path) or not _is_inside(path):
        return ""
    return path


def _is_plain(path: str) -> bool:
    """Return whether a path is short and has no odd characters."""
    if len(path) > _PATH_CHARS or not path.isprintable():
        return False
    return "\\" not in path and ":" not in path


def _is_inside(path: str) -> bool:
    """Return whether a path is relative and stays in the repository."""
    has_odd_part = bool({"", ".", ".."} & set(path.split("/")))
    return not has_odd_part and not path.startswith(("-", "~"))
