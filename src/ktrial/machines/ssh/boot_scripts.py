"""What `/bin/sh` does on a machine that is booted into other kernels: all of it, as text.

Everything lies below /var/lib/ktrial there: `kernels/DIGEST` (image, modules, configuration, initial RAM
disk), `lease` (whose the machine is), `beat` (it was heard of since it was last looked), `warden` (the script
that leads back) and `clean` (the script that takes all away). Elsewhere there are only links of
/lib/modules to there, and the unit that starts the warden. `$R` is empty; tests have a tree of their own.
"""

from ktrial.machines.ssh import boot_loader_scripts

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
_CLEAN_ALL = boot_loader_scripts.CLEAN + _CLEAN

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

KEXEC = """I={image}; N={initrd}
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
