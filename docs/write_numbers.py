"""Writes the measured numbers of the documentation, or says which are no longer what is measured.

    .venv/bin/python docs/write_numbers.py [NAME...]            measure, and write
    .venv/bin/python docs/write_numbers.py --check [NAME...]    measure, and say what differs (exit status 1)
    .venv/bin/python docs/write_numbers.py --list               what there is

A block of a page between the lines `<!-- numbers: NAME -->` and `<!-- end -->` is written by the declaration
of that name in docs/measured/blocks. What was measured is kept below ktrial's cache: an interrupted run goes
on where it stopped.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from docs.measured.command import main

    sys.exit(main())
