"""Values as JSON, and back with every field checked."""
