"""Owns traces: dispatches compiled alone, with what each pass of the compiler does to them."""
