"""Why a cell changed: its dispatches matched across the sides, the cause, and the components that moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.core.record import Amount, Count, Record, Small
from bot.core.values.snapshot import Dispatch
from bot.core.values.trace import operation_words

CAUSES = ("input", "fusion", "dedup-lost", "dedup-won", "strategy", "codegen", "container", "host", "packaging")
"""In the order of the phases that they stand for: of code, then of what else is in executables, and around them."""
MIXED, UNKNOWN = "mixed", "unknown"
"""The cause of a cell none of whose causes has half of the change; what no cause is known of, in a waterfall."""

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
    """How much one part of the artifact that is no dispatch's code grew.

    Attributes:
        cause: `container`, `host`, `packaging` or `unknown`.
        what: the part in words: `symbol tables`.
    """

    cause: str
    what: str
    change_bytes: Amount


class Amounts(Record, frozen=True):
    """What a component has; None where the cell does not know it."""

    dispatch_sites: Count | None = None
    code_bytes: Count | None = None
    stack_bytes: Count | None = None

    def get(self, what: str) -> int | None:
        """One of them, by name."""
        amount: int | None = getattr(self, what)
        return amount


class PassChange(Record, frozen=True):
    """The compiler's pass after which a traced dispatch is another one.

    Attributes:
        name: its argument (`iree-llvmcpu-peel`, `greedy`).
        operations: operation, with its types where only those differ, → how many more head has after it than base,
            largest first; at most PASS_OPERATIONS.
        more: how many operations head has more, of all.
        others: of how many operations beside these there are more or fewer; None where that is not known.
        class_name: what implements it, of MLIR's passes; empty for one of LLVM's.
    """

    name: str
    operations: Mapping[str, Amount]
    more: Amount = 0
    others: Count | None = 0
    class_name: str = ""

    def words(self, most: int) -> str:
        """`637 operations more (vector.extract +142, vector.broadcast +114 and 9 more)`."""
        operations = operation_words(self.operations, most, self.others)
        if not self.more:
            return operations
        return f"{abs(self.more):,} operations {'more' if self.more > 0 else 'fewer'} ({operations})"


PASS_OPERATIONS = 8


class DispatchDelta(Small, frozen=True):
    """One entry point on both sides, where it is not the same.

    Attributes:
        base, head: the entry point there; None where that side has none that matches.
        matched: the pass that found the pair; `added` or `removed` where none did.
        cause: one of CAUSES; None where it cannot be known, `note` then says why.
        component: where most of its sites are; `unattributed` without a location.
        diff: unified diff of the smallest differing piece, line by line; empty where both texts are not at hand.
        passed: the pass after which the sides are apart; None where it was not traced, or none does.
        untraced: why there is none.
    """

    base: Dispatch | None
    head: Dispatch | None
    matched: str
    cause: str | None
    component: str = UNATTRIBUTED
    note: str = ""
    diff: tuple[str, ...] = ()
    passed: PassChange | None = None
    untraced: str = ""

    @property
    def name(self) -> str:
        """The head's name, the base's where it is gone."""
        known = self.head or self.base
        return known.name if known else ""


class ComponentDelta(Record, frozen=True):
    """One component of the model on both sides; the parts of all components sum to the cell's."""

    name: str
    base: Amounts
    head: Amounts

    def change(self, what: str) -> int:
        """Head − base; 0 where either is not known."""
        left, right = self.base.get(what), self.head.get(what)
        return 0 if left is None or right is None else right - left


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one cell changed.

    Attributes:
        cause: of the largest absolute part of the waterfall, `mixed` where that is under half of them all; where it has
            no part but the artifacts differ, that of the first phase in which they do. None where it is not known.
        phase: the first phase in which the sides differ, one of PHASES.
        dispatches: those that are not the same, largest change of code first.
        unchanged: how many entry points are the same on both sides.
        rebased: how many have the same numbers, source and configuration, and other code for what the program around
            them binds there, which differs.
        renamed_bytes: code (head − base) of those not among `dispatches` whose code is the same and only spells longer
            or shorter names.
        components: those that moved, largest change of code first.
        tree: all components down to the model's own names, as in the head (as in the base without one).
        short_digests: True where code or IR was compared by short digests: what did not change, did not as far as they
            and the numbers beside them tell.
        first_compiles: True where the compiler does not repeat itself: its exact metrics are those of every compile
            seen, and all that is told here is of each side's first.
        waterfall: cause, or `unknown`, → bytes; sums to the change of the artifact. Without those of 0.
        parts: what of it is no dispatch's code, largest change first.
    """

    cause: str | None
    phase: str | None
    why: str
    dispatches: tuple[DispatchDelta, ...] = ()
    unchanged: int = 0
    rebased: int = 0
    renamed_bytes: int = 0
    components: tuple[ComponentDelta, ...] = ()
    tree: tuple[ComponentDelta, ...] = field(default=())
    short_digests: bool = False
    first_compiles: bool = False
    waterfall: Mapping[str, int] = field(default_factory=dict)
    parts: tuple[PartDelta, ...] = ()

    @property
    def component(self) -> str | None:
        """The component that moved most; where none did, that of the dispatch that changed most."""
        named = [part.name for part in self.components] or [delta.component for delta in self.dispatches]
        return named[0] if named else None
