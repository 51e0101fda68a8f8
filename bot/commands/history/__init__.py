"""The commands over many releases: history, bisect, ratchet and the replay of thresholds."""
