"""The one script of a page, and what its content policy says about it."""

import base64
import hashlib
import re

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_ANY = re.compile(r"<script(?! type=\"application/json\")[^>]*>")


def assert_only_its_own_script_runs(page: str) -> None:
    """There is one script, inside the page, and by its digest the only one that may run; data are none."""
    (script,) = _SCRIPT.findall(page)
    assert _ANY.findall(page) == ["<script>"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def without_its_script(page: str) -> str:
    """The rest of the page, whose texts come from studies and guests."""
    return _SCRIPT.sub("", page, count=1) if page.count("<script>") == 1 else page
