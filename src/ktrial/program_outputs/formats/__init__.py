"""The formats, one file a program."""
