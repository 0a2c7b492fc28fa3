"""A table for terminals that are too narrow for it."""

from dataclasses import replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table


class FittedTable(Table):
    """A table whose rows keep their names, however narrow the terminal is."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As it is; where names would be cut, each on a line of its own, above what its row says."""
        width = self.width
        lines = self._without_names(console, options) if width is None else []
        if not lines:
            yield from super().__rich_console__(console, options)
            return
        names = list(self.columns[0].cells)
        above = [None, *names] if self.show_header else names
        for name, line in zip(above, lines, strict=True):
            if name is not None:
                yield name
            yield Segment("  ")
            yield from line
            yield Segment.line()

    def _without_names(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        """The lines of all other columns, one a row; none where the table fits, or has no such lines."""
        others = self.columns[1:]
        if not others or not all(column.no_wrap for column in others):
            return []
        rest = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=self.header_style)
        rest.show_header = self.show_header
        rest.columns = [replace(column, _index=place) for place, column in enumerate(others)]
        rest.rows = self.rows
        words = [word for cell in self.columns[0].cells for word in str(cell).split()]
        needed = max(map(len, words), default=0) + 2
        room = options.max_width - Measurement.get(console, options, rest).maximum
        if room >= needed:
            return []
        lines = console.render_lines(rest, options.update_width(options.max_width - 2), pad=False)
        return lines if len(lines) == len(self.rows) + self.show_header else []
