"""Frozen values that the rooms exchange."""
