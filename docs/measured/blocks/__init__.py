"""One module a table, or a section whose sentences belong to one table: each has a tuple `BLOCKS`."""
