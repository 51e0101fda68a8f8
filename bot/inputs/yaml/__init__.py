"""YAML with the position of every key."""
