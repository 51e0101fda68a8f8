"""What is said of whole models."""
