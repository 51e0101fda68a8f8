"""What the user and the event say, as values: configuration, events, action inputs and comment commands."""
