#!/usr/bin/python3 -P
"""The program ktrial, with the packages that it came with before any of the system's."""

import sys

sys.path.insert(0, "/usr/lib/ktrial")

from ktrial_launcher import main  # found where the line above says

main()
