"""What a .config tells beside its values: which options it was offered, and under which menus they stand."""

import re
from dataclasses import dataclass, field

_END = re.compile(r"^# end of (?P<title>\S.*)$", re.MULTILINE)
_LINE = re.compile(
    r"^#\n# (?P<header>\S.*)\n#$|^# end of (?P<end>\S.*)$|^(?:# )?(?P<option>CONFIG_\w+)(?:=.*| is not set)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class ConfigText:
    """The options that a configuration mentions."""

    menus: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Option, set or said not to be set → titles of its menus, the outermost first."""

    def mentions(self, option: str) -> bool:
        """Whether Kconfig offered the option: one whose dependencies are not met is left out."""
        return option in self.menus


def read(text: str) -> ConfigText:
    """What kconfig wrote (scripts/kconfig/confdata.c): `# end of …` closes a menu since Linux 5.3.

    A header that nothing closes is a comment in its menu; where there are none of those lines, a header is
    taken for the whole path.
    """
    closed = {match["title"] for match in _END.finditer(text)}
    menus: dict[str, tuple[str, ...]] = {}
    here: list[str] = []
    for match in _LINE.finditer(text):
        if option := match["option"]:
            menus.setdefault(option, tuple(here))
        elif title := match["header"]:
            if title in closed:
                here.append(title)
            elif not closed:
                here = [title]
        elif (title := match["end"]) in here:
            del here[len(here) - 1 - here[::-1].index(title) :]
    return ConfigText(menus)
