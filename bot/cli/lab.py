"""`lab`: one experiment, its variants measured side by side, and what that answers."""

from __future__ import annotations

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_compiler, add_flags, add_out, add_selectors, path

EXAMPLES = (
    "code-size-bot lab --list",
    (
        "code-size-bot lab opt-level --compiler 3.13.0 --config quick --model"
        " bert_l4_f32_s128 --target x86_64 --no-run"
    ),
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nThe command measures each variant and compares it"
        " with the first one. Some experiments also run and time the artifacts. The"
        " command writes lab.json, lab.md and lab.html. It writes the models that it"
        " makes to the folder models."
    )
    about = "name of the experiment (default: list all experiments)"
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help=about)
    parser.add_argument("--list", action="store_true", help="list all experiments")
    about = "file of experiments (default: the packaged one)"
    parser.add_argument("--experiments", type=path, metavar="FILE", help=about)
    add_compiler(parser, "compiler of the variants (default: compiler.head)")
    parser.add_argument(
        "--no-run", action="store_true", help="compile only: run and time nothing"
    )
    add_flags(parser)
    add_out(parser, "the files")
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    """Measure an experiment, or list the experiments.

    Raises:
        UsageError: There is no such experiment, or nothing to measure.
        NoVerdict: No build was measured.
    """
    from msgspec import structs

    from bot.cli.showing import for_log
    from bot.cli.work import place_of_nothing, work_of
    from bot.config.experiments import chosen_experiment, load_experiments
    from bot.show.escape import clean
    from bot.show.lab import lab_blocks, write_lab
    from bot.show.renderers import print_blocks
    from bot.show.views import TERMINAL
    from bot.study.lab import experimented
    from bot.study.lab_outcome import require_measured
    from bot.study.named_compilers import with_compiler

    if arguments.list or arguments.experiment is None:
        experiments = load_experiments(arguments.experiments)
        width = max(map(len, experiments))
        for name, experiment in experiments.items():
            print(for_log(f"{name:{width}}  {clean(experiment.question)}"))
        return
    experiment = chosen_experiment(arguments.experiment, arguments.experiments)
    if experiment.targets:
        arguments.show.say(
            f"{experiment.name} limits its targets to {', '.join(experiment.targets)}"
        )
    work = work_of(arguments, {"head": arguments.compiler})
    if not all(variant.spec for variant in experiment.variants):
        work = with_compiler(work)
    runs = experiment.run and not arguments.no_run
    result = experimented(structs.replace(experiment, run=runs), work)
    out = work.request.out
    if not result.study.measured:
        out = place_of_nothing(out, "lab.json", work.show.say)
    files = write_lab(result, work.config.templates, out)
    arguments.show.answer(
        lambda console: print_blocks(lab_blocks(result, TERMINAL), console), files=files
    )
    require_measured(result, str(out / "lab.json"))
