"""Turn a compiler SPEC into finished compiles.

The folder has toolchains, command lines, processes and the cache.
"""
