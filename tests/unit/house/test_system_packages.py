"""Which packages README, the Debian package, the container and CI name: those that ktrial itself declares."""

import re
from pathlib import Path

import pytest

from ktrial.kernels.depmod import DEPMOD
from ktrial.kernels.errors import BUBBLEWRAP
from ktrial.machines import find
from ktrial.package_names import INSTALL
from ktrial.system_tools import NeedsTools, packages_of
from ktrial.workloads.strace import STRACE

ROOT = Path(__file__).parents[3]
ESSENTIAL = {"util-linux"}
"""On every Debian: nobody has to install it."""
ONLY_PACKS = {"xz-utils", "zstd"}
"""Python unpacks kernels and modules itself."""


def of_guests() -> set[str]:
    machine = find("exact")
    assert isinstance(machine, NeedsTools)
    return set(packages_of((*machine.needed_tools, DEPMOD)).split()) - ESSENTIAL


def test_readme_names_what_guests_and_programs_of_one_s_own_need() -> None:
    (line,) = re.findall(rf"^    {re.escape(INSTALL)} (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert set(line.split()) == of_guests() | {STRACE.package}


def test_the_debian_package_depends_on_what_guests_need_and_recommends_the_rest() -> None:
    fields = dict(
        re.findall(r"^(\S+): (.*)$", (ROOT / "distribution/debian/control").read_text(), re.MULTILINE)
    )
    depends = {name for name in fields["Depends"].split(", ") if not name.startswith("${")}
    assert depends - {"libc6", "libstdc++6"} == of_guests()
    assert set(fields["Recommends"].split(", ")) == {BUBBLEWRAP.package, STRACE.package}


def test_setting_up_a_checkout_installs_the_same_for_running() -> None:
    text = (ROOT / "setup/system-packages").read_text()
    (body,) = re.findall(r"^run_packages\(\) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"need \S+ (\S+)", body)) == of_guests() | {STRACE.package}


@pytest.mark.parametrize("file", ["Containerfile", "gitlab-template.yml", "github-action/action.yml"])
def test_containers_and_ci_have_what_guests_need_and_nothing_that_is_only_recommended(file: str) -> None:
    (packages,) = re.findall(
        r"apt-get install --yes --no-install-recommends((?:[ \\\n]+[a-z0-9][a-z0-9+.-]*)+)",
        (ROOT / "distribution" / file).read_text(),
    )
    named = set(packages.replace("\\", " ").split())
    assert named >= of_guests()
    assert not named & ONLY_PACKS
