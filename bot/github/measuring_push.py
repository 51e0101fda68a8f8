"""Measure a pushed commit, unless a stored baseline has the same result.

This job runs a compiler, so it has no token, and writes nothing but files.
`bot.github.storing` takes it from there.
"""

from __future__ import annotations

from bot.core.report import Baseline
from bot.github.baselines import standing_for, stored_before_push
from bot.github.measured import Measured, Recording, write_ir, write_measured
from bot.github.opening import opened
from bot.github.parts import asked_twice, whole_side
from bot.github.reviewing import failure_handed
from bot.github.services import Services
from bot.github.sides import pushed
from bot.github.stores import store_of
from bot.show.filters import plural
from bot.show.report_files import write_snapshot
from bot.study.comparison import reported
from bot.study.side_plan import plan_digest
from bot.study.storing_ir import with_stored_ir
from bot.study.tracing import with_largest_traced
from bot.system.files import require_writable


def baseline(services: Services) -> int:
    """Measure the pushed commit for the job that stores it.

    Nothing is measured if a stored baseline has the same result.
    """
    require_writable(services.out)
    with failure_handed(services), opened(services, pushed(services)) as (_, head):
        plan = head.plan("head")
        config = head.config
        store = store_of(services, config)
        digest = plan_digest(plan)
        if standing := standing_for(
            services, store=store, side=head, digest=digest, plan=plan
        ):
            older = "of the same commit"
            if standing.distance:
                older = f"{plural(standing.distance, 'commit')} older"
            line = (
                f"nothing to measure: the baseline of {standing.entry.sha[:10]}"
                f" ({older}) has the same result"
            )
            services.show.say(line)
            write_measured(services.out, Measured(digest=digest, standing=line))
            return 0
        snapshot = whole_side(services, head, plan)
        before = stored_before_push(services, store, config)
        if before:
            snapshot = asked_twice(
                head.work, head, {"base": before.snapshot, "head": snapshot}
            )["head"]
        snapshot = with_largest_traced(plan, snapshot, head.work)
        snapshot, ir = with_stored_ir(plan, snapshot, head.work)
        write_snapshot(services.out / "head.json", snapshot)
        write_ir(services.out, ir)
        texts = Recording(head.work.texts)
        if before:  # for the IR that the report of the job that stores will quote
            reported(
                config,
                base=before.snapshot,
                head=snapshot,
                baseline=Baseline(""),
                texts=texts,
            )
        write_measured(services.out, Measured(digest=digest), texts.found)
        return 0
