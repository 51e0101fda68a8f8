"""Dispatches matched across two sides, and the phase in which they first differ."""
