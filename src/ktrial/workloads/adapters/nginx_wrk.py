"""nginx under wrk: a static file over loopback."""

from ktrial.workloads.adapter import (
    PROLOGUE,
    SHELL,
    InstalledProgram,
    Program,
    Reported,
    Settings,
    described,
    less,
    more,
    whole,
)

_SCRIPT = (
    PROLOGUE
    + """
PATH="$PATH:/usr/sbin"
nginx -v 2>&1
mkdir "$scratch/html"
head -c "$1" /dev/zero >"$scratch/html/file"
chmod -R a+rX "$scratch"
cat >"$scratch/nginx.conf" <<END
worker_processes $2;
pid $scratch/pid;
error_log $scratch/error.log;
events { worker_connections 10000; }
http { access_log off; sendfile on; keepalive_requests 1000000000;
       client_body_temp_path $scratch/body; proxy_temp_path $scratch/proxy;
       fastcgi_temp_path $scratch/fastcgi; uwsgi_temp_path $scratch/uwsgi; scgi_temp_path $scratch/scgi;
       server { listen 127.0.0.1:$6; root $scratch/html; } }
END
stop_server() { [ ! -f "$scratch/pid" ] || kill "$(cat "$scratch/pid")" 2>/dev/null || :; }
nginx -e "$scratch/error.log" -p "$scratch" -c "$scratch/nginx.conf" ||
    { cat "$scratch/error.log" >&2; exit 1; }
wrk -v | sed -n '1s/ Copyright.*//p'
wrk --latency -t "$3" -c "$4" -d "$5s" "http://127.0.0.1:$6/file"
"""
)


def _arguments(settings: Settings) -> tuple[str, ...]:
    names = ("file-size", "workers", "threads", "connections", "time", "port")
    return ("-c", _SCRIPT, "nginx", *(str(settings[name]) for name in names))


WORKLOAD = InstalledProgram(
    described(
        "nginx-wrk",
        "nginx under wrk: a static file over loopback",
        "Starts an nginx of its own in a scratch directory below /tmp, has wrk fetch a file of `file-size` "
        "bytes over `connections` connections for `time` seconds, and ends it. Client and server share CPUs.",
        (more("requests", "1/s"), less("latency p50", "µs"), less("latency p99", "µs")),
        (
            whole("file-size", "bytes", 4096, low=0, high=1 << 30),
            whole("workers", "processes of nginx", 1, high=1024),
            whole("threads", "of wrk", 1, high=1024),
            whole("connections", "kept open", 64, high=10_000),
            whole("time", "seconds", 10, high=86400),
            whole("port", "on 127.0.0.1", 18080, low=1024, high=65535),
        ),
        "https://nginx.org, https://github.com/wg/wrk",
    ),
    SHELL,
    _arguments,
    Reported("wrk", required=("requests", "latency p50", "latency p99")),
    others=(
        Program("nginx", "nginx-light", version_pattern=r"(nginx/\S+)"),
        Program("wrk", "wrk", version_pattern=r"^(wrk .*)"),
    ),
    tools=("cat", "chmod", "head", "mkdir", "mktemp", "rm", "sed"),
    # As root it changes to the user nobody.
    data=("/etc/passwd", "/etc/group"),
)
