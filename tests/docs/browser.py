"""A headless browser for tests: it shows a page that measures itself and leaves what it found in the page."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
# Whether a page fits, and does what it should, can only be seen in a browser; `make test` installs one.
needs_a_browser = pytest.mark.skipif(_BROWSER is None, reason=f"needs a browser: {', '.join(BROWSERS)}")


def found_in(page: Path, directory: Path) -> Any:
    """What the page has put, as JSON, into its element `measured`. Frames may be files beside it."""
    options = (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--hide-scrollbars", "--disable-background-networking", "--disable-component-update"),
        # By a clock that jumps to the next timer where there is nothing to do.
        "--virtual-time-budget=10000",
        *("--disable-sync", "--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND"),
        f"--user-data-dir={directory / 'profile'}",
    )
    command = (str(_BROWSER), *options, "--dump-dom", page.as_uri())
    dump = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="measured">(.*?)</pre>', dump, re.DOTALL)
    assert found, dump[-2000:]
    return json.loads(html.unescape(found[1]))
