"""`completion`: the script that bash and zsh read completes the grammar's own words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import needs

from bot.cli.completion import script
from bot.cli.main import COMMANDS


def completed(folder: Path, *words: str) -> set[str]:
    """What bash offers for the last of the words."""
    (folder / "script").write_text(script("bash"))
    quoted = " ".join(f"'{word}'" for word in ("code-size-bot", *words))
    lines = (
        f"source {folder}/script",
        f"COMP_WORDS=({quoted}) COMP_CWORD={len(words)}",
        "$(complete -p code-size-bot | sed 's/.*-F \\([^ ]*\\) .*/\\1/') code-size-bot",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    )
    run = subprocess.run(["bash", "-c", "\n".join(lines)], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_commands_options_and_files(tmp_path: Path) -> None:
    (tmp_path / "code-size.yml").touch()
    (tmp_path / "code-models").mkdir()
    assert completed(tmp_path, "") >= COMMANDS.keys()
    assert completed(tmp_path, "comp") == {"compare", "completion"}
    assert completed(tmp_path, "compare", "--base") == {"--base", "--base-config"}
    assert completed(tmp_path, "compare", "--format", "") == {"text", "json"}
    assert completed(tmp_path, "completion", "") >= {"bash", "zsh"}
    assert "code-size.yml" in completed(tmp_path, "compare", "--config", "code-s")


def test_zsh_reads_its_script(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script("zsh"))
    subprocess.run([needs.program("zsh"), "-n", tmp_path / "script"], check=True)
