"""Demangle the names on standard input, a JSON list, and print a list of texts.

Run as a script, never imported.
"""

import json
import resource
import sys

import cxxfilt

CPU_SECONDS = 20
MEMORY_BYTES = 1 << 30
LONGEST = 8_192  # Of a demangled name; a longer one says nothing to a reader


def text_of(name: str) -> str | None:
    """Return the demangled name.

    None if the name is not mangled, or longer than anyone reads.
    """
    try:
        text: str = cxxfilt.demangle(name)
    except (cxxfilt.Error, UnicodeError):
        return None
    if text and text != name and len(text) <= LONGEST:
        return text
    return None


def main() -> None:
    """Answer one list of names."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    json.dump([text_of(name) for name in json.load(sys.stdin)], sys.stdout)


main()
