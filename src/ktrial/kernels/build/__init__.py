"""Kernels built from source: by content (`builds.build`), or in a directory kept for it (`builds.add`)."""
