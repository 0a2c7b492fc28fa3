"""How another machine may be named: nothing that a shell, ssh or a `ProxyCommand` could take for more."""

import re

ALLOWED = "HOST or USER@HOST of letters, digits, dots, hyphens and underscores, as in ~/.ssh/config"
_USER = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"
_HOST = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"
_NAME = re.compile(f"(?:{_USER}@)?{_HOST}")


def is_host_name(name: str) -> bool:
    """Whether the name is no option, and has no character that means something to a shell."""
    return _NAME.fullmatch(name) is not None
