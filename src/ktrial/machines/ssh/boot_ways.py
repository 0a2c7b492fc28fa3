"""How a machine is booted into a kernel once: by kexec, or by its boot loader's entry for one boot."""

import hashlib
import re
import shlex
from dataclasses import dataclass
from typing import Protocol

from ktrial.model.kernel import Kernel
from ktrial.text_lines import lines_of

KEXEC, GRUB, SYSTEMD_BOOT = "kexec", "grub", "systemd-boot"
_GRUB_WRITES = ("ext2", "xfs", "fat", "jfs", "ufs2")
"""As grub-probe calls them (ext2: up to ext4), of those on which GRUB can write to its own file."""


# What `/bin/sh` does on a machine whose boot loader boots a kernel once: all of it, as text.
#
# GRUB: an entry in custom.cfg, which the menu that distributions make reads, and `grub-reboot`.
# systemd-boot: an entry and a copy of the kernel on its partition, and `bootctl set-oneshot`. Each is read
# back before the machine goes down. Both loaders forget what they were told before they start the kernel:
# whatever that comes to, the next boot is the machine's own. Where GRUB cannot write (Btrfs, LVM, RAID) it
# would not forget, and is not used. systemd-boot, where nobody has named a default, takes the first of its
# entries, in descending order of their names: ktrial's name comes last there, and where `bootctl list` has
# it first nevertheless (systemd before 250), it is not used.

ENTRY = "ktrial"
"""The entry's name in GRUB, and its title in systemd-boot."""
MARK = "# made by ktrial, which takes it away"
_NAMES = {"mark": MARK, "entry": ENTRY}


@dataclass(frozen=True)
class Looked:
    """What the machine said of itself, by name."""

    facts: dict[str, str]

    @property
    def boot_id(self) -> str:
        """Another one after each boot."""
        return self.facts.get("boot_id", "")

    @property
    def release(self) -> str:
        """`uname -r`."""
        return self.facts.get("release", "")

    @property
    def command_line(self) -> str:
        """The kernel's."""
        return self.facts.get("command_line", "")

    @property
    def token(self) -> str:
        """Which boot of ktrial's it is; empty: its own kernel."""
        return token_of(self.command_line)

    def lacks(self) -> list[str]:
        """What keeps it from being booted in any way, in words."""
        needed = {
            "ktrial has to log in there as root, or become root by sudo": self.facts.get("uid") == "0",
            "it has no systemd": "systemd" in self.facts,
            f"it has nothing that makes an initial RAM disk ({' or '.join(MAKERS)})": (
                "initrd_tool" in self.facts
            ),
            f"there is no /boot/vmlinuz-{self.release}, the image of its own kernel": "image" in self.facts,
        }
        return [problem for problem, is_met in needed.items() if not is_met]


class BootWay(Protocol):
    """How the machine is booted, once."""

    name: str

    def lacks(self, machine: Looked) -> list[str]:
        """What keeps it from being used there, in words."""
        ...

    def script(self, machine: Looked, image: str, initrd: str, command_line: str) -> str:
        """What boots it. `image`, `initrd`: quoted for the shell. Raises ValueError."""
        ...


class _Kexec:
    name = KEXEC

    def lacks(self, machine: Looked) -> list[str]:
        needed = {
            "it has no kexec (apt install kexec-tools, dnf install kexec-tools)": "kexec" in machine.facts,
            "its kernel cannot load another one by kexec (CONFIG_KEXEC, kernel.kexec_load_disabled)": (
                "kexec_kernel" in machine.facts
            ),
        }
        return [problem for problem, is_met in needed.items() if not is_met]

    def script(self, machine: Looked, image: str, initrd: str, command_line: str) -> str:
        words = shlex.quote(f"--command-line={command_line}")
        return KEXEC_SCRIPT.format(image=image, initrd=initrd, command_line=words)


class _Grub:
    name = GRUB

    def lacks(self, machine: Looked) -> list[str]:
        if "grub" not in machine.facts:
            return ["it has no GRUB (grub-reboot, /boot/grub/grub.cfg)"]
        disk, system = machine.facts.get("grub_disk", ""), machine.facts.get("grub_fs", "")
        needed = {
            "its grub.cfg does not read custom.cfg or next_entry: update-grub": "grub_menu" in machine.facts,
            "it has a /boot/grub/custom.cfg of its own": "grub_custom" not in machine.facts,
            f"GRUB cannot write to {disk or system or 'its disk'}, so it could not forget what it boots": (
                not disk and system in _GRUB_WRITES
            ),
        }
        return [problem for problem, is_met in needed.items() if not is_met]

    def script(self, machine: Looked, image: str, initrd: str, command_line: str) -> str:
        if wrong := sorted(set(command_line) & set("'\"\\")):
            raise ValueError(f"GRUB's menu does not accept {' '.join(wrong)} in a command line")
        words = " ".join(shlex.quote(f"'{word}'") for word in command_line.split())
        facts = {"grub": machine.facts["grub"], "image": image, "initrd": initrd, "words": words}
        return GRUB_SCRIPT.format(**_NAMES, **facts) + GO


class _SystemdBoot:
    name = SYSTEMD_BOOT

    def lacks(self, machine: Looked) -> list[str]:
        return (
            [] if "systemd_boot" in machine.facts else ["it was not booted by systemd-boot (bootctl status)"]
        )

    def script(self, machine: Looked, image: str, initrd: str, command_line: str) -> str:
        path, words = shlex.quote(machine.facts["systemd_boot"]), shlex.join(command_line.split())
        place = {"path": path, "file": FILE}
        facts = {**place, "image": image, "initrd": initrd, "words": words}
        return SYSTEMD_BOOT_SCRIPT.format(**_NAMES, **facts) + GO


WAYS: dict[str, BootWay] = {way.name: way for way in (_Kexec(), _SystemdBoot(), _Grub())}
"""The one that is taken where the user's configuration says nothing comes first."""


def way_of(machine: Looked, preferred: str) -> tuple[BootWay, list[str]]:
    """The way that was asked for, or else the first that can be used; and what it lacks."""
    if preferred:
        return WAYS[preferred], WAYS[preferred].lacks(machine)
    usable = (way for way in WAYS.values() if not way.lacks(machine))
    if way := next(usable, None):
        return way, []
    every = [problem for way in WAYS.values() for problem in way.lacks(machine)]
    return WAYS[KEXEC], every


# What `/bin/sh` does on a machine that is booted into other kernels: all of it, as text.
#
# Everything lies below /var/lib/ktrial there: `kernels/DIGEST` (image, modules, configuration, initial RAM
# disk), `lease` (whose the machine is), `beat` (it was heard of since it was last looked), `warden` (the
# script that leads back) and `clean` (the script that takes all away). Elsewhere there are only links of
# /lib/modules to there, and the unit that starts the warden. `$R` is empty; tests have a tree of their own.

LEASE_SECONDS = 300
"""So long nobody is heard of before the machine goes back by itself."""
_LOOK_SECONDS = 10
TOKEN = "ktrial.boot"
"""The boot parameter that tells a boot of ktrial's from every other: `ktrial.boot=HEX`."""
UNIT = "ktrial-return.service"
HEAD = """PATH=$PATH:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL; umask 022
R={root}; B=$R/var/lib/ktrial; D={directory}
"""
LOOK = """one() { printf '%s=%s\\n' "$1" "$2"; }
V=$(uname -r)
one uid "$(id -u)"
one boot_id "$(cat "$R/proc/sys/kernel/random/boot_id")"
one release "$V"
one version "$(uname -v)"
one command_line "$(cat "$R/proc/cmdline")"
[ -d "$R/run/systemd/system" ] && one systemd yes
command -v kexec >/dev/null && one kexec yes
N=$(cat "$R/proc/sys/kernel/kexec_load_disabled" 2>/dev/null || echo 0)
[ -e "$R/sys/kernel/kexec_loaded" ] && [ "$N" = 0 ] && one kexec_kernel yes
for T in mkinitramfs dracut; do command -v $T >/dev/null && { one initrd_tool $T; break; }; done
for I in "$R/boot/vmlinuz-$V" "$R/lib/modules/$V/vmlinuz"; do
  [ -f "$I" ] && { one image "$I"; break; }
done
for I in "$R/boot/initrd.img-$V" "$R/boot/initramfs-$V.img"; do
  [ -f "$I" ] && { one initrd "$I"; break; }
done
"""
"""Changes nothing; what it says of boot loaders comes behind it."""
READ_BACK = """one() { printf '%s=%s\\n' "$1" "$2"; }
[ -e "$R/proc/vmcore" ] && one vmcore yes
one modules "$(wc -l <"$R/proc/modules")"
[ -r "$R/proc/config.gz" ] && one config "$(gzip -dc <"$R/proc/config.gz" | sha256sum | cut -d ' ' -f 1)"
for F in "$R"/sys/devices/system/cpu/vulnerabilities/*; do
  [ -f "$F" ] && one "cpu vulnerability ${F##*/}" "$(cat "$F")"
done
:
"""
_BY_FIRMWARE = """kexec -u 2>/dev/null
[ -e {root}/etc/init.d/kexec-load ] && : >{root}/no-kexec-reboot
sync; SYSTEMCTL_SKIP_AUTO_KEXEC=1 systemctl reboot --no-block
"""
"""systemctl since 254 would take a kernel that kexec has loaded. Debian's kexec-tools make a kexec of every
reboot, into /vmlinuz with the command line of the kernel that runs, unless /no-kexec-reboot is there.
"""
_WARDEN = f"""B={{root}}/var/lib/ktrial; C={{root}}/proc/cmdline; k=0
there() {{{{ grep -q {TOKEN}= $C; }}}}
dog() {{{{
  [ -e {{root}}/dev/watchdog ] || modprobe softdog 2>/dev/null
  exec 8>{{root}}/dev/watchdog || exit
  trap 'printf V >&8; exit' TERM
  while [ -d $B ]; do echo >&8; sleep {_LOOK_SECONDS} & wait $!; done
  printf V >&8
}}}}
there && ( dog ) 2>/dev/null &
while [ -d $B ]; do
  if [ -f $B/beat ]; then rm -f $B/beat; k=0; else k=$((k+1)); fi
  if [ -f $B/release ] || [ $k -gt {LEASE_SECONDS // _LOOK_SECONDS} ]; then
    if there; then
{_BY_FIRMWARE}      sleep 120 & wait $!
      sync; echo b >{{root}}/proc/sysrq-trigger
    else
      exec sh $B/clean
    fi
  fi
  sleep {_LOOK_SECONDS} & wait $!
done
"""
"""Runs as a service in every boot, as long as ktrial's files are there."""
_CLEAN = f"""for L in {{root}}/lib/modules/* {{root}}/boot/config-*; do
  [ -L "$L" ] && case $(readlink "$L") in {{root}}/var/lib/ktrial/*) rm -f "$L";; esac
done
U={{root}}/etc/systemd/system
rm -f $U/multi-user.target.wants/{UNIT} $U/{UNIT}
rm -rf {{root}}/var/lib/ktrial
systemctl daemon-reload
"""
FILE = "-ktrial.conf"
"""The entry's file for systemd-boot: the hyphen puts it behind all that begin with a letter or a digit."""
CLEAN_BOOT_LOADERS = f"""for G in grub grub2; do
  F={{root}}/boot/$G/custom.cfg
  [ -f "$F" ] && [ "$(head -n 1 "$F")" = '{MARK}' ] && rm -f "$F"
  command -v $G-editenv >/dev/null && $G-editenv list 2>/dev/null | grep -qx 'next_entry={ENTRY}' &&
    $G-editenv - unset next_entry
done
if command -v bootctl >/dev/null && X=$(bootctl --print-boot-path 2>/dev/null) && [ -d "$X/ktrial" ]; then
  rm -rf "$X/ktrial"; rm -f "$X/loader/entries/{FILE}"
  bootctl set-oneshot '' 2>/dev/null
fi
"""
"""As part of what takes all away; `{root}` is put in there."""
_CLEAN_ALL = CLEAN_BOOT_LOADERS + _CLEAN
_UNIT = """[Unit]
Description=ktrial: leads this machine back to its own kernel

[Service]
ExecStart=/bin/sh {root}/var/lib/ktrial/warden
"""
_LEASE = """[ -L "$B" ] && {{ echo "$B is a link" >&2; exit 3; }}
mkdir -p "$B/kernels" || exit 3
rm -f "$B/release"
printf '%s\\n' {lines} >"$B/lease.new" && mv "$B/lease.new" "$B/lease" || exit 3
: >"$B/beat"; : >"$D/lease"
"""
_SERVICE = """U=$R/etc/systemd/system
mkdir -p "$U/multi-user.target.wants" || exit 3
cat >"$B/clean" <<'KTRIAL_END'
{clean}KTRIAL_END
cat >"$B/warden" <<'KTRIAL_END'
{warden}KTRIAL_END
cat >"$U/{unit}" <<'KTRIAL_END'
{text}KTRIAL_END
ln -sf "../{unit}" "$U/multi-user.target.wants/{unit}" || exit 3
systemctl daemon-reload && systemctl --no-block start {unit}
"""
HELD = """[ -f "$B/lease" ] || exit 0
cat "$B/lease"; echo "$(( $(date +%s) - $(stat -c %Y "$B/lease") ))"
"""
"""Whose the machine is, and how many seconds ago it was last heard of."""
BEAT = ': >"$B/beat"; : >"$D/lease"\n'
"""The keeper of a new connection says from now on that the lease is held."""
HAS = '[ -f "$B/kernels/{name}/complete" ] && echo yes; :\n'
RECEIVE = """K=$B/kernels/{name}; rm -rf "$K"; mkdir -p "$K/modules" || exit 3
"""
IMAGE = """K=$B/kernels/{name}; printf '%s  %s\\n' {digest} "$K/vmlinuz" | sha256sum -c >/dev/null || exit 4
"""
INITRD = """K=$B/kernels/{name}; L=$R/lib/modules/{release}
{link}
depmod {release} || exit 6
rm -f "$K/initrd.new"; C=$R/boot/config-{release}; S=0
[ -e "$C" ] || [ ! -f "$K/config" ] || ln -s "$K/config" "$C"
{make} >"$K/log" 2>&1 || S=$?
if [ -L "$C" ]; then case $(readlink "$C") in "$B"/*) rm -f "$C";; esac; fi
[ "$S" = 0 ] || {{ tail -n 1 "$K/log" >&2; exit 7; }}
[ -s "$K/initrd.new" ] || {{ echo "it made no file" >&2; exit 7; }}
mv "$K/initrd.new" "$K/initrd" && : >"$K/complete"
"""
"""mkinitramfs looks into /boot/config-RELEASE what the kernel can unpack: meanwhile there is a link."""
LINK = """if [ -e "$L" ] && [ ! -L "$L" ]; then exit 5; fi
if [ -L "$L" ]; then case $(readlink "$L") in "$B"/*) ;; *) exit 5;; esac; fi
ln -sfn "$K/modules" "$L" || exit 3"""
"""The modules where the kernel will look for them; never over what the machine itself has (status 5)."""
MAKERS = {
    "mkinitramfs": 'mkinitramfs -o "$K/initrd.new" {release}',
    "dracut": 'dracut --force "$K/initrd.new" {release}',
}
"""The tools of Debian's and Fedora's kind that make an initial RAM disk for this very machine."""
KEXEC_SCRIPT = """I={image}; N={initrd}
kexec -u 2>/dev/null
set -- {command_line}
[ -n "$N" ] && set -- "$@" "--initrd=$N"
E=$(kexec -s -l "$I" "$@" 2>&1 || kexec -l "$I" "$@" 2>&1) || {{ echo "kexec: $E" >&2; exit 8; }}
[ "$(cat "$R/sys/kernel/kexec_loaded")" = 1 ] || {{ echo "kexec loaded nothing" >&2; exit 8; }}
sync
systemctl kexec --no-block
"""
"""Boots at once, and once: whatever ends that kernel, the firmware boots the machine's own."""
CLEAN = '[ -f "$B/clean" ] && sh "$B/clean"; :\n'
RELEASE = ': >"$B/release"\n'
"""The warden takes everything away as soon as the machine's own kernel runs."""
SETTLE = """command -v timeout >/dev/null && [ -d "$R/run/systemd/system" ] &&
  timeout 120 systemctl is-system-running --wait >/dev/null 2>&1
sleep {seconds}
"""


def reboot(root: str) -> str:
    """Leads to the machine's own kernel, by its firmware."""
    return _BY_FIRMWARE.format(root=root)


def lease(lines: str) -> str:
    """Writes the lease; `lines` are quoted words."""
    return _LEASE.format(lines=lines)


def service(root: str) -> str:
    """Installs the warden, and starts it."""
    texts = {"clean": _CLEAN_ALL, "warden": _WARDEN, "text": _UNIT}
    return _SERVICE.format(unit=UNIT, **{key: text.format(root=root) for key, text in texts.items()})


LOOK_AT_BOOT_LOADERS = f"""G=; for P in grub grub2; do
  command -v $P-reboot >/dev/null && [ -f "$R/boot/$P/grub.cfg" ] && {{ G=$P; break; }}
done
if [ -n "$G" ]; then
  one grub "$G"
  F=$R/boot/$G/custom.cfg
  [ -e "$F" ] && [ "$(head -n 1 "$F")" != '{MARK}' ] && one grub_custom taken
  grep -q next_entry "$R/boot/$G/grub.cfg" && grep -q custom.cfg "$R/boot/$G/grub.cfg" && one grub_menu yes
  one grub_disk "$($G-probe --target=abstraction "$R/boot/$G" 2>/dev/null)"
  one grub_fs "$($G-probe --target=fs "$R/boot/$G" 2>/dev/null)"
fi
if command -v bootctl >/dev/null && ls "$R"/sys/firmware/efi/efivars/LoaderInfo-* >/dev/null 2>&1; then
  X=$(bootctl --print-boot-path 2>/dev/null) && [ -d "$X/loader" ] && one systemd_boot "$X"
fi
:
"""
"""Changes nothing."""
GRUB_SCRIPT = """G={grub}; F=$R/boot/$G/custom.cfg; I={image}; N={initrd}
{{
echo '{mark}'
echo "menuentry ktrial --id {entry} {{"
for T in partmap abstraction fs; do
  for M in $($G-probe --target=$T "$I" 2>/dev/null); do
    case $T in partmap) echo "insmod part_$M";; *) echo "insmod $M";; esac
  done
done
echo "search --no-floppy --fs-uuid --set=root $($G-probe --target=fs_uuid "$I")"
printf 'linux %s' "$($G-mkrelpath "$I")"; printf ' %s' {words}; echo
[ -n "$N" ] && echo "initrd $($G-mkrelpath "$N")"
echo "}}"
}} >"$F" || {{ echo "$F cannot be written" >&2; exit 8; }}
E=$($G-reboot {entry} 2>&1) || {{ echo "$G-reboot: $E" >&2; exit 8; }}
$G-editenv list | grep -qx 'next_entry={entry}' || {{ echo "$G-reboot took nothing" >&2; exit 8; }}
"""
SYSTEMD_BOOT_SCRIPT = """X={path}; I={image}; N={initrd}
mkdir -p "$X/ktrial" "$X/loader/entries" || exit 8
cp "$I" "$X/ktrial/vmlinuz" || {{ echo "no room on $X" >&2; exit 8; }}
rm -f "$X/ktrial/initrd"; [ -z "$N" ] || cp "$N" "$X/ktrial/initrd" || {{ echo "no room on $X" >&2; exit 8; }}
cmp -s "$I" "$X/ktrial/vmlinuz" || {{ echo "the image on $X is damaged" >&2; exit 8; }}
{{
echo '{mark}'; echo 'title ktrial'; echo 'linux /ktrial/vmlinuz'
[ -n "$N" ] && echo 'initrd /ktrial/initrd'
printf 'options'; printf ' %s' {words}; echo
}} >"$X/loader/entries/{file}" || exit 8
bootctl list 2>/dev/null | grep -q '^ *title: *{entry} .*(default)' && {{
  rm -f "$X/loader/entries/{file}"
  echo "systemd-boot would boot it by default: bootctl set-default with the machine's own entry" >&2; exit 8
}}
E=$(bootctl set-oneshot -- {file} 2>&1) || {{ echo "bootctl: $E" >&2; exit 8; }}
tr -d '\\000' <"$(echo "$R"/sys/firmware/efi/efivars/LoaderEntryOneShot-*)" 2>/dev/null |
  grep -q -e '{file}$' || {{ echo "bootctl set-oneshot took nothing" >&2; exit 8; }}
"""
GO = """sync
SYSTEMCTL_SKIP_AUTO_KEXEC=1 systemctl reboot --no-block
"""
WAITING = f"""S=no
for G in grub grub2; do
  command -v $G-editenv >/dev/null && $G-editenv list 2>/dev/null | grep -qx 'next_entry={ENTRY}' && S=yes
done
ls "$R"/sys/firmware/efi/efivars/LoaderEntryOneShot-* >/dev/null 2>&1 && S=yes
one() {{ printf '%s=%s\\n' "$1" "$2"; }}
one waiting "$S"
"""
"""Whether a loader still waits to boot the entry."""


# What a machine that is to be booted is: its own kernel, how it boots, what it lacks for that.

RUNNING = "running"
"""What studies call the machine's own kernel."""
_TOKEN = re.compile(rf"(?:^|\s){re.escape(TOKEN)}=([0-9a-f]+)(?=\s|$)")
_NOT_HANDED_ON = re.compile(rf"(?:^|\s)(?:BOOT_IMAGE|initrd|{re.escape(TOKEN)})=\S*")
"""What boot loaders add about their own boot."""
LONGEST = 2047
"""Bytes of a command line (COMMAND_LINE_SIZE of arch/x86/include/asm/setup.h, less its end)."""


def looked(printed: bytes) -> Looked:
    """What a script printed: lines of `name=value`."""
    lines = lines_of(printed.decode(errors="replace"))
    return Looked({name: value for name, _, value in (line.partition("=") for line in lines)})


def token_of(command_line: str) -> str:
    """The token of ktrial's; empty where there is none."""
    match = _TOKEN.search(command_line)
    return match[1] if match else ""


def command_line(machine_line: str, parameters: tuple[str, ...], token: str) -> str:
    """The machine's own, the treatment's behind it (the later one counts), and what leads back."""
    words = " ".join(_NOT_HANDED_ON.sub(" ", machine_line).split())
    return " ".join((words, *parameters, "panic=10", f"{TOKEN}={token}"))


def config_digest(kernel: Kernel) -> str:
    """SHA-256 of its configuration's text; empty where it is not at hand."""
    return hashlib.sha256(kernel.config.read_bytes()).hexdigest() if kernel.config else ""
