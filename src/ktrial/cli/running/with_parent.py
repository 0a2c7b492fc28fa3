"""The program `ktrial` as another ktrial starts it: when that one is gone, it ends as on Ctrl-C.

Its standard input is a pipe whose other end the other one has, who writes nothing: it closes with that
process, however that ends (SIGKILL, out of memory). Little is imported here: see ktrial_launcher.
"""

import os
import signal
import threading


def main() -> None:
    """As `ktrial_launcher.main`."""
    import ktrial_launcher

    end_with_parent()
    ktrial_launcher.main()


def end_with_parent() -> None:
    """From now on SIGTERM comes when standard input closes, which nobody else sees: it is empty for them."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_wait, args=(pipe,), name="parent", daemon=True).start()


def _wait(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    # Who read what is told here is gone: it must not be an error while the machine is given back.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
