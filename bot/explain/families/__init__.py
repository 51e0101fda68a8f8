"""Families of executables that differ in little."""
