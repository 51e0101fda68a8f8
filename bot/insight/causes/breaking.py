"""Why head has no artifact of a cell: what the compiler's own words say, and nothing beyond them.

Phase, dispatch and component are said only where the diagnostics tell them: by words that one phase alone uses, by an
operation of a dialect that only the input has, by a name. A place in a file of the model's framework stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.core.values.explanation import PHASES, Explanation
from bot.core.values.snapshot import Cell, Failure

QUOTED_CHARACTERS = 120
_ERROR = re.compile(r"^(?P<place>\S.*?): ?error: (?P<words>.*)$")
_BARE = re.compile(r"^(?:error: |iree-compile: |LLVM ERROR: )(?P<words>.*)$")
_POSITION = re.compile(r"^(?P<file>[^\s\"]+?):(?P<line>\d+)(?::\d+)?$")
_NAMED = re.compile(r'^loc\("(?P<name>[^"\\]+)"')
_DISPATCH = re.compile(r"[A-Za-z_][\w$]*_dispatch_\d+(?:_[\w$]+)?")
_OPERATION = re.compile(r"'([a-z][a-z0-9_]*)\.[\w.]+'")
_IN_INPUT = frozenset({"tosa", "stablehlo", "chlo", "vhlo", "mhlo", "torch", "onnx", "tf", "tfl"})
_WORDS = (
    ("failed to run translation of source executable", "code"),
    ("failed to distribute", "code"),
    ("exceeded stack allocation limit of", "code"),
    (" bytes of shared memory; exceeded the limit", "code"),
    ("error: Capability '", "code"),
    ("custom op '", "input"),
    ("use of undeclared SSA value", "input"),
    ("use of undefined SSA value", "input"),
)
"""Words that the compiler says in one phase only."""
_SAID = {"code": "in code generation", "input": "while it reads the model"}


def broken(base: Cell | None, head: Cell | None) -> Explanation | None:
    """Why head has no artifact; None where it did not fail, or says nothing that it did not say on base."""
    failure = head.failure if head is not None and not head.measured else None
    if failure is None or head is None or head.status != "failed":
        return None
    if base is None or base.failure is None or base.measured:
        return Explanation(None, phase_of(failure), f"head fails{_told(failure, base)}")
    first = _differing(failure, base.failure)
    if base.status != "failed" or first is None:
        return None
    said = _differing(base.failure, failure)
    before = f", base says {_quoted(said)}" if said else ", base says nothing of the kind"
    phases = [phase for each in (base.failure, failure) if (phase := phase_of(each))]
    phase = min(phases, key=PHASES.index) if len(phases) == 2 else None
    return Explanation(None, phase, f"base fails too, with a different message: head says {_quoted(first)}{before}")


def phase_of(failure: Failure) -> str | None:
    """The phase that the words belong to; None where they do not tell."""
    phases = [phase for words, phase in _WORDS if words in failure.message]
    dialects = set(_OPERATION.findall(failure.message))
    return phases[0] if phases else "input" if dialects & _IN_INPUT else None


def _told(failure: Failure, base: Cell | None) -> str:
    phase, place, words = phase_of(failure), _place(failure), next(_words(failure), "")
    where = f" {_SAID[phase]}" if phase else ""
    at = f" at {place}" if place else ""
    return f"{where}{at}{_dispatch(failure, base)}: {_quoted(words)}" if words else f"{where}{at}"


def _words(failure: Failure) -> Iterator[str]:
    for line in failure.message.splitlines():
        error = _ERROR.match(line) or _BARE.match(line)
        yield error["words"] if error else line


def _quoted(words: str) -> str:
    return f"“{words if len(words) <= QUOTED_CHARACTERS else words[: QUOTED_CHARACTERS - 1] + '…'}”"


def _place(failure: Failure) -> str:
    """Where the first diagnostic points: a name of the model, or file and line; a line of 0 is a place of none."""
    first = _ERROR.match(failure.message.partition("\n")[0])
    if first is None:
        return ""
    if named := _NAMED.match(first["place"]):
        return named["name"]
    position = _POSITION.match(first["place"])
    known = position is not None and position["file"] != "<unknown>" and position["line"] != "0"
    return f"{position['file']}:{position['line']}" if position is not None and known else ""


def _dispatch(failure: Failure, base: Cell | None) -> str:
    """The dispatch that the words name, with its component on base; else base's where the first diagnostic points.

    Nothing is said of base where there is more than one.
    """
    dispatch = _DISPATCH.search(failure.message)
    sites = base.program.sites if base is not None and base.program else ()
    if dispatch is None:
        place = _place(failure)
        names = {site.entry_point for site in sites if place and site.component == place}
        return f", on base the place of {names.pop()}" if len(names) == 1 else ""
    places = {site.component for site in sites if site.entry_point == dispatch[0]} - {None}
    known = f", which on base is in {places.pop()}" if len(places) == 1 else ""
    return f" in {dispatch[0]}{known}"


def _differing(one: Failure, other: Failure) -> str | None:
    """The first words of one that the other does not say, whatever the figures and numbers of values in them."""
    known = {_unnumbered(words) for words in _words(other)}
    return next((words for words in _words(one) if _unnumbered(words) not in known), None)


def _unnumbered(words: str) -> str:
    return re.sub(r"\d+", "#", words)
