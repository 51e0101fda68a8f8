"""Name where a report goes, and by whose rules."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial

from msgspec import structs

from bot.config.configuration import Config
from bot.core.check_run import Conclusion
from bot.errors import InputError
from bot.github.checks import Result
from bot.github.configurations import judging_rules
from bot.github.services import Services

_CONFIG_DIGITS = 8
# of a report id, which an answer to a command extends by the comment's id
_ID_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a report goes, and by whose rules."""

    pull: int | None  # number of the pull request; None: job summary and files only
    # tip of its branch that the report is about, for the check run and against newer
    # heads; empty for a comparison that a person asked for, which is about no
    # particular head
    head_sha: str
    run_id: int  # the run whose artifact holds the report
    config: Config
    # path of the configuration in the repository; empty for the packaged one
    config_name: str = ""
    # the branch that the pull request goes to, and the report is about
    base_ref: str = ""
    # the merge commit that was measured; empty where no run said so
    merge_sha: str = ""
    # the commit of the base branch that the head was merged onto; empty likewise
    base_sha: str = ""

    @classmethod
    def by_judging_rules(cls, services: Services) -> Destination:
        """Return the destination of the event, named by the rules that judge it."""
        return cls.of(services, *judging_rules(services))

    @classmethod
    def of(cls, services: Services, config: Config, config_name: str) -> Destination:
        """Return where the report of this run goes."""
        context = services.context
        ruled = partial(cls, run_id=context.run_id, config_name=config_name)
        if context.pull:
            pull = context.pull
            return ruled(
                pull.number,
                head_sha=pull.head_sha,
                config=config,
                base_ref=pull.base_ref,
                merge_sha=context.sha,
                base_sha=_first_parent(services),
            )
        if context.queue:
            base_ref = context.queue.base_ref
            return ruled(None, context.sha, config=config, base_ref=base_ref)
        if context.asked:
            answered = f"{context.asked.comment_id}"
        else:
            answered = "manual"
        by_hand = structs.replace(
            config, report_id=f"{config.report_id[:_ID_CHARACTERS]}.{answered}"
        )
        return ruled(services.inputs.pull_request, head_sha="", config=by_hand)

    def result(self, conclusion: Conclusion, has_verdict: bool) -> Result:
        """Return what the check of this report remembers."""
        name = hashlib.sha256(self.config_name.encode()).hexdigest()
        return Result(
            self.pull or 0,
            conclusion,
            has_verdict=has_verdict,
            merge_sha=self.merge_sha,
            base_sha=self.base_sha,
            run_id=self.run_id,
            config=name[:_CONFIG_DIGITS],
        )


def _first_parent(services: Services) -> str:
    """Return the commit that the event's merge commit is onto.

    Empty if the clone does not have the merge commit.
    """
    try:
        parents = services.git.parents(services.context.sha)
    except InputError:
        return ""
    if parents:
        return parents[0]
    return ""
