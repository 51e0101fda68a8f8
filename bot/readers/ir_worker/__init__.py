"""A script of its own, which runs beside the bindings of the compiler under test."""
