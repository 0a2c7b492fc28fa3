"""A command, run once here and watched, becomes a workload with all that it needs in a guest."""
