"""Where tests find the project's files."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
STUDIES = ROOT / "studies"
PAPERS = STUDIES / "papers"
DATA = ROOT / "tests" / "data"
FOREIGN = DATA / "foreign"
"""What other tools wrote."""
PROGRAM_OUTPUTS = DATA / "program_outputs"
"""What installed programs printed, recorded."""
PLUGIN_COUNTS = DATA / "plugin_counts.jsonl"
SUPPORT = ROOT / "tests" / "support"
