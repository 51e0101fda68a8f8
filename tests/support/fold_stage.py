"""Small programs folded by a real compiler: to the end of the flow phase, groups, rewriting, artifacts, outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from small_programs import FLAGS

from bot.compiler.bindings import Bindings
from bot.compiler.compiler import Session
from bot.compiler.compiling import CompileInput, CompileSetup, artifact_of
from bot.compiler.diagnostics import without_places
from bot.compiler.toolchain import resolve
from bot.core.planned import COMMON_FLAGS
from bot.fold.rewriting import RESUME, Group, Groups, Rewritten, groups_of, rewritten
from bot.readers.ir_facts import interface
from bot.running.runner import Equality, Runner, Runtime
from bot.study.flow_program import flow_of
from bot.system.cancel import Cancel
from bot.system.defaults import default_cache
from bot.system.meter import Meter

RUN = ("here", "vmvx")  # Targets whose artifacts run on this machine


@dataclass
class FoldStage:
    """One release and a directory for its programs."""

    setup: CompileSetup
    folding: Bindings
    home: Path
    target: str = "here"  # a name of `small_programs.FLAGS`
    flags: tuple[str, ...] = ()  # of every compile, beside the target's

    def flow(self, source: str) -> Path:
        """The program at the end of the flow phase."""
        path = self._path("flow.mlir")
        written = self._path("mlir")
        written.write_text(source, encoding="utf-8")
        failed = flow_of(self.setup, self._argv, CompileInput("m", written), path)
        assert failed is None, failed
        return path

    def written(self, text: str) -> Path:
        """A program that is at the end of the flow phase as it was written."""
        path = self._path("flow.mlir")
        path.write_text(text, encoding="utf-8")
        return path

    @property
    def header(self) -> str:
        """How a program for this target begins."""
        text = self.flow(
            "func.func @f(%x: tensor<2xi32>) -> tensor<2xi32> { return %x :"
            " tensor<2xi32> }\n"
        ).read_text()
        return without_places(text[: text.index("  util.func")]).rstrip()

    def groups(self, flow: Path) -> Groups:
        """What could become one."""
        return groups_of(self.folding, flow)

    def fold(self, flow: Path, *groups: Group) -> tuple[Path, Rewritten]:
        """The rewritten program, and what became of the groups."""
        out = self._path("folded.mlir")
        return out, rewritten(self.folding, flow, groups, out)

    def artifact(self, program: Path) -> Path:
        """The artifact that a program at the end of the flow phase is resumed to, made once."""
        out = program.with_suffix(f".{self.target}.vmfb")
        if out.is_file():
            return out
        failed = artifact_of(
            self.setup, (*self._argv, RESUME), CompileInput("m", program), out
        )
        assert failed is None, failed
        return out

    def runner(self, flow: Path, runtime: Runtime) -> Runner:
        """What runs artifacts of this program."""
        answer = self.folding.ask("interface", flow=str(flow))
        assert answer is not None
        return Runner(
            runtime,
            interface(answer),
            self.home / "data",
            self.setup.session.cancel,
            timeout_seconds=60,
        )

    def equal(self, runtime: Runtime, before: Path, after: Path) -> Equality:
        """Whether two programs at the end of the flow phase have the same outputs."""
        running = self.runner(before, runtime)
        assert running.reason is None, running.reason
        return running.outputs_equal(self.artifact(before), self.artifact(after))

    def on(self, target: str, *flags: str) -> FoldStage:
        """The same for another target, with further flags."""
        return replace(self, target=target, flags=flags)

    @property
    def _argv(self) -> Sequence[str]:
        return (*COMMON_FLAGS, *FLAGS[self.target], *self.flags)

    def _path(self, suffix: str) -> Path:
        return self.home / f"{len(list(self.home.iterdir()))}.{suffix}"


@contextmanager
def stage(version: str, home: Path) -> Iterator[FoldStage]:
    """A release, from the cache where it is there; its worker ends with the context."""
    cancel = Cancel()
    toolchain = resolve(version, default_cache(), cancel, print)
    folding = Bindings(toolchain.bindings, toolchain.no_bindings, cancel)
    scratch = home / "scratch"
    scratch.mkdir()
    try:
        yield FoldStage(
            CompileSetup(toolchain, Session(scratch, 300, cancel, Meter()), folding),
            folding,
            home,
        )
    finally:
        folding.close()
