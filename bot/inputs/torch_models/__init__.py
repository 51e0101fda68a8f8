"""Suites in the layout of IREE's `torch_models`: their modules, targets and goldens."""
