"""Why it changed: matching, causes, components, families."""
