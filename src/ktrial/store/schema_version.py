"""Which schema this ktrial writes: apart from the tables, so that a look at it loads no SQLAlchemy."""

SCHEMA_VERSION = 14
"""1: trials, samples, counters. 2: profiles; `count` in a study's machine. 3: kernel_differences; builds in a
study, and factors that change them. 4: series; `sample_ns` in a study's machine. 5: `search` in a study,
`purpose` of a planned trial, `discarded` in a command. 6: answers.
7: digests; `executed` in a trial's provenance. 8: study_digests; `in_force` in an order between knobs.
9: proofs. 10: activities. 11: summaries. 12: machine_leases. 13: file_place, part_files.
14: which trials a study has, in study_digests: an older ktrial would add some, and not note them.

Raise it with every change to a table (`schema`), and with every field added to a model that is stored as JSON
(Study, PlannedTrial, Provenance, DataWarning, Tuned): an older ktrial must refuse what it cannot read.
`opening` brings older stores up to it, and `quick_reader` reads no others."""
