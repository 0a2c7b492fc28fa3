// TCP and UDP where packets are lost: a filter at the receiver drops what it is told to, and is taken away
// again. Sockets that outlive their connection, messages of ICMP that shrink a path, segments that the kernel
// cuts, memory that runs out.
#include <linux/filter.h>
#include <linux/igmp.h>
#include <net/if_arp.h>
#include <linux/sockios.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

enum { PURE = 60, SEGMENT = 1000, SETTINGS = 3 };
static const int on = 1, off = 0;
static const unsigned offloads[SETTINGS] = {0x1f, 0x24, 0x19}; // of TCP, of the kernel, of pieces of memory
static struct sockaddr_in address;
static socklen_t size = sizeof address;

static void moment(int milliseconds) {
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, 0);
}

static void of_loopback(int request, struct ifreq device) {
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(device.ifr_name, "lo"), ioctl(file, request, &device), close(file);
}

static void offload(unsigned which, unsigned value) {
    unsigned words[2] = {which, value};
    of_loopback(SIOCETHTOOL, (struct ifreq){.ifr_data = (void *)words});
}

// Drop segments with data whose first byte is `value` under this mask.
static void drop_data(int file, unsigned mask, unsigned value) {
    struct sock_filter body[] = {{BPF_LD | BPF_W | BPF_LEN, 0, 0, 0}, {BPF_JMP | BPF_JGT | BPF_K, 0, 6, PURE},
        {BPF_LD | BPF_B | BPF_ABS, 0, 0, 12}, {BPF_ALU | BPF_RSH | BPF_K, 0, 0, 2},
        {BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x3c}, {BPF_MISC | BPF_TAX, 0, 0, 0},
        {BPF_LD | BPF_B | BPF_IND, 0, 0, 0}, {BPF_ALU | BPF_AND | BPF_K, 0, 0, mask},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value}, {BPF_RET | BPF_K, 0, 0, 0}, {BPF_RET | BPF_K, 0, 0, ~0u}};
    body[1].jf = 8;
    setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &(struct sock_fprog){COUNT(body), body}, 16);
}

// Drop segments that are no longer than `most` bytes, or those that are.
static void drop_by_length(int file, unsigned most, int longer) {
    struct sock_filter body[] = {{BPF_LD | BPF_W | BPF_LEN, 0, 0, 0},
        {BPF_JMP | BPF_JGT | BPF_K, !longer, longer, most}, {BPF_RET | BPF_K, 0, 0, 0},
        {BPF_RET | BPF_K, 0, 0, ~0u}};
    setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &(struct sock_fprog){COUNT(body), body}, 16);
}

static void drop_nothing(int file) { setsockopt(file, SOL_SOCKET, SO_DETACH_FILTER, &on, 4); }

static int listening(int kind) {
    int server = socket(AF_INET, kind, 0);
    address = (struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    bind(server, (void *)&address, size), getsockname(server, (void *)&address, &size), listen(server, 5);
    return server;
}

static void connected(int ends[2], const char *congestion) {
    int server = listening(SOCK_STREAM);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(ends[0], IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion)),
        setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &on, 4),
        setsockopt(ends[0], IPPROTO_TCP, TCP_MAXSEG, &(int){SEGMENT + 12}, 4);
    connect(ends[0], (void *)&address, size), ends[1] = accept(server, 0, 0), close(server);
    fcntl(ends[0], F_SETFL, O_NONBLOCK), fcntl(ends[1], F_SETFL, O_NONBLOCK);
}

// So many segments, each full of its own number.
static void sent(int file, int segments) {
    for (int number = 0; number < segments; number++)
        memset(buffer, number, SEGMENT), send(file, buffer, SEGMENT, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void taken(int file) {
    while (recv(file, buffer, sizeof buffer, MSG_DONTWAIT) > 0)
        ;
}

static void lossy(const char *congestion, const char *selective, const char *stamps) {
    int ends[2];
    put("/proc/sys/net/ipv4/tcp_sack", selective), put("/proc/sys/net/ipv4/tcp_timestamps", stamps);
    connected(ends, congestion);
    for (int warm = 0; warm < 6; warm++)
        sent(ends[0], 20), moment(1), taken(ends[1]);
    for (int turn = 0; turn < 12; turn++) {
        if (turn % 4 == 3)
            drop_by_length(ends[0], PURE + 12, 0); // what it would hear of its segments
        else
            drop_data(ends[1], turn % 2 ? 3 : 15, turn % 3 + 1);
        sent(ends[0], 24), moment(turn % 6 == 5 ? 900 : 2), drop_nothing(ends[0]), drop_nothing(ends[1]);
        sent(ends[0], turn % 3 * 4), moment(turn % 2 ? 400 : 3), taken(ends[1]),
            send(ends[1], "answer", 6, MSG_DONTWAIT | MSG_NOSIGNAL), moment(100), taken(ends[0]);
    }
    get("/proc/net/snmp"), get("/proc/net/netstat"), drop_by_length(ends[1], 0, 1), sent(ends[0], 3),
        shutdown(ends[0], SHUT_WR), moment(500), drop_nothing(ends[1]), moment(1500), taken(ends[1]),
        close(ends[1]), moment(100), close(ends[0]);
}

static void without_offloads(unsigned from) {
    for (unsigned number = from; number < SETTINGS; number++)
        offload(offloads[number], 0);
    of_loopback(SIOCSIFMTU, (struct ifreq){.ifr_mtu = 1500});
}

static void by_cubic(void) { without_offloads(0), lossy("cubic", "1", "1"); }
static void by_reno(void) { without_offloads(0), lossy("reno", "1", "0"); }
static void without_selection(void) {
    without_offloads(0), lossy("reno", "0", "1"), lossy("cubic", "0", "0");
}
static void with_notes(void) { // of congestion: ECN; ends of paths that are found by trying
    put("/proc/sys/net/ipv4/tcp_ecn", "1"), put("/proc/sys/net/ipv4/tcp_mtu_probing", "2"),
        put("/proc/sys/net/ipv4/tcp_early_retrans", "0"), put("/proc/sys/net/ipv4/tcp_recovery", "0"),
        without_offloads(0), lossy("cubic", "1", "1");
    put("/proc/sys/net/ipv4/tcp_frto", "0"), lossy("reno", "0", "1");
}

// The kernel cuts what the device would: full segments, one from several pieces, lists of them.
static void cut(void) {
    int ends[2], pipes[2], file = memfd_create("sent", 0), pair = listening(SOCK_DGRAM),
        client = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = address;
    offload(offloads[0], 0), offload(0x17, 0), of_loopback(SIOCSIFMTU, (struct ifreq){.ifr_mtu = 1500});
    connect(client, (void *)&to, size), setsockopt(client, IPPROTO_UDP, UDP_SEGMENT, &(int){400}, 4),
        send(client, buffer, 9000, 0), taken(pair), setsockopt(pair, IPPROTO_UDP, UDP_GRO, &on, 4),
        send(client, buffer, 9000, 0), taken(pair), close(pair), close(client);
    for (int turn = 0; turn < 3; turn++) {
        connected(ends, "cubic"), setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &off, 4);
        setsockopt(ends[0], SOL_SOCKET, SO_ZEROCOPY, &on, 4);
        for (int piece = 0; piece < 10; piece++)
            send(ends[0], buffer, 60000, MSG_DONTWAIT | (turn == 1 ? MSG_ZEROCOPY : 0)), moment(1),
                taken(ends[1]);
        ftruncate(file, 1 << 18), sendfile(ends[0], file, &(off_t){0}, 1 << 17), moment(2), pipe(pipes);
        splice(ends[1], 0, pipes[1], 0, 30000, SPLICE_F_NONBLOCK),
            splice(pipes[0], 0, ends[0], 0, 20000, SPLICE_F_NONBLOCK | SPLICE_F_MORE);
        moment(5), taken(ends[1]), close(pipes[0]), close(pipes[1]);
        if (turn == 1)
            offload(offloads[2], 0);
        recvmsg(ends[0], &(struct msghdr){.msg_control = buffer, .msg_controllen = 1000},
            MSG_ERRQUEUE | MSG_DONTWAIT), close(ends[0]), moment(2), close(ends[1]);
    }
    offload(offloads[2], 1), offload(0x17, 1), offload(offloads[0], 1);
}

// What is lost of a beginning: the first packet, the answer, the third.
static void beginnings(void) {
    for (int kind = 0; kind < 3; kind++) {
        int server = listening(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (kind == 0)
            drop_by_length(server, 0, 1);
        else if (kind == 1)
            drop_by_length(client, 0, 1);
        else
            drop_by_length(server, 36, 0);
        connect(client, (void *)&address, size), moment(1500), get("/proc/net/tcp"), drop_nothing(server),
            drop_nothing(client), moment(kind == 2 ? 2500 : 4000);
        int peer = accept4(server, 0, 0, SOCK_NONBLOCK);
        send(client, "begun", 5, MSG_NOSIGNAL | MSG_DONTWAIT), taken(peer), close(client), close(peer),
            close(server);
    }
}

static uint16_t sum_of(const uint16_t *words, int count) {
    uint32_t sum = 0;
    for (int word = 0; word < count; word++)
        sum += words[word];
    sum = (sum >> 16) + (sum & 0xffff);
    return ~(sum + (sum >> 16));
}

static void complain(int raw, int file, int protocol, int code, int mtu, uint32_t sequence) {
    struct sockaddr_in own, peer;
    socklen_t length = sizeof own;
    getsockname(file, (void *)&own, &length), getpeername(file, (void *)&peer, &length);
    struct {
        struct icmphdr head;
        struct iphdr of;
        uint16_t from, to;
        uint32_t sequence;
        char rest[28];
    } icmp = {{ICMP_DEST_UNREACH, code, 0, {{0, 0}}}, {.version = 4, .ihl = 5, .protocol = protocol,
        .saddr = own.sin_addr.s_addr, .daddr = peer.sin_addr.s_addr, .tot_len = htons(60)}, own.sin_port,
        peer.sin_port, htonl(sequence), {0}};
    icmp.head.un.frag.mtu = htons(mtu), icmp.head.checksum = sum_of((void *)&icmp, sizeof icmp / 2);
    peer.sin_port = 0, sendto(raw, &icmp, sizeof icmp, 0, (void *)&peer, sizeof peer);
}

static uint32_t next_of(int file) {
    uint32_t sequence = 0;
    socklen_t length = 4;
    int send_queue = 2;
    setsockopt(file, IPPROTO_TCP, TCP_REPAIR, &on, 4),
        setsockopt(file, IPPROTO_TCP, TCP_REPAIR_QUEUE, &send_queue, 4);
    getsockopt(file, IPPROTO_TCP, TCP_QUEUE_SEQ, &sequence, &length),
        setsockopt(file, IPPROTO_TCP, TCP_REPAIR, &(int){-1}, 4);
    return sequence;
}

static void complaints(void) {
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), server = listening(SOCK_DGRAM),
        client = socket(AF_INET, SOCK_DGRAM, 0), ends[2];
    put("/proc/sys/net/ipv4/icmp_ratelimit", "0"), connect(client, (void *)&address, size);
    for (int how = 0; how < 6; how++)
        setsockopt(client, IPPROTO_IP, IP_MTU_DISCOVER, &how, 4),
            complain(raw, client, IPPROTO_UDP, 4, 1400 - how * 100, 0), send(client, buffer, 4000, 0);
    get("/proc/net/rt_cache"), put("/proc/sys/net/ipv4/route/flush", "1"), close(client), close(server);
    client = socket(AF_INET, SOCK_RAW, 200), connect(client, (void *)&address, size),
        complain(raw, client, 200, 4, 900, 0), complain(raw, client, 200, 1, 0, 0), close(client);
    without_offloads(0), connected(ends, "cubic"), sent(ends[0], 10), moment(2), taken(ends[1]);
    for (int turn = 0; turn < 4; turn++) {
        uint32_t sequence = next_of(ends[0]);
        drop_by_length(ends[1], 0, 1), sent(ends[0], 6);
        if (turn == 2)
            moment(700);
        complain(raw, ends[0], IPPROTO_TCP, turn == 1 || turn == 2 ? 1 : 4, 800 - turn * 50, sequence);
        moment(turn == 3 ? 1 : 30), drop_nothing(ends[1]), moment(900), taken(ends[1]);
    }
    close(ends[0]), close(ends[1]);
    server = listening(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    drop_by_length(server, 36, 0), connect(client, (void *)&address, size), moment(5),
        complain(raw, client, IPPROTO_TCP, 1, 0, next_of(client)), moment(5), close(client), close(server),
        close(raw);
}

// Ends of connections: a last packet that is lost, one end that closes long before the other, ports taken
// again.
static void endings(void) {
    for (int kind = 0; kind < 4; kind++) {
        int ends[2];
        connected(ends, "cubic"), sent(ends[0], 2), moment(2), taken(ends[1]);
        if (kind == 1)
            shutdown(ends[0], SHUT_WR), moment(2), drop_by_length(ends[1], 40, 0);
        if (kind == 2)
            close(ends[0]), moment(50), send(ends[1], "late", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (kind == 3)
            shutdown(ends[0], SHUT_RDWR), shutdown(ends[1], SHUT_RDWR);
        close(ends[kind == 1]), moment(600), drop_nothing(ends[1]), close(ends[kind != 1]), moment(600);
    }
    put("/proc/sys/net/ipv4/tcp_tw_reuse", "1"), put("/proc/sys/net/ipv4/tcp_fin_timeout", "1");
    for (int turn = 0; turn < 3; turn++) {
        int server = listening(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in own = {AF_INET, htons(5555), {htonl(INADDR_LOOPBACK)}, {0}};
        setsockopt(client, SOL_SOCKET, SO_REUSEADDR, &on, 4), bind(client, (void *)&own, sizeof own);
        connect(client, (void *)&address, size);
        int peer = accept4(server, 0, 0, SOCK_NONBLOCK);
        close(client), moment(turn ? 3000 : 1), close(peer), close(server), moment(10);
    }
    read_below("/proc/net", 1, 200), get("/proc/net/igmp"), get("/proc/net/mcfilter"), get("/proc/net/tcp");
}

static void without_memory(void) {
    int ends[2];
    put("/proc/sys/net/ipv4/tcp_mem", "2 4 8"), connected(ends, "cubic");
    for (int turn = 0; turn < 6; turn++)
        sent(ends[0], 60), moment(300), turn % 2 ? taken(ends[1]) : (void)0;
    put("/proc/sys/net/ipv4/tcp_max_orphans", "0"), sent(ends[0], 5), close(ends[0]), close(ends[1]),
        put("/proc/sys/net/ipv4/tcp_mem", "4000 6000 9000");
}

static void neighbours_and_groups(void) {
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    for (int flags = 0; flags < 2; flags++) {
        struct arpreq entry = {.arp_flags = ATF_COM | ATF_PERM | (flags ? ATF_PUBL : 0), .arp_dev = "lo"};
        struct sockaddr_in *of = (void *)&entry.arp_pa;
        of->sin_family = AF_INET, of->sin_addr.s_addr = htonl(0x7f000009),
            entry.arp_ha.sa_family = ARPHRD_LOOPBACK;
        ((struct sockaddr_in *)&entry.arp_netmask)->sin_addr.s_addr = ~0u;
        ioctl(file, SIOCSARP, &entry), ioctl(file, SIOCGARP, &entry), get("/proc/net/arp"),
            ioctl(file, SIOCDARP, &entry);
    }
    of_loopback(SIOCSIFFLAGS, (struct ifreq){.ifr_flags = IFF_UP | IFF_RUNNING | IFF_MULTICAST});
    struct ip_mreqn all = {{htonl(0xe0010203)}, {htonl(INADDR_LOOPBACK)}, 0};
    setsockopt(file, IPPROTO_IP, IP_ADD_MEMBERSHIP, &all, sizeof all);
    struct {
        uint32_t group, device, mode, count, sources[2];
    } filter = {htonl(0xe0010203), htonl(INADDR_LOOPBACK), 1, 2, {htonl(1), htonl(2)}};
    struct {
        struct group_filter head;
        struct sockaddr_storage more;
    } general = {{1, {AF_INET}, 0, 1, {{AF_INET}}}};
    ((struct sockaddr_in *)&general.head.gf_group)->sin_addr.s_addr = htonl(0xe0010203);
    ((struct sockaddr_in *)&general.head.gf_slist[0])->sin_addr.s_addr = htonl(3);
    for (int mode = 0; mode < 2; mode++) {
        socklen_t length = sizeof filter, longer = sizeof general;
        filter.mode = general.head.gf_fmode = mode, filter.count = mode ? 2 : 1;
        setsockopt(file, IPPROTO_IP, IP_MSFILTER, &filter, mode ? 24 : 20),
            getsockopt(file, IPPROTO_IP, IP_MSFILTER, &filter, &length), get("/proc/net/igmp"),
            get("/proc/net/mcfilter");
        setsockopt(file, IPPROTO_IP, MCAST_MSFILTER, &general, GROUP_FILTER_SIZE(1)),
            getsockopt(file, IPPROTO_IP, MCAST_MSFILTER, &general, &longer);
    }
    of_loopback(SIOCSIFFLAGS, (struct ifreq){.ifr_flags = 0}), moment(20),
        of_loopback(SIOCSIFFLAGS, (struct ifreq){.ifr_flags = IFF_UP | IFF_RUNNING}), close(file);
}

int main(void) {
    in_guest(), of_loopback(SIOCSIFFLAGS, (struct ifreq){.ifr_flags = IFF_UP | IFF_RUNNING});
    part(cut), part(by_cubic), part(by_reno), part(without_selection), part(with_notes), part(beginnings),
        part(complaints), part(endings), part(without_memory), part(neighbours_and_groups);
    moment(62000), get("/proc/net/sockstat"); // sockets that wait for late packets go
    return 0;
}
