"""What the user and the event say, as values: YAML configuration and units."""
