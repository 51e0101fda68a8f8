"""Artifacts are run: fed, timed, and their outputs compared."""
