"""What `docs/write_numbers.py` is made of: declarations of blocks, measuring, writing, comparing."""
