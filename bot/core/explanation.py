"""The values that explain a cell: its matched dispatches, cause and components."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bot.core.program_proof import FORMS_REGIONS
from bot.core.proof import UNPROVED, KnobProof, Proof
from bot.core.record import Amount, Count, Record, Small, Value
from bot.core.snapshot import CellKey, Dispatch
from bot.core.trace import operation_words

CAUSES = (
    "input",
    "fusion",
    "dedup-lost",
    "dedup-won",
    "strategy",
    "codegen",
    "container",
    "host",
    "packaging",
)
"""The causes, in the order of the phases that they stand for.

First come those of code, then those of other bytes in executables and around them.
"""
CAUSE_WORDS = {
    "container": "rest of the executables",
    "host": "host program",
    "packaging": "tables of the artifact",
}
"""The words of causes whose bytes are no code of a dispatch."""
MIXED = "mixed"
"""The cause of a cell if no cause has half of the change."""
UNKNOWN = "unknown"
"""The part of a waterfall that has no known cause."""

PHASES = (
    "input",
    "global-optimization",
    "dispatch-creation",
    "deduplication",
    "executable-source",
    "configuration",
    "code",
    "layout",
)
"""Phases in which the sides can first differ, in the compiler's order."""

UNATTRIBUTED = "unattributed"


class PartDelta(Record, frozen=True):
    """How much one part of the artifact that is no dispatch's code grew."""

    cause: str  # `container`, `host`, `packaging` or `unknown`
    what: str  # the part in words: `symbol tables`
    change_bytes: Amount


class Amounts(Record, frozen=True):
    """The amounts of a component; None if the cell does not know an amount."""

    dispatch_sites: Count | None = None
    code_bytes: Count | None = None
    stack_bytes: Count | None = None

    def get(self, field: str) -> int | None:
        """Return the amount of this name."""
        amount: int | None = getattr(self, field)
        return amount


OTHER_CONFIGURATION = "a different configuration"
"""The beginning of the words for a configuration without a knob that can be named."""
OTHER_TYPES = (  # the words for a change that leaves the numbers as different as before
    "operations of other types"
)


class PassChange(Record, frozen=True):
    """The compiler's pass after which a traced dispatch is another one."""

    name: str  # its argument (`iree-llvmcpu-peel`, `greedy`)
    # operation → how many more head has after the pass than base: regions, then the
    # largest first; at most PASS_OPERATIONS. It has its types if only those differ.
    operations: Mapping[str, Amount]
    more: Amount = 0  # how many operations head has more, of all
    # how many other operations differ in number; None if that is not known
    others: Count | None = 0
    # what implements it, of MLIR's passes; empty for one of LLVM's
    class_name: str = ""
    # the target for which it was printed, if it is another target whose dispatches have
    # the same IR on both sides
    printed_for: str = ""
    # the result of the experiment on the program (`bot.core.proof`), for a pass that
    # forms other dispatch regions; empty for any other pass
    experiment: str = ""

    def words(self, limit: int) -> str:
        """Return `637 operations more (vector.extract +142, … and 9 more)`."""
        if not self.operations and self.experiment:
            return FORMS_REGIONS
        operations = operation_words(self.operations, limit, self.others) or OTHER_TYPES
        if not self.operations or not self.more:
            return operations
        if abs(self.more) == 1:
            noun = "operation"
        else:
            noun = "operations"
        direction = "more" if self.more > 0 else "fewer"
        return f"{abs(self.more):,} {noun} {direction} ({operations})"


PASS_OPERATIONS = 8
EARLY_CAUSES = frozenset({"input", "fusion"})
"""Causes of dispatches whose IR differs after the passes over the program."""


class DispatchDelta(Small, frozen=True):
    """One entry point that is not the same on both sides."""

    # base, head: the entry point there; None if that side has none that matches
    base: Dispatch | None
    head: Dispatch | None
    matched: str  # the pass that found the pair; `added` or `removed` without a pair
    # one of CAUSES; None if it cannot be known: `note` then has the reason
    cause: str | None
    # where most of its sites are; `unattributed` without a location
    component: str = UNATTRIBUTED
    note: str = ""
    # unified diff of the smallest differing piece, line by line; empty if both texts
    # are not at hand
    diff: tuple[str, ...] = ()
    # the pass after which the sides differ; None if it was not traced, or no pass is
    # named
    passed: PassChange | None = None
    untraced: str = ""  # why no pass is named
    # phase → bytes of the change that it carries (`bot.core.ladder`), None beside a
    # failed experiment; None if no ladder was measured
    attribution: Mapping[str, Amount | None] | None = None
    # the experiment with base's configuration in head; None if it was not made
    proof: KnobProof | None = None

    @property
    def name(self) -> str:
        """Return the name on head; on base if head does not have it."""
        dispatch = self.head or self.base
        if dispatch:
            return dispatch.name
        return ""


class ComponentDelta(Record, frozen=True):
    """One component of the model on both sides; all components sum to the cell."""

    name: str
    base: Amounts
    head: Amounts

    def change(self, field: str) -> int:
        """Return head − base; 0 if either is not known."""
        base = self.base.get(field)
        head = self.head.get(field)
        if base is None or head is None:
            return 0
        return head - base


class Explanation(Small, frozen=True):
    """Why one cell changed."""

    # the cause of the largest part of the waterfall; `mixed` if it is under half of
    # them all. Without a waterfall, it is that of the first phase that differs. None if
    # it is not known.
    cause: str | None
    # the first phase in which the sides differ, one of PHASES
    phase: str | None = msgspec.field(name="first")
    why: str
    # those that are not the same, largest change of code first
    dispatches: tuple[DispatchDelta, ...] = ()
    # how many entry points are the same on both sides; None of what has no explanation
    unchanged: Count | None = 0
    # how many have the same numbers, source and configuration, and other code for what
    # the program around them binds there, which differs
    rebased: Count | None = 0
    # code (head − base) of those not among `dispatches` whose code is the same and only
    # spells longer or shorter names
    renamed_bytes: int = 0
    # those that moved, largest change of code first
    components: tuple[ComponentDelta, ...] = ()
    # all components down to the model's own names, as in the head (as in the base
    # without one)
    tree: tuple[ComponentDelta, ...] = ()
    # True for a non-deterministic compiler: the exact metrics are those of every
    # compile, and everything else is of each side's first compile
    first_compiles: bool = False
    # cause, or `unknown`, → bytes; sums to the change of the artifact. Without those of
    # 0.
    waterfall: Mapping[str, Amount] = {}
    # what of it is no dispatch's code, largest change first
    parts: tuple[PartDelta, ...] = ()

    @property
    def component(self) -> str | None:
        """Return the component that moved most.

        Where none moved, it is the component of the dispatch that changed most.
        """
        if self.components:
            return self.components[0].name
        if self.dispatches:
            return self.dispatches[0].component
        return None


class Tally(
    Small, frozen=True, rename={"net_bytes": "net", "absolute_bytes": "absolute"}
):
    """Deltas of one kind, added up."""

    deltas: Count  # how many dispatches, or parts of artifacts
    # net_bytes, absolute_bytes: sum of their changes, and of the amounts of these
    net_bytes: Amount
    absolute_bytes: Count


class Example(Small, frozen=True):
    """The delta with the largest change."""

    key: CellKey
    dispatch: str  # its name; empty if it is a part of the artifact
    component: str
    # base_bytes, head_bytes: its code, or the part; None if a side does not have it
    # or it is not known
    base_bytes: int | None
    head_bytes: int | None
    change_bytes: int
    note: str


class Suspect(Record, frozen=True):
    """A commit between the two compilers that touched what a root cause names.

    Nothing proves that it made the change. `url` is empty if a clone does not know its
    origin; `why`: the words that the commit and the root cause share.
    """

    commit: str
    title: str
    date: str
    url: str
    why: str


class LookedUp(Record, frozen=True):
    """The files that implement the pass, or choose the configuration.

    `commits`: how many commits between the two compilers touched these files; `note`: a
    remark, also if there are no files; `this_pull_request`: the files that the pull
    request changes.
    """

    files: tuple[str, ...]
    commits: Count | None = None
    note: str = ""
    this_pull_request: tuple[str, ...] = ()


class RootCause(Small, frozen=True):
    """Deltas of one cause with the same thing changed."""

    # one of `bot.core.explanation.CAUSES`; None for what no cause is known of
    cause: str | None
    what: str  # what changed, in words that are true of each of the deltas
    targets: tuple[str, ...]
    models: tuple[str, ...]
    cells: tuple[CellKey, ...]
    # how many of the deltas are dispatches; the others are parts of artifacts
    dispatches: int
    total: Tally
    # share of all changed bytes, growth and shrinkage alike, in all deltas of the
    # report (0.5 is half of them); None if no byte changed
    share: float | None
    example: Example
    by_target: Mapping[str, Tally]
    by_cell: Mapping[CellKey, int]  # cell → the absolute change of its deltas in bytes
    # the command that makes the example's artifact on head, or on base if head has none
    command: str
    # the pass that parts its largest traced dispatch; None if none was traced
    passed: PassChange | None = None
    # how many of its dispatches were traced to such a pass by a compile for their own
    # target, and the amounts of their changes in bytes
    traced: tuple[int, int] = (0, 0)
    # None if the compiler's repository was not asked, or if the root cause names
    # nothing to ask for
    looked_up: LookedUp | None = None
    # at most three commits that may have done it, the likeliest first
    suspects: tuple[Suspect, ...] = ()
    # the joint result of the experiments on its dispatches
    proof: Proof = UNPROVED
    # phase → bytes of the change that it carries, of the dispatches with a ladder; of
    # causes in code generation alone
    parts: Mapping[str, Amount] = {}
    divided: Count = 0  # how many dispatches `parts` are of


class StepCause(Record, frozen=True):
    """One root cause of a step: what changed, where, and by how many bytes.

    `net_bytes` is the signed sum, and `absolute_bytes` the sum of the amounts.
    """

    cause: str | None
    what: str
    models: tuple[str, ...]
    targets: tuple[str, ...]
    net_bytes: Amount
    absolute_bytes: Count


class Step(Small, frozen=True):
    """From one release that was measured to the next."""

    base: str
    head: str
    gaps: tuple[str, ...]  # releases between the two that were not measured
    # how many cells both have measured; sizes, larger and smaller are of these
    cells: int
    # base_bytes, head_bytes: sums of artifacts, a range if some builds are
    # non-deterministic; None without such a cell
    base_bytes: Value
    head_bytes: Value
    larger: int
    smaller: int
    # broken, fixed: how many cells are newly refused, or compile again
    broken: int
    fixed: int
    causes: tuple[StepCause, ...]  # the root causes with most bytes


def code_differs(base: Dispatch, head: Dispatch) -> bool | None:
    """Return whether the machine code differs; None if that is not known."""
    if base.code is not None and head.code is not None:
        return base.code != head.code
    if (
        base.code_bytes is None
        or head.code_bytes is None
        or base.code_bytes == head.code_bytes
    ):
        return None
    return True


def named_bytes(base: Dispatch | None, head: Dispatch | None) -> int:
    """Return by how much head's code is larger only because its names are longer.

    It is 0 unless the code is known to be the same.
    """
    if (
        base is None
        or head is None
        or base.code_bytes is None
        or head.code_bytes is None
    ):
        return 0
    if code_differs(base, head) is not False:
        return 0
    return head.code_bytes - base.code_bytes


def moved_bytes(delta: DispatchDelta) -> int | None:
    """Return the bytes that a dispatch gained or lost.

    Return None if its code is not known on a side that has it. If only one side has the
    dispatch, its whole executable counts, unless others share it.
    """
    if delta.base is None or delta.head is None:
        return _change(whole_bytes(delta.base), whole_bytes(delta.head))
    if code_differs(delta.base, delta.head) is False:
        return 0  # its names alone may be longer
    return _change(delta.base.code_bytes, delta.head.code_bytes)


def _change(base_bytes: int | None, head_bytes: int | None) -> int | None:
    """Return head − base; None if either is not known."""
    if base_bytes is None or head_bytes is None:
        return None
    return head_bytes - base_bytes


def whole_bytes(row: Dispatch | None) -> int | None:
    """Return the bytes of the dispatch's executable; of its code if others share it.

    Return 0 without a dispatch.
    """
    if row is None:
        return 0
    if row.executable_bytes is None:
        return row.code_bytes
    return row.executable_bytes


def code_change(delta: DispatchDelta) -> int | None:
    """Return head − base; a side without the dispatch counts as 0."""
    base_bytes = 0 if delta.base is None else delta.base.code_bytes
    head_bytes = 0 if delta.head is None else delta.head.code_bytes
    return _change(base_bytes, head_bytes)
