"""`ktrial history --commits`: the range that was asked for, and what is shown of it."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrial.analysis.errors import NotMeasured
    from ktrial.analysis.history.series import HasNumbers
    from ktrial.model.kernel import Build


@dataclass(frozen=True)
class CommitsAsked:
    """A range of commits, and how their kernels were built."""

    text: str
    git: Path | None
    config: str
    options: tuple[str, ...]

    @classmethod
    def of(
        cls,
        commits: str | None,
        git: Path | None,
        config: str | None,
        options: tuple[str, ...],
        *,
        kernels: bool,
        by_time: bool,
    ) -> "CommitsAsked | None":
        """From the command's options; None where no commits are asked for. Raises BadOption."""
        from ktrial.cli.command_line import BadOption

        if commits is None:
            for name, given in (("--git", git), ("--config", config), ("--option", options)):
                if given:
                    raise BadOption(option=name, problem="it goes with --commits BASE..TIP")
            return None
        if kernels or by_time:
            other = "--kernels" if kernels else "--by-time"
            raise BadOption(option=other, problem="commits of --commits stand in their own order")
        return cls(commits, git, config or "guest", options)

    def show(
        self,
        studies: "HasNumbers",
        label: str,
        *,
        metric: str | None,
        margin: float | None,
        alpha: float,
        json: bool,
        html: Path | None,
        left_out: tuple[str, ...],
        store: str,
    ) -> None:
        """Print it. Raises BadCommitRange, NotMeasured where none of them has a number."""
        from ktrial.cli.console import output, print_json
        from ktrial.cli.files import write_page
        from ktrial.cli.render.history import print_history
        from ktrial.kernels.patch_series import series_in_git
        from ktrial.report.html.history import history_page
        from ktrial.series.commit_ranges import commit_history

        series = series_in_git(self.git or Path.cwd(), self.text)
        plain = self._build(series.base)
        of_range = commit_history(studies, label, series, plain, metric=metric, margin=margin, alpha=alpha)
        shown = of_range.history.model_copy(update={"left_out": left_out})
        if not shown.lines:
            raise self._nothing(store, label)
        if html:
            write_page(html, history_page(shown), f"ktrial history {label} --commits {self.text} --html FILE")
        if json:
            counts = {"commits": of_range.commits, "measured": of_range.measured}
            print_json({**shown.model_dump(mode="json"), **counts})
            return
        print_history(shown, output())
        print(f"{of_range.measured} of {of_range.commits} commits have a number.")
        if html:
            print(f"page: {html.expanduser().absolute()}")

    def _build(self, source: str) -> "Build":
        from ktrial.kernels.build import requested

        return requested(source, config=self.config, options=self.options, directory=Path.cwd())

    def _nothing(self, store: str, label: str) -> "NotMeasured":
        from ktrial.analysis.errors import NotMeasured

        words = ["ktrial", "series", self.text, *(["--git", str(self.git)] if self.git else [])]
        words += ["--config", self.config] if self.config != "guest" else []
        words += [word for text in self.options for word in ("--option", text)]
        hint = f"{shlex.join([*words, '--workload', label, '--every', '16'])} measures them"
        return NotMeasured(store=store, workload=label, detail=f" on a commit of {self.text}", hint=hint)
