"""What `/bin/sh` does on a machine whose boot loader boots a kernel once: all of it, as text.

GRUB: an entry in custom.cfg, which the menu that distributions make reads, and `grub-reboot`. systemd-boot:
an entry and a copy of the kernel on its partition, and `bootctl set-oneshot`. Each is read back before the
machine goes down. Both loaders forget what they were told before they start the kernel: whatever that comes
to, the next boot is the machine's own. Where GRUB cannot write (Btrfs, LVM, RAID) it would not forget, and is
not used. systemd-boot, where nobody has named a default, takes the first of its entries, in descending order
of their names: ktrial's name comes last there, and where `bootctl list` has it first nevertheless (systemd
before 250), it is not used.
"""

ENTRY = "ktrial"
"""The entry's name in GRUB, and its title in systemd-boot."""
FILE = "-ktrial.conf"
"""The entry's file for systemd-boot: the hyphen puts it behind all that begin with a letter or a digit."""
MARK = "# made by ktrial, which takes it away"

LOOK = f"""G=; for P in grub grub2; do
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

GRUB = """G={grub}; F=$R/boot/$G/custom.cfg; I={image}; N={initrd}
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

SYSTEMD_BOOT = """X={path}; I={image}; N={initrd}
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

CLEAN = f"""for G in grub grub2; do
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
