"""Errors about files of measurements from elsewhere."""

from ktrial.errors import KtrialError


class ImportFailed(KtrialError):
    """{file}: {problem}"""

    exit_code = 2


class MeasurementsUnreadable(ImportFailed):
    """{file} cannot be read: {problem}."""

    hint = "give a file that holds results; what is understood: ktrial help statistics"


class MeasurementsTooLarge(ImportFailed):
    """{file} is too large: {size} MiB, where {limit} MiB are the most that ktrial reads."""

    hint = "results are small; this is probably a log of something else"


class FormatUnknown(ImportFailed):
    """{file} is in no format that ktrial reads: {known}."""

    hint = "a CSV file with a header, a column that names the groups and one of numbers always works"


class MeasurementsDamaged(ImportFailed):
    """{file}, taken for {format}: {where}: {problem}."""

    hint = "the file may be cut short, or changed by hand; write it again with the tool that made it"


class UnsafeXml(ImportFailed):
    """{file}: the XML declares {what}, which no results file needs and which can harm who reads it."""

    hint = "remove the document type declaration, if you trust the rest"


class NoMeasurements(ImportFailed):
    """{file}, taken for {format}, holds no measurements: {problem}."""

    hint = "look at the file; a run that failed leaves one like this"


class TooManyGroups(ImportFailed):
    """{file} has more than {most} groups in one comparison."""

    hint = "--group-by COLUMN,… names the columns that tell the groups apart; no other is then looked at"


class ColumnUnknown(ImportFailed):
    """{file} has no column {column}{similar}; it has: {known}."""

    hint = "--group-by and --value take names from the header"


class GroupUnknown(ImportFailed):
    """There is no group {group}{similar}; there are: {known}."""

    hint = "--baseline takes a group's label as the output shows it"
