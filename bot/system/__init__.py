"""What touches the machine: processes, files, git, HTTP."""
