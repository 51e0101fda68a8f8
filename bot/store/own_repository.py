"""Make a bare repository that is connected with the one that has the data branch."""

from __future__ import annotations

from pathlib import Path

from bot.system.git import Git


def own_repository(clone: Git, directory: Path, address: str) -> Git:
    """Make a bare repository in a directory, and return git for it.

    Its origin is that of the clone, or `address` if that is not empty. The clone's own
    `http` and `credential` settings and `core.sshCommand` go along: checkout actions
    leave their credentials there. A header with a token of the clone's origin does not
    go to another repository.
    """
    url = address or clone.text("remote", "get-url", "origin")
    settings_file = directory / "settings"
    path = directory / "bare"
    pattern = r"^(http|credential)\.|^core\.sshcommand$"
    clone(
        "config",
        "--local",
        "--includes",
        "--null",
        "--get-regexp",
        pattern,
        stdout=settings_file,
    )
    rows = settings_file.read_text(encoding="utf-8", errors="replace").split("\0")
    settings_file.unlink()
    sections = [_section("remote.origin.url", url)]
    for row in rows:
        key, has_value, value = row.partition("\n")
        if not has_value:
            value = "true"  # git's meaning of a key alone
        is_header = key.endswith(".extraheader")
        if key and not (address and is_header):
            sections.append(_section(key, value))
    clone.text("init", "--quiet", "--bare", str(path))
    with (path / "config").open("a", encoding="utf-8") as config_file:
        config_file.writelines(sections)
    return clone.at(path)


def _section(key: str, value: str) -> str:
    """Return one setting as a git configuration file has it.

    `key` is `section.name` or `section.<anything>.name`.
    """
    section, _, setting = key.partition(".")
    subsection, _, name = setting.rpartition(".")
    if subsection:
        head = f'[{section} "{_escaped(subsection)}"]'
    else:
        head = f"[{section}]"
    return f'{head}\n\t{name} = "{_escaped(value)}"\n'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
