"""Study files: TOML in, a checked Study out, and every mistake with its line, its key and what is allowed."""
