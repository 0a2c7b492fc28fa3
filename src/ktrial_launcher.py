"""The program `ktrial`, before anything of it is imported: Ctrl-C ends it at once, without a traceback.

Python raises KeyboardInterrupt wherever it is, and while modules are imported nobody can catch that. So
SIGINT has its default action until `ktrial.cli.main` hears it. Who ignores it (a shell's background job)
still does.
"""

import _signal  # type: ignore[import-not-found]  # built in: nothing has to be read

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """As `ktrial.cli.main.main`."""
    from ktrial.cli.main import main as run

    run()
