"""Binary and source formats of artifacts and executables."""
