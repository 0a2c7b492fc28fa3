"""Bundles: a study with all that it measured in one archive, which others check and repeat.

`writing` makes one from a store; `reading` reads somebody else's, which is hostile until shown otherwise;
`replicating` runs that again in guests, and compares.
"""
