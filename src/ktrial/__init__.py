"""Controlled trials for Linux kernels: whether a change matters, by how much, and why."""

__version__ = "0.1.0"
