"""Knobs: what a kernel can be told, where, and how it is changed and put back."""
