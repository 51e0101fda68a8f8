"""Executables of one cell that are equal but for one kind of static information."""
