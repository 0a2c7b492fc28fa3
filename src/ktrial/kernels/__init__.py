"""Obtain kernels: providers, cache, vmlinux, modules, symbols."""
