// Sockets: every option and request of each family, then what only a peer brings about: TCP from its first
// packet to
// its last, UDP with messages, fragments, answers of ICMP, descriptors through local sockets.
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/in6.h>
#include <linux/sockios.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

static const int on = 1;
static struct sockaddr_in address;
static socklen_t size = sizeof address;

static void datagrams(void);

static void loopback_up(void) {
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq device = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    ioctl(file, SIOCSIFFLAGS, &device), close(file);
}

static void every_option(void) {
    static const int kinds[][3] = {{AF_INET, SOCK_STREAM, 0}, {AF_INET, SOCK_DGRAM, 0},
        {AF_INET, SOCK_RAW, IPPROTO_ICMP},
        {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}, {AF_INET, SOCK_RAW, IPPROTO_RAW}, {AF_INET6, SOCK_STREAM, 0},
        {AF_INET6, SOCK_DGRAM, 0}, {AF_UNIX, SOCK_STREAM, 0}, {AF_UNIX, SOCK_DGRAM, 0},
            {AF_UNIX, SOCK_SEQPACKET, 0},
        {AF_PACKET, SOCK_RAW, 0x0300}, {AF_PACKET, SOCK_DGRAM, 0x0300}, {AF_NETLINK, SOCK_RAW, 0},
            {AF_NETLINK, SOCK_RAW, 4},
        {AF_NETLINK, SOCK_RAW, 15}, {AF_NETLINK, SOCK_RAW, 16}, {AF_INET, SOCK_STREAM, 262},
            {AF_INET, SOCK_DGRAM, 136},
        {AF_VSOCK, SOCK_STREAM, 0}, {AF_ALG, SOCK_SEQPACKET, 0}, {AF_KEY, SOCK_RAW, 2},
            {AF_INET, SOCK_SEQPACKET, 132}};
    static const int levels[] = {SOL_SOCKET, IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6, SOL_PACKET,
        SOL_NETLINK, SOL_RAW};
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        int file = socket(kinds[kind][0], kinds[kind][1] | SOCK_NONBLOCK, kinds[kind][2]), value[16] = {1};
        for (size_t level = 0; file >= 0 && level < COUNT(levels); level++)
            for (int name = 1; name < 80; name++) {
                socklen_t length = sizeof value;
                if (getsockopt(file, levels[level], name, value, &length))
                    value[0] = 1, setsockopt(file, levels[level], name, value, 4);
                else
                    setsockopt(file, levels[level], name, value, length);
            }
        struct sockaddr_storage bound = {.ss_family = kinds[kind][0]};
        socklen_t length = kinds[kind][0] == AF_INET ? 16 : kinds[kind][0] == AF_INET6 ? 28
            : kinds[kind][0] == AF_UNIX ? 2 : 20;
        bind(file, (void *)&bound, length), getsockname(file, (void *)&bound, &length),
            getpeername(file, (void *)&bound, &length);
        listen(file, 5), accept4(file, 0, 0, SOCK_NONBLOCK), connect(file, (void *)&bound, length);
        send(file, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL), sendto(file, "xy", 2, MSG_DONTWAIT, (void *)&bound,
            length);
        recv(file, buffer, 10, MSG_DONTWAIT), recv(file, buffer, 10, MSG_PEEK | MSG_DONTWAIT),
            recv(file, buffer, 10, MSG_OOB | MSG_DONTWAIT);
        for (int request = 0x8900; file >= 0 && request < 0x8980; request++) {
            struct ifreq device = {.ifr_name = "lo"};
            if (request != SIOCSIFFLAGS && request != 0x8922)
                ioctl(file, request, &device);
        }
        ioctl(file, FIONREAD, value), ioctl(file, SIOCOUTQ, value),
            fcntl(file, F_SETFL, O_ASYNC | O_NONBLOCK);
        poll(&(struct pollfd){file, POLLIN | POLLOUT, 0}, 1, 0), shutdown(file, SHUT_RD),
            shutdown(file, SHUT_RDWR), close(file);
    }
}

static int listening(int kind) {
    int server = socket(AF_INET, kind, 0);
    address = (struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, 4), setsockopt(server, SOL_SOCKET, SO_REUSEPORT, &on,
        4);
    bind(server, (void *)&address, size), getsockname(server, (void *)&address, &size), listen(server, 3);
    return server;
}

static void one_connection(const char *congestion, int fast_open, int reset) {
    int server = listening(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM, 0), queue = 5;
    setsockopt(server, IPPROTO_TCP, TCP_FASTOPEN, &queue, 4),
        setsockopt(server, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, 4);
    setsockopt(client, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion));
    setsockopt(client, SOL_SOCKET, SO_ZEROCOPY, &on, 4), setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &on, 4);
    setsockopt(client, IPPROTO_TCP, TCP_KEEPIDLE, &on, 4), setsockopt(client, IPPROTO_TCP, TCP_KEEPINTVL, &on,
        4);
    if (fast_open)
        sendto(client, buffer, 100, MSG_FASTOPEN, (void *)&address, size);
    else
        connect(client, (void *)&address, size);
    int stamps = SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_STATS
        | SOF_TIMESTAMPING_OPT_TSONLY | SOF_TIMESTAMPING_OPT_ID;
    setsockopt(client, SOL_SOCKET, SO_TIMESTAMPING, &stamps, 4);
    send(client, "begin", 5, 0);
    int peer = accept4(server, 0, 0, SOCK_CLOEXEC), small = 4096;
    setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &small, 4);
    struct iovec parts[2] = {{buffer, 1000}, {buffer + 2000, 30000}};
    struct msghdr message = {0, 0, parts, 2, 0, 0, 0};
    sendmsg(client, &message, MSG_DONTWAIT), sendmsg(client, &message, MSG_ZEROCOPY | MSG_DONTWAIT),
        send(client, buffer, 40, MSG_MORE);
    for (int turn = 0; turn < 8; turn++) {
        recv(peer, buffer, turn % 2 ? 1 << 16 : 700, MSG_DONTWAIT), send(client, buffer, 30000, MSG_DONTWAIT);
        send(peer, buffer, 20000, MSG_DONTWAIT), recv(client, buffer, 1 << 16, MSG_DONTWAIT);
    }
    send(client, "!", 1, MSG_OOB | MSG_DONTWAIT), recv(peer, buffer, 1, MSG_OOB | MSG_DONTWAIT),
        recv(peer, buffer, 100, MSG_PEEK | MSG_DONTWAIT);
    int file = memfd_create("sent", 0), pipes[2];
    ftruncate(file, 65536), pipe(pipes), fcntl(client, F_SETFL, O_NONBLOCK), fcntl(peer, F_SETFL, O_NONBLOCK);
    sendfile(client, file, 0, 30000), splice(peer, 0, pipes[1], 0, 8192, SPLICE_F_NONBLOCK),
        splice(pipes[0], 0, client, 0, 8192, SPLICE_F_NONBLOCK);
    void *mapped = mmap(0, 65536, PROT_READ, MAP_SHARED, peer, 0);
    uint64_t received[8] = {(uint64_t)mapped, 65536};
    socklen_t length = sizeof received;
    getsockopt(peer, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, received, &length), length = 256;
    getsockopt(client, IPPROTO_TCP, TCP_INFO, buffer, &length), length = 256,
        getsockopt(client, IPPROTO_TCP, TCP_CC_INFO, buffer, &length);
    struct msghdr error = {0, 0, parts, 2, buffer + 40000, 1024, 0};
    recvmsg(client, &error, MSG_ERRQUEUE | MSG_DONTWAIT), recv(client, buffer, 60000,
        MSG_TRUNC | MSG_DONTWAIT);
    read_below("/proc/net", 1, 80), nanosleep(&(struct timespec){1, 200000000}, 0);
    for (int turn = 0; turn < 20; turn++)
        recv(peer, buffer, 1 << 16, MSG_DONTWAIT), recv(client, buffer, 1 << 16, MSG_DONTWAIT),
            nanosleep(&(struct timespec){0, 20000000}, 0);
    if (reset)
        setsockopt(client, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    else
        setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &(int){0}, 4), shutdown(client, SHUT_WR),
            recv(peer, buffer, 60000, MSG_DONTWAIT);
    close(client), send(peer, "late", 4, MSG_NOSIGNAL | MSG_DONTWAIT), recv(peer, buffer, 10, MSG_DONTWAIT),
        close(peer), close(server);
    close(file), close(pipes[0]), close(pipes[1]);
}

static void connections(void) {
    one_connection("cubic", 0, 0), put("/proc/sys/net/ipv4/tcp_fastopen", "1027"),
        one_connection("reno", 1, 1), one_connection("cubic", 1, 0);
    put("/proc/sys/net/ipv4/tcp_syncookies", "2"), one_connection("cubic", 0, 1),
        put("/proc/sys/net/ipv4/tcp_syncookies", "1");
    int server = listening(SOCK_STREAM), clients[8];
    for (int number = 0; number < 8; number++) // more than its queue holds
        clients[number] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
            connect(clients[number], (void *)&address, size);
    nanosleep(&(struct timespec){1, 500000000}, 0), close(server);
    for (int number = 0; number < 8; number++)
        send(clients[number], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT), close(clients[number]);
    int refused = socket(AF_INET, SOCK_STREAM, 0);
    connect(refused, (void *)&address, size), connect(refused, (void *)&(struct sockaddr){AF_UNSPEC, {0}},
        size), close(refused);
    int both = socket(AF_INET, SOCK_STREAM, 0); // it connects to itself
    address.sin_port = htons(4321), bind(both, (void *)&address, size), connect(both, (void *)&address, size),
        send(both, "x", 1, 0);
    recv(both, buffer, 1, MSG_DONTWAIT), close(both);
}

// A connection whose last packet of three the server takes for none; then another listener takes it over.
static void deferred(void) {
    put("/proc/sys/net/ipv4/tcp_migrate_req", "1");
    int first = listening(SOCK_STREAM), second = socket(AF_INET, SOCK_STREAM, 0), clients[4];
    setsockopt(first, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){9}, 4),
        setsockopt(second, SOL_SOCKET, SO_REUSEPORT, &on, 4);
    setsockopt(second, SOL_SOCKET, SO_REUSEADDR, &on, 4), bind(second, (void *)&address, size),
        listen(second, 5);
    setsockopt(second, IPPROTO_TCP, TCP_DEFER_ACCEPT, &(int){9}, 4);
    for (int number = 0; number < 4; number++)
        clients[number] = socket(AF_INET, SOCK_STREAM, 0), connect(clients[number], (void *)&address, size);
    nanosleep(&(struct timespec){4, 0}, 0), close(first), nanosleep(&(struct timespec){2, 0}, 0);
    for (int number = 0; number < 4; number++)
        send(clients[number], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL), close(clients[number]);
    close(second);
}

// Loopback without what a device does by itself: the kernel cuts what is sent.
static void segmented(void) {
    static const unsigned settings[] = {0x1f, 0x22, 0x24, 0x19, 0x17};
    for (int turn = 0; turn < 2; turn++) {
        int file = socket(AF_INET, SOCK_DGRAM, 0);
        for (size_t setting = 0; setting < COUNT(settings); setting++) {
            unsigned value[2] = {settings[setting], turn};
            struct ifreq device = {.ifr_name = "lo", .ifr_data = (void *)value};
            ioctl(file, SIOCETHTOOL, &device);
            if (!turn && setting == 2)
                datagrams(), one_connection("cubic", 0, 0);
        }
        close(file);
    }
}

static void repaired(void) {
    int server = listening(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM, 0), value = 1;
    connect(client, (void *)&address, size);
    int peer = accept(server, 0, 0);
    send(client, "queued", 6, 0), setsockopt(client, IPPROTO_TCP, TCP_REPAIR, &value, 4);
    for (value = 0; value < 3; value++) {
        socklen_t length = 4;
        unsigned sequence;
        setsockopt(client, IPPROTO_TCP, TCP_REPAIR_QUEUE, &value, 4),
            getsockopt(client, IPPROTO_TCP, TCP_QUEUE_SEQ, &sequence, &length);
        setsockopt(client, IPPROTO_TCP, TCP_QUEUE_SEQ, &sequence, 4),
            recv(client, buffer, 100, MSG_PEEK | MSG_DONTWAIT);
        send(client, "abc", 3, MSG_DONTWAIT);
    }
    socklen_t length = 20;
    getsockopt(client, IPPROTO_TCP, TCP_REPAIR_WINDOW, buffer, &length),
        setsockopt(client, IPPROTO_TCP, TCP_REPAIR_WINDOW, buffer, length);
    value = 0, setsockopt(client, IPPROTO_TCP, TCP_REPAIR, &value, 4), close(client), close(peer),
        close(server);
}

static void filters(void) {
    struct sock_filter instructions[] = {{BPF_LD | BPF_W | BPF_LEN, 0, 0, 0},
        {BPF_LD | BPF_B | BPF_ABS, 0, 0, 0},
        {BPF_LDX | BPF_B | BPF_MSH, 0, 0, 0}, {BPF_LD | BPF_H | BPF_IND, 0, 0, 0},
            {BPF_LD | BPF_W | BPF_ABS, 0, 0, SKF_AD_OFF + SKF_AD_PROTOCOL},
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, SKF_AD_OFF + SKF_AD_CPU},
            {BPF_LD | BPF_W | BPF_ABS, 0, 0, SKF_AD_OFF + SKF_AD_PAY_OFFSET},
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, SKF_AD_OFF + SKF_AD_RANDOM}, {BPF_ST, 0, 0, 1},
            {BPF_LD | BPF_MEM, 0, 0, 1},
        {BPF_ALU | BPF_DIV | BPF_K, 0, 0, 3}, {BPF_MISC | BPF_TAX, 0, 0, 0},
            {BPF_JMP | BPF_JGT | BPF_K, 0, 0, 5}, {BPF_RET | BPF_K, 0, 0, 0xffff}};
    struct sock_fprog program = {COUNT(instructions), instructions};
    int server = listening(SOCK_DGRAM), packets = socket(AF_PACKET, SOCK_RAW, htons(3)),
        client = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(server, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program),
        setsockopt(packets, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    setsockopt(server, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
    sendto(client, buffer, 300, 0, (void *)&address, size), recv(server, buffer, 300, MSG_DONTWAIT),
        recv(packets, buffer, 300, MSG_DONTWAIT);
    socklen_t length = COUNT(instructions);
    getsockopt(server, SOL_SOCKET, SO_GET_FILTER, buffer, &length),
        setsockopt(server, SOL_SOCKET, SO_LOCK_FILTER, &on, 4);
    setsockopt(packets, SOL_SOCKET, SO_DETACH_FILTER, &on, 4), close(server), close(client), close(packets);
}

static void datagrams(void) {
    int server = listening(SOCK_DGRAM), client = socket(AF_INET, SOCK_DGRAM, 0), segment = 500;
    static const int told[] = {IP_PKTINFO, IP_RECVTTL, IP_RECVTOS, IP_RECVOPTS, IP_RECVERR,
        IP_RECVORIGDSTADDR,
        IP_CHECKSUM};
    for (size_t option = 0; option < COUNT(told); option++)
        setsockopt(server, IPPROTO_IP, told[option], &on, 4),
            setsockopt(client, IPPROTO_IP, told[option], &on, 4);
    setsockopt(server, SOL_SOCKET, SO_TIMESTAMPNS, &on, 4), setsockopt(server, IPPROTO_UDP, UDP_GRO, &on, 4);
    connect(client, (void *)&address, size), setsockopt(client, IPPROTO_IP, IP_OPTIONS, "\7\7\4\0\0\0\0\0",
        8);
    struct iovec parts[2] = {{buffer, 1000}, {buffer + 2000, 3000}};
    struct msghdr message = {0, 0, parts, 2, buffer + 50000, 2000, 0};
    struct mmsghdr many[2] = {{{0, 0, parts, 2, 0, 0, 0}, 0}, {{0, 0, parts, 1, 0, 0, 0}, 0}};
    send(client, buffer, 1, MSG_CONFIRM | 0x10), recv(server, buffer, 1, MSG_DONTWAIT);
    sendmmsg(client, many, 2, 0), send(client, buffer, 60000, 0), send(client, buffer, 400, MSG_MORE),
        send(client, buffer, 400, 0);
    recvmsg(server, &message, MSG_DONTWAIT), recvmmsg(server, many, 2, MSG_DONTWAIT, 0),
        recv(server, buffer, 60000, MSG_DONTWAIT);
    setsockopt(client, IPPROTO_IP, IP_OPTIONS, "", 0), setsockopt(client, IPPROTO_UDP, UDP_SEGMENT, &segment,
        4), send(client, buffer, 4000, 0);
    recv(server, buffer, 60000, MSG_DONTWAIT | MSG_PEEK), ioctl(server, SIOCINQ, &segment),
        connect(client, (void *)&(struct sockaddr){AF_UNSPEC, {0}}, size);
    segment = 1400, setsockopt(client, IPPROTO_UDP, UDP_SEGMENT, &(int){0}, 4);
    struct ifreq device = {.ifr_name = "lo", .ifr_mtu = 1400};
    ioctl(client, SIOCSIFMTU, &device), sendto(client, buffer, 9000, 0, (void *)&address, size),
        recv(server, buffer, 10000, MSG_DONTWAIT);
    setsockopt(client, IPPROTO_IP, IP_MTU_DISCOVER, &(int){IP_PMTUDISC_DO}, 4),
        sendto(client, buffer, 9000, 0, (void *)&address, size);
    device.ifr_mtu = 65536, ioctl(client, SIOCSIFMTU, &device), close(server);
    connect(client, (void *)&address, size), send(client, "nobody", 6, 0),
        recv(client, buffer, 10, MSG_DONTWAIT);
    message.msg_controllen = 2000, recvmsg(client, &message, MSG_ERRQUEUE | MSG_DONTWAIT), close(client);
    int group = socket(AF_INET, SOCK_DGRAM, 0);
    struct ip_mreqn all = {{htonl(0xe0010203)}, {htonl(INADDR_LOOPBACK)}, 0};
    struct ip_mreq_source source = {{htonl(0xe0010204)}, {htonl(INADDR_LOOPBACK)}, {htonl(INADDR_LOOPBACK)}};
    setsockopt(group, IPPROTO_IP, IP_ADD_MEMBERSHIP, &all, sizeof all),
        setsockopt(group, IPPROTO_IP, IP_MULTICAST_IF, &all, sizeof all);
    setsockopt(group, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &source, sizeof source),
        setsockopt(group, IPPROTO_IP, IP_BLOCK_SOURCE, &source, sizeof source);
    setsockopt(group, IPPROTO_IP, IP_UNBLOCK_SOURCE, &source, sizeof source);
    struct sockaddr_in to = {AF_INET, htons(4000), {htonl(0xe0010203)}, {0}};
    bind(group, (void *)&to, size), sendto(group, "all", 3, 0, (void *)&to, size),
        recv(group, buffer, 10, MSG_DONTWAIT), read_below("/proc/net", 1, 60);
    setsockopt(group, IPPROTO_IP, IP_DROP_SOURCE_MEMBERSHIP, &source, sizeof source),
        setsockopt(group, IPPROTO_IP, IP_DROP_MEMBERSHIP, &all, sizeof all);
    setsockopt(group, SOL_SOCKET, SO_BROADCAST, &on, 4), to.sin_addr.s_addr = htonl(0x7fffffff),
        sendto(group, "all", 3, 0, (void *)&to, size), close(group);
}

static uint16_t sum_of(const uint16_t *words, int count) {
    uint32_t sum = 0;
    for (int word = 0; word < count; word++)
        sum += words[word];
    sum = (sum >> 16) + (sum & 0xffff);
    return ~(sum + (sum >> 16));
}

static void messages_of_icmp(void) {
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), plain = socket(AF_INET, SOCK_RAW, IPPROTO_RAW),
        ping = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
    int server = listening(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM, 0);
    put("/proc/sys/net/ipv4/icmp_echo_enable_probe", "1"),
        put("/proc/sys/net/ipv4/icmp_echo_ignore_broadcasts", "0");
    put("/proc/sys/net/ipv4/ping_group_range", "0 1000"), put("/proc/sys/net/ipv4/icmp_ratelimit", "0");
    connect(client, (void *)&address, size);
    struct sockaddr_in to = address, own;
    socklen_t length = sizeof own;
    getsockname(client, (void *)&own, &length), to.sin_port = 0;
    for (int type = 0; type < 44; type++)
        for (int code = 0; code < (type == 3 ? 16 : 2); code++) {
            struct {
                struct icmphdr head;
                struct iphdr of;
                uint16_t from, to;
                uint32_t sequence;
                char rest[28];
            } icmp = {{type, code, 0, {{0, 0}}}, {.version = 4, .ihl = 5,
                .protocol = code % 2 ? IPPROTO_UDP : IPPROTO_TCP, .saddr = own.sin_addr.s_addr,
                .daddr = to.sin_addr.s_addr, .tot_len = htons(60)}, own.sin_port, address.sin_port, 0, {0}};
            if (type == 3 && code == 4)
                icmp.head.un.frag.mtu = htons(600);
            if (type == 42)
                memcpy(&icmp.of, "\x20\0\0\0\0\x08\x03\x01lo\0\0", 12);
            icmp.head.checksum = sum_of((void *)&icmp, sizeof icmp / 2),
                sendto(raw, &icmp, sizeof icmp, MSG_DONTWAIT, (void *)&to, sizeof to);
            recv(raw, buffer, 2000, MSG_DONTWAIT), recv(raw, buffer, 2000, MSG_DONTWAIT);
        }
    struct icmphdr echo = {ICMP_ECHO, 0, 0, {{0, 0}}};
    sendto(ping, &echo, sizeof echo, 0, (void *)&to, sizeof to), recv(ping, buffer, 100, MSG_DONTWAIT);
    for (int piece = 0; piece < 40; piece++) { // fragments out of order, doubled, overlapping; odd headers
        struct {
            struct iphdr head;
            char body[400];
        } packet = {{.version = 4, .ihl = 5, .ttl = piece % 9 == 8 ? 1 : 64,
            .protocol = piece % 3 ? IPPROTO_UDP : 250, .id = htons(7 + piece / 8),
            .saddr = to.sin_addr.s_addr, .daddr = to.sin_addr.s_addr}, {0}};
        packet.head.frag_off = htons((piece * 5 % 8) * 48 | (piece * 5 % 8 == 7 ? 0 : 0x2000));
        sendto(plain, &packet, sizeof packet, 0, (void *)&to, sizeof to);
    }
    send(client, "x", 1, MSG_DONTWAIT), close(raw), close(plain), close(ping), close(client), close(server),
        nanosleep(&(struct timespec){1, 0}, 0);
}

static void local(void) {
    static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        int pair[2], second[2], server = socket(AF_UNIX, kinds[kind], 0),
            client = socket(AF_UNIX, kinds[kind], 0);
        struct sockaddr_un name = {AF_UNIX, "/tmp/tour-socket"}, hidden = {AF_UNIX, "\0hidden"};
        unlink(name.sun_path), bind(server, (void *)&name, sizeof name), listen(server, 2),
            bind(client, (void *)&hidden, 10);
        connect(client, (void *)&name, sizeof name), send(client, "x", 1, MSG_DONTWAIT),
            send(client, "y", 1, MSG_OOB | MSG_DONTWAIT);
        int peer = kind == 1 ? dup(server) : accept4(server, 0, 0, SOCK_NONBLOCK);
        socketpair(AF_UNIX, kinds[kind], 0, pair), socketpair(AF_UNIX, kinds[kind], 0, second);
        setsockopt(peer, SOL_SOCKET, SO_PASSCRED, &on, 4), setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on,
            4);
        // A descriptor; both ends in each other, for the garbage collector; credentials.
        for (int turn = 0; turn < 3; turn++) {
            char control[CMSG_SPACE(2 * sizeof(int))] = {0}, room[400];
            struct iovec piece = {"text", 4};
            struct msghdr message = {0, 0, &piece, 1, control, CMSG_SPACE(2 * sizeof(int)), 0};
            struct cmsghdr *head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS,
                head->cmsg_len = CMSG_LEN(2 * sizeof(int));
            memcpy(CMSG_DATA(head), turn == 1 ? pair : second, 2 * sizeof(int));
            sendmsg(pair[0], &message, 0);
            struct msghdr got = {0, 0, &(struct iovec){buffer, 100}, 1, room, sizeof room, 0};
            if (!turn)
                recvmsg(pair[1], &got, MSG_CMSG_CLOEXEC), recv(pair[1], buffer, 1, MSG_PEEK | MSG_DONTWAIT);
        }
        recv(peer, buffer, 1, MSG_OOB | MSG_DONTWAIT), recv(peer, buffer, 10, MSG_PEEK | MSG_DONTWAIT),
            recv(peer, buffer, 10, MSG_DONTWAIT);
        int pipes[2], file = memfd_create("sent", 0);
        ftruncate(file, 20000), pipe(pipes), fcntl(second[0], F_SETFL, O_NONBLOCK),
            fcntl(second[1], F_SETFL, O_NONBLOCK);
        sendfile(second[0], file, 0, 5000), splice(second[1], 0, pipes[1], 0, 4096, SPLICE_F_NONBLOCK),
            ioctl(second[1], SIOCINQ, buffer);
        ioctl(second[1], SIOCOUTQ, buffer), ioctl(second[1], 0x89e0, 0), ioctl(pair[0], SIOCATMARK, buffer);
        socklen_t length = 100;
        getsockopt(second[1], SOL_SOCKET, SO_PEERCRED, buffer, &length),
            getsockname(server, (void *)buffer, &length), getpeername(peer, (void *)buffer, &length);
        int value = 16;
        setsockopt(second[1], SOL_SOCKET, SO_PEEK_OFF, &value, 4),
            recv(second[1], buffer, 10, MSG_PEEK | MSG_DONTWAIT);
        read_below("/proc/net", 1, 50), shutdown(second[0], SHUT_RDWR),
            send(second[1], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        close(pair[0]), close(pair[1]), close(second[0]), close(second[1]), close(pipes[0]), close(pipes[1]),
            close(file);
        close(client), close(peer), close(server), close(socket(AF_UNIX, SOCK_STREAM, 0)),
            unlink(name.sun_path);
    }
    nanosleep(&(struct timespec){0, 50000000}, 0);
}

static void packets(void) {
    int ring = socket(AF_PACKET, SOCK_RAW, htons(3)), cooked = socket(AF_PACKET, SOCK_DGRAM, htons(3));
    struct sockaddr_ll lo = {.sll_family = AF_PACKET, .sll_protocol = htons(3),
        .sll_ifindex = if_nametoindex("lo"), .sll_halen = 6};
    for (int version = 0; version < 3; version++) {
        int file = socket(AF_PACKET, SOCK_RAW, htons(3));
        struct tpacket_req3 request = {4096, 4, 2048, 8, 10, 0, 0};
        setsockopt(file, SOL_PACKET, PACKET_VERSION, &version, 4),
            setsockopt(file, SOL_PACKET, PACKET_RX_RING, &request, version == 2 ? 28 : 16);
        setsockopt(file, SOL_PACKET, PACKET_TX_RING, &request, version == 2 ? 28 : 16),
            bind(file, (void *)&lo, sizeof lo);
        void *map = mmap(0, 32768, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        sendto(cooked, buffer, 60, 0, (void *)&lo, sizeof lo),
            setsockopt(file, SOL_PACKET, PACKET_FANOUT, &(int){7 | version << 16}, 4);
        sendto(cooked, buffer, 60, 0, (void *)&lo, sizeof lo),
            poll(&(struct pollfd){file, POLLIN | POLLOUT, 0}, 1, 20), munmap(map, 32768), close(file);
    }
    struct packet_mreq all = {lo.sll_ifindex, PACKET_MR_PROMISC, 0, {0}};
    setsockopt(ring, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all),
        setsockopt(ring, SOL_PACKET, PACKET_AUXDATA, &on, 4), bind(ring, (void *)&lo, sizeof lo);
    memset(buffer, 0, 100), buffer[12] = 8, sendto(ring, buffer, 100, 0, (void *)&lo, sizeof lo),
        recv(ring, buffer, 100, MSG_DONTWAIT);
    buffer[12] = (char)0x81, buffer[13] = 0, buffer[16] = 8, send(ring, buffer, 100, MSG_DONTWAIT),
        setsockopt(ring, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &all, sizeof all), close(ring), close(cooked);
}

int main(void) {
    in_guest(), loopback_up();
    part(every_option), part(connections), part(deferred), part(segmented), part(repaired), part(filters),
        part(datagrams),
        part(messages_of_icmp), part(local), part(packets);
    return 0;
}
