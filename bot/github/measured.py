"""Write and read the files that a measuring job hands to the jobs after it.

The jobs after it report or store.

A compiler ran beside them, so they are read as anybody's: plain files with known names,
bounded, and checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from bot.core.defaults import TriedDefaults
from bot.core.flag_changes import TriedFlags
from bot.core.json_text import canonical, decoded, require_schema
from bot.core.record import Record, always
from bot.core.report import Baseline
from bot.core.run_times import RunTimes
from bot.core.snapshot import Snapshot
from bot.core.snapshot_json import from_json
from bot.errors import (
    BotError,
    CompilerUnavailable,
    InputError,
    NetworkError,
    NoVerdict,
    OutputError,
)
from bot.explain.texts import Texts
from bot.github.measured_lab import HandedLab
from bot.store.ir_files import require_pinned
from bot.system.files import write_atomically

SCHEMA = "code-size-measured/1"
FILE = "measured.json"
TEXTS = "texts.json"
IR = "ir.xz"
MOST_FILE_BYTES = 32 << 20
_MOST_NOTES = 20
_MOST_NOTE_CHARACTERS = 500
_MOST_TEXTS_BYTES = 8 << 20
_HINT = "see the log of the job that measured"
_ERRORS: Mapping[int, type[BotError]] = {
    2: InputError,
    3: NetworkError,
    4: CompilerUnavailable,
    5: NoVerdict,
}
"""Exit code of a failed measuring job → the error that the reporting job ends with."""


class Problem(Record, frozen=True):
    """Why measuring failed: the parts of a BotError."""

    what: str
    where: str
    hint: str
    exit_code: int


class Measured(Record, frozen=True, omit_defaults=True):
    """What the snapshots do not say of the measurement."""

    schema: str = always(SCHEMA)
    baseline: Baseline | None = None  # how the base side was found; None for a push
    notes: tuple[str, ...] = ()  # what a reader must not miss
    # True where stored baselines were not read, as that takes a token
    unread: bool = False
    broke: str = ""  # why there is no base side; empty where there is one
    # SHA-256 (hex) of all that a snapshot depends on: of a push the new one, else the
    # stored base; empty without one
    digest: str = ""
    standing: str = ""  # of a push: why nothing was measured; empty where something was
    # differences of flags, with the experiments that head's compiler made
    changed_flags: TriedFlags = ()
    # of compiler options, where both compilers were there
    changed_defaults: TriedDefaults = ()
    # of the builds that fail the check; None where nobody asked to run artifacts
    run_times: RunTimes | None = None
    failure: Problem | None = None  # why there are no snapshots; None where there are
    lab: HandedLab | None = None  # of an experiment, whose variants have the snapshots


class Handed(NamedTuple):
    """What a measuring job handed over."""

    measured: Measured
    # `base` and `head`; of a push `head` alone; of an experiment one for each variant
    sides: Mapping[str, Snapshot]
    texts: Texts  # IR that the report quotes
    ir: bytes = b""  # the file with the IR that a baseline's snapshot names; else empty


class Recording:
    """A lookup of texts that remembers what was found, so that it can be handed over."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self.found: dict[str, str] = {}

    def __call__(self, digest: str) -> str | None:
        """Return the text of a digest, None without one."""
        text = self._texts(digest)
        if text is not None:
            self.found[digest] = text
        return text


def write_measured(
    directory: Path, measured: Measured, texts: Mapping[str, str] | None = None
) -> None:
    """Write what goes along with the snapshots; raises OutputError."""
    if texts:
        kept_texts = dict(_within(texts, _MOST_TEXTS_BYTES))
        write_atomically(directory / TEXTS, canonical(kept_texts))
    write_atomically(directory / FILE, canonical(measured))


def write_ir(directory: Path, ir: bytes) -> None:
    """Write the IR that is stored with a baseline, if there is any.

    Raises OutputError if a file cannot be written.
    """
    if ir:
        write_atomically(directory / IR, ir)


def write_failure(directory: Path, error: BotError) -> None:
    """Write why measuring failed.

    A directory that cannot be written is no second error.
    """
    problem = Problem(
        what=error.what, where=error.where, hint=error.hint, exit_code=error.exit_code
    )
    try:
        write_measured(directory, Measured(failure=problem))
    except OutputError:
        return


def _within(texts: Mapping[str, str], most_bytes: int) -> Iterator[tuple[str, str]]:
    """Return the first texts, in the order of digests, that fit into the bytes."""
    total = 0
    for digest, text in sorted(texts.items()):
        total += len(text.encode())
        if total > most_bytes:
            return
        yield digest, text


def read_measured(directory: Path, *, outcome: str = "") -> Handed:
    """Read what a measuring job handed over.

    `outcome`: how that job ended, as GitHub says it (`failure`); empty if it is
    unknown.

    Raises BotError with the job's own reason if the job failed. Raises it as well
    if a file is missing or malformed.
    """
    if not os.path.lexists(directory / FILE):
        if outcome == "skipped":
            hint = "see the log of the job that failed before it"
            raise InputError("the job that measures was skipped", hint=hint)
        if outcome not in ("", "success"):
            ended = f" and ended with {outcome}"
        else:
            ended = ""
        raise InputError(f"the job that measures left no result{ended}", hint=_HINT)
    measured = _checked(decode(read_file(directory / FILE), f"artifact {FILE}"))
    if measured.failure:
        raise failure_of(measured.failure)
    sides = {}
    for name in _snapshot_names(measured):
        data = read_file(directory / f"{name}.json")
        sides[name] = snapshot_of(data, f"artifact {name}.json")
    if os.path.lexists(directory / TEXTS):
        quoted = read_file(directory / TEXTS)
    else:
        quoted = b"{}"
    ir = b""
    if not measured.baseline and "head" in sides and sides["head"].stored_ir:
        ir = read_file(directory / IR)
        require_pinned(ir, sides["head"], f"artifact {IR}")
    return Handed(measured=measured, sides=sides, texts=texts_of(quoted), ir=ir)


def _snapshot_names(measured: Measured) -> tuple[str, ...]:
    """Return the names of the snapshots that were handed over."""
    if measured.standing:
        return ()
    if measured.lab:
        return measured.lab.names
    if measured.baseline:
        return ("base", "head")
    return ("head",)


def read_file(path: Path) -> bytes:
    """Return the bytes of a plain file of an artifact.

    Raises InputError for a link, a device and a file that is too large.
    """
    where = f"artifact {path.name}"
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputError("is missing", where=where, hint=_HINT) from None
    except OSError:
        raise InputError("is not a plain file", where=where, hint=_HINT) from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError("is not a plain file", where=where, hint=_HINT)
        data = file.read(MOST_FILE_BYTES + 1)
    if len(data) > MOST_FILE_BYTES:
        raise InputError(
            f"has more than {MOST_FILE_BYTES} bytes", where=where, hint=_HINT
        )
    return data


def decode(data: bytes, where: str) -> Measured:
    """Decode what goes along with the snapshots; raises InputError."""
    noun = "result of measuring"
    try:
        require_schema(data, schema=SCHEMA, noun=noun, where=where, hint=_HINT)
        return decoded(data, kind=Measured, where=where, hint=_HINT, noun=noun)
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", where=where) from None


def snapshot_of(data: bytes, where: str) -> Snapshot:
    """Decode a snapshot of an artifact; raises InputError."""
    try:
        return from_json(data.decode(), where)
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", where=where) from None


def texts_of(data: bytes) -> Texts:
    """Return the texts of an artifact, by digest; raise InputError for other data."""
    where = f"artifact {TEXTS}"
    try:
        texts = decoded(
            data, kind=dict[str, str], where=where, hint=_HINT, noun="table of texts"
        )
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", where=where) from None
    return texts.get


def failure_of(problem: Problem) -> BotError:
    """Return the error that ended the job that measured."""
    kind = _ERRORS.get(problem.exit_code, NoVerdict)
    return kind(problem.what, where=problem.where, hint=problem.hint)


def _checked(measured: Measured) -> Measured:
    """Return the result with its texts cut to a length that a comment has room for."""
    notes = tuple(_short(note) for note in measured.notes[:_MOST_NOTES])
    baseline = measured.baseline
    failure = measured.failure
    if baseline:
        baseline = msgspec.structs.replace(baseline, rule=_short(baseline.rule))
    if failure:
        failure = Problem(
            what=_short(failure.what),
            where=_short(failure.where),
            hint=_short(failure.hint),
            exit_code=failure.exit_code,
        )
    return msgspec.structs.replace(
        measured,
        notes=notes,
        broke=_short(measured.broke),
        baseline=baseline,
        failure=failure,
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _MOST_NOTE_CHARACTERS:
        return line
    return f"{line[:_MOST_NOTE_CHARACTERS]}…"
