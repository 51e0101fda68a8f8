"""Read configuration, events and action inputs as values."""
