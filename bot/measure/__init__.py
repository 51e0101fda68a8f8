"""Readers: bytes or text of one format in, numbers out."""
