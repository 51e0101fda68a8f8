"""From a compiler SPEC to finished compiles: toolchains, command lines, processes, cache."""
