"""The program `ktrial`, before anything of it is imported: Ctrl-C ends it at once, without a traceback.

Python raises KeyboardInterrupt wherever it is, and while modules are imported nobody can catch that. So
SIGINT has its default action until `ktrial.cli.main` hears it. Who ignores it (a shell's background job)
still does.
"""

# Both are built in: nothing has to be read.
import _signal  # type: ignore[import-not-found]
import posix

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """As `ktrial.cli.main.main`."""
    try:
        from ktrial.cli.main import main as run
    except (MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and "failed to map segment" not in str(error):
            raise
        # With so little not even what tells of errors can be loaded.
        posix.write(2, b"ktrial: error: There is not enough memory to start.\n")
        posix._exit(71)
    run()
