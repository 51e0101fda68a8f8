"""Pure rules: differences, verdicts, acceptance, merging, sharding."""
