"""A source tree as small as ktrial lets pass for Linux, whose make 'builds' in no time."""

from pathlib import Path

from tests.support.kernel_images import elf

_MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 7
EXTRAVERSION =

.PHONY: allnoconfig olddefconfig x86_64_defconfig vmlinux
# What kconfig does, as far as it matters here: an option that Kconfig does not have is dropped, and so is one
# that depends on BROKEN.
resolve = grep -v -e UNKNOWN -e NEEDS_BROKEN

allnoconfig:
\t@mkdir -p $(O)
\t@$(resolve) $(KCONFIG_ALLCONFIG) > $(O)/.config
x86_64_defconfig:
\t@mkdir -p $(O)
\t@printf 'CONFIG_SMP=y\\nCONFIG_HZ=250\\n' > $(O)/.config
olddefconfig:
\t@$(resolve) $(O)/.config > $(O)/.config.new; mv $(O)/.config.new $(O)/.config
vmlinux:
\t@echo "  CC      kernel/fork.o"
\t@if [ -e broken ]; then \\
\t  echo "make[2]: Entering directory" ; \\
\t  echo "kernel/fork.c:12:3: error: 'naem' undeclared" ; \\
\t  echo "kernel/fork.c:13:3: error: and another" ; exit 1 ; fi
\t@if [ -e full ]; then echo "ld: final link failed: No space left on device"; exit 1; fi
\t@cp image $(O)/vmlinux
\t@env | sort > $(O)/environment
\t@echo "$(MAKEFLAGS) CC=$(CC)" > $(O)/flags
\t@echo "ffffffff81000000 T _text" > $(O)/System.map
"""
_MERGE = """\
#!/bin/sh
# merge_config.sh -m FRAGMENT...: the last word on an option is kept
shift
awk '/^CONFIG_/ { split($0, a, "="); if (!(a[1] in line)) order[++n] = a[1]; line[a[1]] = $0 }
     END { for (i = 1; i <= n; i++) print line[order[i]] }' "$@" > "$KCONFIG_CONFIG"
"""
_KCONFIG = """\
config SMP
\tbool "Several CPUs"

config NEEDS_BROKEN
\tbool "Never on"
\tdepends on BROKEN
\tdepends on SMP
"""


def a_source_tree(directory: Path, release: str = "6.1.7", extra: bytes = b"") -> Path:
    """Write it to a new directory; `extra` makes its kernel another one."""
    for name, text in {
        "Makefile": _MAKEFILE,
        "Kconfig": 'source "init/Kconfig"\n',
        "init/Kconfig": _KCONFIG,
        "arch/Kconfig": "",
        "arch/x86/Kconfig": "config 64BIT\n\tbool\n",
        "scripts/kconfig/merge_config.sh": _MERGE,
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (directory / "scripts/kconfig/merge_config.sh").chmod(0o755)
    (directory / "image").write_bytes(elf(release=release, extra=extra))
    return directory
