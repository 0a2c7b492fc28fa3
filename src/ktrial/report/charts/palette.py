"""Colours of the charts: what the SVG says in light, and the page turns into its own (dark, print) by CSS.

Blue and vermilion stay apart for every common kind of colour blindness (Okabe and Ito, 2008); equivalent and
inconclusive are both grey, and told apart by a filled and a hollow mark. Every colour comes with a symbol and
a word, so that none is needed.
"""

from ktrial.model.comparison import Verdict

INK = "#1f2328"
MUTED = "#5d6670"
RULE = "#c9d0d8"
BAND = "#edf0f3"
BASELINE = "#8a939d"
PAPER = "#ffffff"
BETTER = "#0a64ad"
WORSE = "#bf4a0b"
EQUIVALENT = "#6b7480"
INCONCLUSIVE = "#6a7381"

VERDICTS = {
    Verdict.BETTER: BETTER,
    Verdict.WORSE: WORSE,
    Verdict.EQUIVALENT: EQUIVALENT,
    Verdict.INCONCLUSIVE: INCONCLUSIVE,
    Verdict.IDENTICAL: EQUIVALENT,
}

VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    BAND: "band",
    BASELINE: "baseline",
    PAPER: "paper",
    BETTER: "better",
    WORSE: "worse",
    EQUIVALENT: "equivalent",
    INCONCLUSIVE: "inconclusive",
}
"""Colour in the SVG → the page's CSS variable (without its dashes) that replaces it."""
