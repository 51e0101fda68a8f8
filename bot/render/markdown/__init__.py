"""Comment, job summary and check run."""
