"""The keeper: a POSIX shell on the other machine that owns ktrial's directory there, and takes it away.

It lives as long as its standard input: when the connection ends, ktrial is killed, or nothing is heard for
a minute, it puts back what was set, latest first, and removes the directory. A second process watches the
first. Each setting is two files, `N.path` and `N.old`, written before the kernel's file is; a directory
`busy` is made around that, so that nothing is set any more once the keeper has begun to put back. Settings do
not outlive the system: after a reboot there is nothing to put back. The lock is flock(2) on `/`: it ends with
the keeper. Whose it is says a file that all may read; of a machine that is booted the keeper also touches the
lease (see `lease`), each time that it hears of ktrial.
"""

READY = "ktrial-directory "
IN_USE = "ktrial-in-use"
BEAT_SECONDS = 10.0
"""How often something is written to its standard input."""
NUMBER = "n"
"""The file with the number of the last setting."""

# No quote ', no backslash, no newline and no !: every login shell, csh too, hands it on as it is.
_UNDO = """
undo() {
  i=0; until mkdir "$D/busy" 2>/dev/null || [ "$i" -ge 5 ]; do sleep 1; i=$((i+1)); done;
  n=$(cat "$D/n" 2>/dev/null || echo 0);
  while [ "$n" -gt 0 ]; do
    if [ -f "$D/$n.old" ]; then
      P=$(cat "$D/$n.path"); cat "$D/$n.old" 2>/dev/null >"$P"; rm -f "$D/$n.old";
    fi;
    n=$((n-1));
  done;
  rm -f "$D/n"; rmdir "$D/busy" 2>/dev/null;
};
"""
_SWEEP = """
for D in /tmp/ktrial.* /var/tmp/ktrial.* "$HOME"/ktrial.*; do
  [ -d "$D" ] || continue;
  [ -n "$(find "$D" -prune -type d -user "$(id -u)" 2>/dev/null)" ] || continue;
  read -r K <"$D/keeper" || continue;
  kill -0 "$K" 2>/dev/null && continue;
  undo; rm -rf "$D";
done 2>/dev/null;
"""
# The try begins as scripts do: not every shell runs a file that does not. awk knows the letter of number 33.
_PLACE = """
M=$(awk -v f=%c "BEGIN{printf f,33}" 2>/dev/null);
for B in /tmp /var/tmp "$HOME"; do
  D=$(mktemp -d "$B/ktrial.XXXXXXXX" 2>/dev/null) || { D=; continue; };
  echo "#$M/bin/sh" >"$D/try"; echo "exit 0" >>"$D/try"; chmod 700 "$D/try"; "$D/try" 2>/dev/null && break;
  rm -rf "$D"; D=;
done;
[ -n "$D" ] || { echo "no directory may hold programs: /tmp, /var/tmp, $HOME" >&2; exit 4; };
echo $$ >"$D/keeper";
"""
_KEEP = """
(
  exec 9<&- </dev/null >/dev/null 2>&1; k=0;
  while [ -d "$D" ]; do
    sleep 5;
    if kill -0 $$ 2>/dev/null; then :; else undo; rm -rf "$D"; exit; fi;
    if [ -f "$D/beat" ]; then rm -f "$D/beat"; k=0; else k=$((k+1)); fi;
    if [ "$k" -ge 12 ]; then undo; rm -rf "$D"; kill -9 $$; exit; fi;
  done
) &
echo "ktrial-directory $D";
while read -r L; do
  : >"$D/beat";
  if [ -f "$D/lease" ]; then : >/var/lib/ktrial/beat; touch /var/lib/ktrial/lease; fi 2>/dev/null;
  case "$L" in
    undo) undo; echo undone;;
    who*) echo "$L" >"$D/who"; chmod 644 "$D/who"; chmod 711 "$D";;
  esac;
done;
undo 2>/dev/null; rm -rf "$D";
"""
_WHO = """
for W in /tmp/ktrial.*/who /var/tmp/ktrial.*/who; do
  [ -f "$W" ] && head -c 200 "$W" | tr -cd "[:alnum:]@._: -" && echo;
done 2>/dev/null;
"""
_SCRIPT = f"""
umask 077; LC_ALL=C; export LC_ALL; trap "" HUP INT TERM PIPE; exec 9</;
if command -v flock >/dev/null 2>&1; then flock -n 9 || {{ echo {IN_USE}; {_WHO} exit 3; }}; fi;
{_UNDO} {_SWEEP} {_PLACE} {_KEEP}
"""


def command() -> str:
    """What the login shell of the other machine is given: one line, the same for every study."""
    return f"exec /bin/sh -c '{' '.join(_SCRIPT.split())}'"
