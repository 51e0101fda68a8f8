"""The first configuration of a repository: what it could measure, and the file that says so."""
