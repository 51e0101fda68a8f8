"""The script that constrains dimensions, and its siblings: run beside the compiler's own bindings, never imported."""
