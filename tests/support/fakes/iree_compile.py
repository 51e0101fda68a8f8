"""A program that behaves like `iree-compile` as far as the bot can tell, in milliseconds.

Its knobs say how to misbehave and when (see `fake_compiler.py`), and `calls.jsonl` of
its directory receives one line for every call. An artifact depends on the model and on
every flag that is not about measuring, so that a mix-up cannot go unnoticed. The tests
run this thousands of times, so it imports only what each call needs: `json`, `re` and
`hashlib` would take longer than all else.
"""

from __future__ import annotations

import os
import sys
from _blake2 import blake2b
from _json import encode_basestring_ascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Words: TypeAlias = Sequence[str]

MEASURING_OPTIONS = (
    "--mlir-disable-threading",
    "--mlir-print-debuginfo",
    "--dump-compilation-phases-to",
    "--stack-usage-file",
    "--iree-llvmcpu-keep-linker-artifacts",
    "--iree-scheduling-dump-statistics-",
    "--compile-to",
    "--compile-from",
)
BURNT_SECONDS = 0.4
LIMIT = "--iree-llvmcpu-stack-allocation-limit="
STATISTICS = (
    b'{"stream-aggregate": {"execution": {"dispatch-count": 2},'
    b' "executable": {"executable-count": 2}}}'
)


def value(argv: Words, option: str) -> str:
    """The last value of `--option=value`; empty where it is not given."""
    return next(
        (
            word.partition("=")[2]
            for word in reversed(argv)
            if word.startswith(f"{option}=")
        ),
        "",
    )


def flags(argv: Words) -> tuple[str, ...]:
    """The flags that shape the artifact."""
    return tuple(
        word
        for word in argv
        if word.startswith("--") and not word.startswith(MEASURING_OPTIONS)
    )


def artifact(model: str, argv: Words, template: bytes = b"") -> bytes:
    """The artifact of a model."""
    identity = "\0".join((model, *flags(argv)))
    digest = blake2b(identity.encode(), digest_size=32).digest()
    return template + b"VMFB" + digest * 4


def crash() -> int:
    import signal

    print(
        "Stack dump:\n0.\tProgram arguments: /opt/somewhere/iree-compile -", flush=True
    )
    os.kill(os.getpid(), signal.SIGSEGV)
    return 1


def hang(home: str) -> int:
    """Deaf to SIGTERM, with a child that is deaf as well and holds the pipe.

    Both leave their ids.
    """
    import signal
    import subprocess
    import time

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"])
    with open(os.path.join(home, "pids"), "a") as file:
        file.write(f"{os.getpid()}\n{child.pid}\n")
    time.sleep(600)
    return 1


def flood() -> int:
    line = b"<stdin>:1:1: remark: " + b"x" * 1002 + b"\n"
    for _ in range(100):
        sys.stdout.buffer.write(line * 1024)
    return 0


def refuse(argv: Words) -> int:
    """The stack gate, unless it is lifted."""
    if int(value(argv, LIMIT[:-1]) or 32768) > 32768:
        return 0
    limit = (
        "exceeded stack allocation limit of 32768 bytes for function. Got 36864 bytes"
    )
    print(
        f"<stdin>:3:5: error: 'func.func' op {limit}\n<stdin>:3:5: note: see current"
        " operation: \n  %0 = dump"
    )
    return 1


def parse_error(argv: Words) -> int:
    """Printed operations have their places where those are printed at all, as the real one's have."""
    place = ' loc("layer.0")' if "--mlir-print-debuginfo" in argv else ""
    print(
        "<stdin>:2:23: error: use of undeclared SSA value name\n  %0 = arith.addf %a,"
        f" %b : f32{place}"
    )
    return 1


def warn() -> int:
    print("warning: something harmless")
    return 0


def say(action: str) -> int:
    """`say CODE TEXT`: that text, and that exit code."""
    _, code, text = action.split(" ", 2)
    print(text)
    return int(code)


def misbehave(action: str, argv: Words, home: str) -> int:
    """What a knob asks for; 0 where the compile then goes on."""
    actions: dict[str, Callable[[], int]] = {
        "crash": crash,
        "hang": lambda: hang(home),
        "flood": flood,
        "refuse": lambda: refuse(argv),
        "fail": lambda: parse_error(argv),
        "once-fails": lambda: parse_error(argv) if turn(home) == 0 else 0,
        "warn": warn,
    }
    return (
        say(action)
        if action.startswith("say ")
        else actions[action]()
        if action in actions
        else 0
    )


def action_for(kind: str, text: str, argv: Words, rules: list[dict[str, str]]) -> str:
    """The `do` of the first rule whose `kind`, `model` and `argv` all fit."""
    line = " ".join(argv)
    for rule in rules:
        if (
            kind in rule.get("kind", kind).split()
            and rule.get("model", "") in text
            and rule.get("argv", "") in line
        ):
            return rule["do"]
    return ""


def kind_of(argv: Words) -> str:
    """What the bot wants from this call."""
    return "options" if value(argv, "--compile-to") == "input" else "direct"


def write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def write_products(argv: Words) -> None:
    """The files of the measuring options."""
    if name := value(argv, "--stack-usage-file"):
        write(name, b"-:1:main_dispatch_0\t64\tstatic\n")
    if name := value(argv, "--iree-scheduling-dump-statistics-file"):
        write(name, STATISTICS)
    if name := value(argv, "--dump-compilation-phases-to"):
        os.makedirs(name, exist_ok=True)
        for phase in ("5.dispatch-creation", "7.stream", "10.executable-targets"):
            write(f"{name}/module.{phase}.mlir", f"// {phase}\n".encode())
    if "--iree-llvmcpu-keep-linker-artifacts" in argv and "llvm-cpu" in value(
        argv, "--iree-hal-target-backends"
    ):
        write(f"{os.environ['TMPDIR']}/main_dispatch_0-1f3ebc.o", b"\x7fELF of no use")


def added(action: str, home: str) -> bytes:
    """What makes an artifact another one: larger, of chance, or alternately larger and not."""
    actions = action.split()
    larger = b"!" * 64 * actions.count("grow") + b"!" * ("differ" in actions)
    if "flaky" in actions and turn(home) % 2 == 0:
        larger += b"!" * 64
    return larger + (os.urandom(8) if "random" in actions else b"")


def turn(home: str) -> int:
    """How often this was asked before, by any process of this fake."""
    with open(os.path.join(home, "turns"), "a+b") as file:
        file.write(b".")
        return file.tell() - 1


def compile_module(
    kind: str, text: str, argv: Words, action: str, home: str, templates: dict[str, str]
) -> bytes:
    """The output of a compile that goes well, or nearly."""
    if kind == "options":
        return text.encode()
    backend = value(argv, "--iree-hal-target-backends")
    template = b""
    if backend in templates:
        with open(templates[backend], "rb") as file:
            template = file.read()
    whole = artifact(text, argv, template) + added(action, home)
    return whole[: len(whole) // 2] if action == "truncate" else whole


def log_call(home: str, kind: str, text: str, argv: Words) -> None:
    """Append one line, whole even where two compilers run at once."""
    _, is_named, name = text.partition("// model ")
    model = name.split()[0] if is_named and name.strip() else ""
    words = ", ".join(map(encode_basestring_ascii, argv))
    line = (
        f'{{"kind": "{kind}", "model": {encode_basestring_ascii(model)},'
        f' "argv": [{words}], "pid": {os.getpid()}}}'
    )
    handle = os.open(
        os.path.join(home, "calls.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT
    )
    os.write(handle, line.encode() + b"\n")
    os.close(handle)


def unknown_option(argv: Words, unknown: list[str]) -> str | None:
    """The first option that this release does not know."""
    return next((word for word in argv if word.partition("=")[0] in unknown), None)


def burn() -> None:
    """Use CPU time."""
    import time

    while time.process_time() < BURNT_SECONDS:
        pass


def main(home: str, knobs: dict[str, Any], argv: Words) -> int:
    """Compile, or answer a question."""
    if argv == ["--version"]:
        print(
            f"IREE (https://iree.dev):\n  IREE compiler version {knobs['version']} @"
            f" {'ab' * 20}\n  LLVM version 24"
        )
        return 0
    text = sys.stdin.read()
    kind = kind_of(argv)
    log_call(home, kind, text, argv)
    if unknown := unknown_option(argv, knobs["unknown"]):
        print(
            f"iree-compile: Unknown command line argument '{unknown}'.  Try:"
            f" '{sys.argv[0]} --help'",
            file=sys.stderr,
        )
        return 1
    action = action_for(kind, text, argv, knobs["rules"])
    if code := misbehave(action, argv, home):
        return code
    if "burn" in action.split():
        burn()
    compiled = compile_module(
        kind,
        text=text,
        argv=argv,
        action=action,
        home=home,
        templates=knobs["templates"],
    )
    write_products(argv)
    if action != "nothing":
        write(argv[argv.index("-o") + 1], compiled)
    if action.startswith("huge "):
        _, size, name = action.split(" ", 2)
        os.truncate(name, int(size))
    return 0
