"""What the user and the event say, as values: configuration, events and action inputs."""
