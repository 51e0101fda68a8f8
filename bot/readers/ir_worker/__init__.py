"""Read IR in a script of its own, beside the bindings of the compiler under test."""
