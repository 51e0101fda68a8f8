"""The command line: grammar, exit codes, what a terminal shows while work goes on."""
