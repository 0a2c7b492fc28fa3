"""Plans blocks, runs trials, resumes: the only layer that knows all siblings."""
