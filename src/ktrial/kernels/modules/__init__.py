"""Kernel modules: which belong to which, and reading them out of packages."""
