"""Network: buffers, backlogs, polling, congestion control, steering of packets."""

from collections.abc import Sequence
from typing import Any

from ktrial.knobs.catalogue.declare import file, sysctl
from ktrial.model.knob import Allowed, Default, Knob, KnobKind, Safety

_SCALING = "Documentation/networking/scaling.rst"
_NAPI = "Documentation/networking/napi.rst"
_MEMORY = (Default(computed="memory"),)


def _interface(name: str, summary: str, default: str | Sequence[Default], **more: Any) -> Knob:
    return file(
        f"net/{name}",
        f"/sys/class/net/{{interface}}/{name}",
        summary,
        default,
        needs="a network interface",
        **more,
    )


KNOBS = (
    sysctl(
        "net.ipv4.tcp_congestion_control",
        "congestion control of new connections",
        (
            Default(value="cubic", config="CONFIG_DEFAULT_TCP_CONG=cubic"),
            Default(value="bbr", config="CONFIG_DEFAULT_TCP_CONG=bbr"),
            Default(value="reno", config="CONFIG_DEFAULT_TCP_CONG=reno"),
        ),
        kind=KnobKind.TEXT,
        coupled=("net.core.default_qdisc",),
    ),
    sysctl(
        "net.core.default_qdisc",
        "queueing discipline of new interfaces",
        (
            Default(value="fq_codel", config="CONFIG_DEFAULT_FQ_CODEL"),
            Default(value="fq", config="CONFIG_DEFAULT_FQ"),
            Default(value="pfifo_fast"),
        ),
        kind=KnobKind.TEXT,
        config="CONFIG_NET_SCHED",
    ),
    sysctl(
        "net.core.rmem_max",
        "largest receive buffer that a socket may ask for",
        (Default(since="6.18", value="4194304"), Default(value="212992")),
        unit="bytes",
        coupled=("net.core.rmem_default", "net.ipv4.tcp_rmem"),
    ),
    sysctl(
        "net.core.wmem_max",
        "largest send buffer that a socket may ask for",
        (Default(since="6.18", value="4194304"), Default(value="212992")),
        unit="bytes",
        coupled=("net.core.wmem_default", "net.ipv4.tcp_wmem"),
    ),
    sysctl("net.core.rmem_default", "receive buffer of a socket", "212992", unit="bytes"),
    sysctl("net.core.wmem_default", "send buffer of a socket", "212992", unit="bytes"),
    sysctl(
        "net.core.optmem_max",
        "control data that a socket may hold",
        (Default(since="6.7", value="131072"), Default(value="20480")),
        unit="bytes",
    ),
    sysctl(
        "net.ipv4.tcp_rmem",
        "receive buffer of a TCP socket: least, first, most",
        (Default(computed="memory: `4096 131072` and at most 6 MB (32 MB since 6.18)"),),
        kind=KnobKind.INTEGERS,
        unit="bytes",
        coupled=("net.ipv4.tcp_moderate_rcvbuf",),
    ),
    sysctl(
        "net.ipv4.tcp_wmem",
        "send buffer of a TCP socket: least, first, most",
        (Default(computed="memory: `4096 16384` and at most 4 MB"),),
        kind=KnobKind.INTEGERS,
        unit="bytes",
    ),
    sysctl(
        "net.ipv4.tcp_mem",
        "memory of all TCP sockets: relaxed below the first, pressed above the second, most",
        _MEMORY,
        kind=KnobKind.INTEGERS,
        unit="pages",
    ),
    sysctl(
        "net.ipv4.udp_mem",
        "memory of all UDP sockets: relaxed below the first, pressed above the second, most",
        _MEMORY,
        kind=KnobKind.INTEGERS,
        unit="pages",
    ),
    sysctl(
        "net.ipv4.tcp_moderate_rcvbuf",
        "receive buffers grow by themselves",
        "1",
        kind=KnobKind.SWITCH,
        minimum=0,
        coupled=("net.ipv4.tcp_rmem",),
    ),
    sysctl(
        "net.core.somaxconn",
        "connections that may wait to be accepted",
        "4096",
        minimum=0,
        coupled=("net.ipv4.tcp_max_syn_backlog",),
    ),
    sysctl(
        "net.ipv4.tcp_max_syn_backlog",
        "half-open connections of a listener",
        (Default(computed="memory"),),
        coupled=("net.core.somaxconn",),
    ),
    sysctl(
        "net.ipv4.tcp_syncookies",
        "answer to a flood of SYNs without memory: 1 in need, 2 always",
        "1",
        minimum=0,
        config="CONFIG_SYN_COOKIES",
        safety=Safety.SECURITY,
    ),
    sysctl(
        "net.core.netdev_max_backlog",
        "packets that wait for a CPU after steering or on loopback",
        "1000",
    ),
    sysctl(
        "net.core.netdev_budget",
        "packets that one round of polling takes",
        "300",
        coupled=("net.core.netdev_budget_usecs",),
    ),
    sysctl(
        "net.core.netdev_budget_usecs",
        "time that one round of polling takes",
        (Default(value="8000", config="CONFIG_HZ=250"), Default(value="2000", config="CONFIG_HZ=1000")),
        unit="us",
        coupled=("net.core.netdev_budget",),
    ),
    sysctl("net.core.dev_weight", "packets that one poll of a virtual device takes", "64"),
    sysctl(
        "net.core.busy_poll",
        "time that poll() and select() look at the device's queue themselves; 0: not",
        "0",
        unit="us",
        config="CONFIG_NET_RX_BUSY_POLL",
    ),
    sysctl(
        "net.core.busy_read",
        "time that a blocking read looks at the device's queue itself; 0: not",
        "0",
        unit="us",
        minimum=0,
        config="CONFIG_NET_RX_BUSY_POLL",
    ),
    sysctl("net.core.gro_normal_batch", "packets that GRO hands on together", "8", minimum=1),
    sysctl(
        "net.core.skb_defer_max",
        "packets that a CPU keeps to be freed by the one that allocated them",
        (Default(since="7.0", value="128"), Default(value="64")),
        minimum=0,
        since="6.0",
        change="39564c3fdc66 net: add skb_defer_max sysctl",
    ),
    sysctl(
        "net.core.rps_sock_flow_entries",
        "flows whose packets go to the CPU of the program that reads them (RFS); 0: none",
        "0",
        minimum=0,
        config="CONFIG_RPS",
        documentation=_SCALING,
        coupled=("net/queues/rps_flow_cnt",),
    ),
    sysctl(
        "net.ipv4.tcp_slow_start_after_idle",
        "a connection starts slowly again after a pause",
        "1",
        kind=KnobKind.SWITCH,
    ),
    sysctl(
        "net.ipv4.tcp_notsent_lowat",
        "unsent data in a socket above which it is not writable",
        "4294967295",
        unit="bytes",
    ),
    sysctl(
        "net.ipv4.tcp_limit_output_bytes",
        "data of a connection that may wait in device and queueing discipline",
        (Default(since="6.18", value="4194304"), Default(value="1048576")),
        unit="bytes",
    ),
    sysctl(
        "net.ipv4.tcp_autocorking",
        "small writes wait for one another while packets are queued",
        "1",
        kind=KnobKind.SWITCH,
    ),
    sysctl(
        "net.ipv4.tcp_tw_reuse",
        "ports in TIME-WAIT may be used again: 1 always, 2 for loopback",
        "2",
        allowed=(Allowed(minimum=0, maximum=2),),
    ),
    sysctl("net.ipv4.tcp_fin_timeout", "time that a closed connection waits for its peer", "60", unit="s"),
    sysctl("net.ipv4.tcp_timestamps", "time stamps in TCP headers", "1"),
    sysctl("net.ipv4.tcp_sack", "selective acknowledgements", "1", kind=KnobKind.SWITCH),
    sysctl(
        "net.ipv4.tcp_fastopen",
        "data in the first packet of a connection: 1 as client, 2 as server",
        "1",
    ),
    sysctl("net.ipv4.tcp_ecn", "congestion notification: 0 never, 1 asked for, 2 where the peer asks", "2"),
    sysctl(
        "net.ipv4.ip_local_port_range",
        "ports of outgoing connections: first and last",
        "32768 60999",
        kind=KnobKind.INTEGERS,
    ),
    file(
        "net/queues/rps_cpus",
        "/sys/class/net/{interface}/queues/{queue}/rps_cpus",
        "CPUs among which the packets of a receive queue are spread",
        "0",
        config="CONFIG_RPS",
        needs="a network interface",
        documentation=_SCALING,
        kind=KnobKind.MASK,
    ),
    file(
        "net/queues/rps_flow_cnt",
        "/sys/class/net/{interface}/queues/{queue}/rps_flow_cnt",
        "flows of a receive queue that follow the program that reads them",
        "0",
        config="CONFIG_RPS",
        needs="a network interface",
        documentation=_SCALING,
        coupled=("net.core.rps_sock_flow_entries",),
    ),
    _interface(
        "gro_flush_timeout",
        "time that GRO may hold packets back",
        "0",
        unit="ns",
        documentation=_NAPI,
        coupled=("net/napi_defer_hard_irqs",),
    ),
    _interface(
        "napi_defer_hard_irqs",
        "empty polls before the device's interrupt is switched on again",
        "0",
        documentation=_NAPI,
        coupled=("net/gro_flush_timeout",),
    ),
    _interface(
        "threaded",
        "the device is polled by a thread of its own, not in softirq",
        "0",
        since="5.12",
        change="5fdd2f0e5c64 net: add sysfs attribute to control napi threaded mode",
        documentation=_NAPI,
    ),
    _interface(
        "tx_queue_len",
        "packets that wait to be sent",
        "1000",
        unit="packets",
        documentation="Documentation/ABI/testing/sysfs-class-net",
    ),
)
"""Those of this subsystem."""
