"""Statistics: pure functions of numbers. Nothing here knows of kernels, stores or pages."""
