"""The script that constrains dynamic dimensions, and its siblings: run beside the compiler's own bindings, never imported here."""
