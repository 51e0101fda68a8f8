"""Touch the machine: processes, files, git and HTTP."""
