"""The script that folds executables, and its siblings: run beside the compiler's own bindings, never imported here."""
