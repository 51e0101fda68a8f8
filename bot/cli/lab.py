"""`lab`: one experiment, its variants measured side by side, and what that answers."""

from __future__ import annotations

from bot.cli.options import Arguments, Parser, add_compiler, add_flags, add_out, add_selectors, path

EXAMPLES = (
    "llvm-size-passes --compiler 3.13.0 --model 'mobilenet_v1*' --target x86_64 --out out",
    "opt-level --compiler 3.13.0 --model bert_l4_f32_s128 --no-run",
    "--list",
)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}. Its variants are measured as any build is, and compared with the first of them; where "
        "the experiment asks for it, artifacts are run and timed. Writes lab.json and lab.md."
    )
    about = "the experiment; without one, they are listed"
    parser.add_argument("experiment", nargs="?", metavar="EXPERIMENT", help=about)
    parser.add_argument("--list", action="store_true", help="list the experiments, and end")
    about = "your own experiments (default: the packaged ones)"
    parser.add_argument("--experiments", type=path, metavar="FILE", help=about)
    add_compiler(parser, "compiler of the variants that name none (default: compiler.head of the configuration)")
    parser.add_argument("--no-run", action="store_true", help="compile only: nothing is run, and nothing timed")
    add_flags(parser)
    add_out(parser, "the files")
    add_selectors(parser)


def run(arguments: Arguments) -> None:
    """Raises UsageError where there is no such experiment, or nothing to measure; NoVerdict where nothing was."""
    from msgspec import structs

    from bot.cli.showing import for_log
    from bot.cli.work import work_of
    from bot.config.experiments import chosen_experiment, load_experiments
    from bot.errors import NoVerdict
    from bot.show.blocks import TERMINAL
    from bot.show.escape import clean
    from bot.show.filters import plural
    from bot.show.lab import lab_blocks, write_lab
    from bot.show.renderers import print_blocks
    from bot.study.comparison import with_compiler
    from bot.study.lab import experimented

    if arguments.list or arguments.experiment is None:
        known = load_experiments(arguments.experiments)
        width = max(map(len, known))
        print(for_log("\n".join(f"{name:{width}}  {clean(each.question)}" for name, each in known.items())))
        return
    experiment = chosen_experiment(arguments.experiment, arguments.experiments)
    if experiment.targets:
        arguments.show.say(f"{experiment.name} limits its targets to {', '.join(experiment.targets)}")
    work = work_of(arguments, {"head": arguments.compiler})
    if not all(variant.spec for variant in experiment.variants):
        work = with_compiler(work)
    runs = experiment.run and not arguments.no_run
    result = experimented(structs.replace(experiment, run=runs), work)
    files = write_lab(result, work.config.templates, work.request.out)
    arguments.show.answer(lambda out: print_blocks(lab_blocks(result, TERMINAL), out), files=files)
    if not result.study.measured:  # then the experiment says nothing
        reason = next((cell.reason for _, cell in result.cells if cell.reason), "")
        where, what = str(work.request.out / "lab.json"), f"none of {plural(len(result.cells), 'build')} was measured"
        raise NoVerdict(what, where=where, hint=reason[:200])
