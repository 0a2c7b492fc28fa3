// The network's configuration through netlink: devices, addresses, neighbours, routes, next hops, rules,
// queueing;
// then packets that take these ways.
#include <linux/ethtool.h>
#include <linux/fib_rules.h>
#include <linux/genetlink.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

static int route = -1;
static struct {
    struct nlmsghdr head;
    char body[4000];
} ask;

static void opened(void) {
    close(route), route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE),
        setsockopt(route, 270, 11, &(int){1}, 4);
}

static void begin(int type, int flags, const void *fixed, int length) {
    memset(&ask, 0, sizeof ask);
    ask.head = (struct nlmsghdr){NLMSG_HDRLEN, type, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0};
    memcpy(ask.body, fixed, length), ask.head.nlmsg_len += NLMSG_ALIGN(length);
}

static struct rtattr *with(int type, const void *value, int length) {
    struct rtattr *at = (void *)((char *)&ask + ask.head.nlmsg_len);
    at->rta_type = type, at->rta_len = RTA_LENGTH(length), memcpy(RTA_DATA(at), value, length);
    ask.head.nlmsg_len += RTA_ALIGN(at->rta_len);
    return at;
}

static void with_number(int type, unsigned value) { with(type, &value, 4); }
static void within(struct rtattr *outer) {
    outer->rta_len = (char *)&ask + ask.head.nlmsg_len - (char *)outer;
}

static int sent(void) {
    int result = 0;
    send(route, &ask, ask.head.nlmsg_len, 0);
    for (int turn = 0; turn < 12; turn++) {
        long size = recv(route, buffer, sizeof buffer, MSG_DONTWAIT);
        struct nlmsghdr *head = (void *)buffer;
        if (size <= 0)
            break;
        if (head->nlmsg_type == NLMSG_ERROR)
            memcpy(&result, NLMSG_DATA(head), 4);
    }
    return result;
}

static int number_of(const char *name) { return if_nametoindex(name); }
static uint32_t ip(int last) { return htonl(0x0a000000 + last); }

static void device(const char *kind, const char *name, const char *peer) {
    struct ifinfomsg info = {0};
    begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof info),
        with(IFLA_IFNAME, name, strlen(name) + 1);
    with_number(IFLA_TXQLEN, 100);
    struct rtattr *outer = with(IFLA_LINKINFO, "", 0);
    with(IFLA_INFO_KIND, kind, strlen(kind));
    if (peer) {
        struct rtattr *data = with(IFLA_INFO_DATA, "", 0), *of = with(1, &info, sizeof info);
        with(IFLA_IFNAME, peer, strlen(peer) + 1), within(of), within(data);
    }
    within(outer), sent();
}

static void up(const char *name, int flags) {
    struct ifreq ask_for = {0};
    strncpy(ask_for.ifr_name, name, IFNAMSIZ - 1), ask_for.ifr_flags = flags;
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    ioctl(file, SIOCSIFFLAGS, &ask_for), close(file);
}

static void addressed(const char *name, int last, int type) {
    struct ifaddrmsg info = {AF_INET, 24, 0, 0, number_of(name)};
    uint32_t own = ip(last), all = ip(last | 255);
    begin(type, type == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_REPLACE : 0, &info, sizeof info),
        with(IFA_LOCAL, &own, 4), with(IFA_ADDRESS, &own, 4);
    with(IFA_BROADCAST, &all, 4), with(IFA_CACHEINFO, (uint32_t[4]){100, 200}, 16), sent();
}

static void routed(int type, unsigned kind, int to, int by, const char *name, int table) {
    struct rtmsg info = {AF_INET, 24, 0, 0, table, RTPROT_STATIC, RT_SCOPE_UNIVERSE, kind, 0};
    uint32_t target = ip(to), gate = ip(by), mtu = 1300;
    begin(type, type == RTM_NEWROUTE ? NLM_F_CREATE | NLM_F_APPEND : 0, &info, sizeof info),
        with(RTA_DST, &target, 4);
    if (name)
        with_number(RTA_OIF, number_of(name));
    if (by)
        with(RTA_GATEWAY, &gate, 4);
    struct rtattr *metrics = with(RTA_METRICS, "", 0);
    with(RTAX_MTU, &mtu, 4), within(metrics), sent();
}

static void several(int to, const char *first, const char *second) {
    struct rtmsg info = {AF_INET, 24, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_UNICAST, 0};
    uint32_t target = ip(to), gates[2] = {ip(2), ip(0x102)};
    begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &info, sizeof info), with(RTA_DST, &target, 4);
    char hops[2][16];
    for (int hop = 0; hop < 2; hop++) {
        struct rtnexthop *at = (void *)hops[hop];
        *at = (struct rtnexthop){16, 0, hop, number_of(hop ? second : first)};
        struct rtattr *gate = RTNH_DATA(at);
        gate->rta_type = RTA_GATEWAY, gate->rta_len = 8, memcpy(RTA_DATA(gate), &gates[hop], 4);
    }
    with(RTA_MULTIPATH, hops, sizeof hops), sent();
}

static void next_hop(int type, int number, int by, const char *name, int group, int resilient) {
    struct nhmsg info = {AF_INET, 0, RTPROT_STATIC, 0, 0};
    uint32_t gate = ip(by);
    begin(type, type == RTM_NEWNEXTHOP ? NLM_F_CREATE | NLM_F_REPLACE : 0, &info, sizeof info),
        with_number(NHA_ID, number);
    if (group) {
        struct nexthop_grp both[2] = {{1, 0, 0, 0}, {2, 1, 0, 0}};
        with(NHA_GROUP, both, sizeof both), with(NHA_GROUP_TYPE, &(uint16_t){resilient}, 2);
        if (resilient) {
            struct rtattr *outer = with(NHA_RES_GROUP | NLA_F_NESTED, "", 0);
            with(NHA_RES_GROUP_BUCKETS, &(uint16_t){8}, 2), within(outer);
        }
    } else if (name) {
        with_number(NHA_OIF, number_of(name));
        if (strcmp(name, "lo"))
            with(NHA_GATEWAY, &gate, 4);
    }
    sent();
}

static void rule(int type, int from, int table) {
    struct fib_rule_hdr info = {AF_INET, 0, 24, 0, table, 0, 0, FR_ACT_TO_TBL, 0};
    uint32_t source = ip(from);
    begin(type, NLM_F_CREATE | NLM_F_EXCL, &info, sizeof info), with(FRA_SRC, &source, 4),
        with_number(FRA_PRIORITY, 100), with_number(FRA_FWMARK, 7), sent();
}

static void neighbour(int type, const char *name, int last, int state) {
    struct ndmsg info = {AF_INET, 0, 0, number_of(name), state, 0, 0};
    uint32_t target = ip(last);
    begin(type, NLM_F_CREATE | NLM_F_REPLACE, &info, sizeof info), with(NDA_DST, &target, 4),
        with(NDA_LLADDR, "\2\0\0\0\0\1", 6), sent();
}

static void queueing(const char *name, const char *kind, int type) {
    struct tcmsg info = {AF_UNSPEC, 0, 0, number_of(name), 0x10000, TC_H_ROOT, 0};
    begin(type, NLM_F_CREATE | NLM_F_REPLACE, &info, sizeof info), with(TCA_KIND, kind, strlen(kind) + 1),
        sent();
}

static void dumps(void) {
    static const int types[] = {RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE, RTM_GETNEIGH, RTM_GETRULE,
        RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER, RTM_GETNEIGHTBL,
        RTM_GETNETCONF, RTM_GETNSID, RTM_GETSTATS, RTM_GETNEXTHOP, RTM_GETNEXTHOPBUCKET, RTM_GETMULTICAST,
            RTM_GETANYCAST, RTM_GETADDRLABEL, RTM_GETMDB, RTM_GETDCB};
    for (size_t type = 0; type < COUNT(types); type++)
        for (int family = 0; family < 3; family++) {
            static const int families[] = {AF_UNSPEC, AF_INET, AF_BRIDGE};
            char fixed[32] = {families[family]};
            if (types[type] == RTM_GETSTATS)
                fixed[8] = 31;
            begin(types[type], NLM_F_DUMP, fixed,
                types[type] == RTM_GETNEXTHOP || types[type] == RTM_GETADDR ? 8
                : types[type] == RTM_GETLINK ? 16 : 12), sent();
        }
    struct ifinfomsg info = {.ifi_index = 1};
    begin(RTM_GETLINK, 0, &info, sizeof info), with_number(IFLA_EXT_MASK, 0xff), sent(),
        begin(RTM_GETLINK, NLM_F_DUMP, &info, 16), with_number(IFLA_EXT_MASK, 0xff), sent();
    struct rtmsg to = {AF_INET, 32, 0, 0, 0, 0, 0, 0, RTM_F_LOOKUP_TABLE | RTM_F_FIB_MATCH};
    for (int last = 0; last < 0x400; last += 0x101) {
        uint32_t target = ip(last + 9);
        to.rtm_flags ^= RTM_F_FIB_MATCH, begin(RTM_GETROUTE, 0, &to, sizeof to), with(RTA_DST, &target, 4),
            with_number(RTA_MARK, 7), sent();
    }
    struct ifaddrmsg at = {AF_INET, 32, 0, 0, 1};
    uint32_t lo = htonl(INADDR_LOOPBACK);
    begin(RTM_GETADDR, 0, &at, sizeof at), with(IFA_LOCAL, &lo, 4), sent();
    struct nhmsg hop = {0};
    begin(RTM_GETNEXTHOP, 0, &hop, sizeof hop), with_number(NHA_ID, 3), sent();
    struct ndtmsg table = {AF_INET, 0, 0};
    begin(RTM_SETNEIGHTBL, NLM_F_REPLACE, &table, sizeof table), with(NDTA_NAME, "arp_cache", 10),
        with_number(NDTA_THRESH1, 100);
    struct rtattr *outer = with(NDTA_PARMS, "", 0);
    with_number(NDTPA_IFINDEX, 1), with_number(NDTPA_QUEUE_LENBYTES, 200000),
        with(NDTPA_REACHABLE_TIME, &(uint64_t){30000}, 8), within(outer), sent();
}

static void traffic(void) {
    for (int turn = 0; turn < 14; turn++) {
        int file = socket(AF_INET, turn % 3 == 2 ? SOCK_STREAM | SOCK_NONBLOCK : SOCK_DGRAM | SOCK_NONBLOCK,
            0);
        struct sockaddr_in to = {AF_INET, htons(9), {ip(turn * 0x80 + 9)}, {0}};
        if (turn % 2)
            setsockopt(file, SOL_SOCKET, SO_MARK, &(int){7}, 4);
        connect(file, (void *)&to, sizeof to), send(file, buffer, 3000, MSG_NOSIGNAL | MSG_CONFIRM),
            send(file, buffer, 30, MSG_DONTROUTE | MSG_NOSIGNAL), close(file);
    }
    nanosleep(&(struct timespec){0, 300000000}, 0);
}

static void devices(void) {
    static const char *const kinds[] = {"dummy", "ifb", "bridge", "vlan", "vxlan", "gre", "ipip", "sit",
        "bond", "team", "macvlan", "ipvlan", "vrf", "tun", "nlmon", "vcan", "geneve"};
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        char name[16];
        snprintf(name, sizeof name, "tour%zu", kind), device(kinds[kind], name, 0), up(name, IFF_UP);
    }
    device("veth", "v0", "v1"), device("veth", "v2", "v3"), up("v0", IFF_UP), up("v1", IFF_UP);
    const char *one = number_of("v0") ? "v0" : number_of("tour0") ? "tour0" : "lo",
        *two = number_of("v1") ? "v1" : one;
    up("lo", IFF_UP), addressed("lo", 0x301, RTM_NEWADDR), addressed(one, 1, RTM_NEWADDR),
        addressed(two, 0x101, RTM_NEWADDR), addressed(one, 3, RTM_NEWADDR);
    neighbour(RTM_NEWNEIGH, one, 2, NUD_PERMANENT), neighbour(RTM_NEWNEIGH, two, 0x102, NUD_REACHABLE),
        neighbour(RTM_NEWNEIGH, one, 5, NUD_STALE);
    put("/proc/sys/net/ipv4/ip_forward", "1"), put("/proc/sys/net/ipv4/conf/all/send_redirects", "1"),
        put("/proc/sys/net/ipv4/conf/all/rp_filter", "1");
    next_hop(RTM_NEWNEXTHOP, 1, 2, one, 0, 0), next_hop(RTM_NEWNEXTHOP, 2, 0x102, two, 0, 0),
        next_hop(RTM_NEWNEXTHOP, 3, 0, 0, 1, 0), next_hop(RTM_NEWNEXTHOP, 4, 0, 0, 1, 1);
    static const int kinds_of_route[] = {RTN_UNICAST, RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT,
        RTN_THROW};
    for (size_t kind = 0; kind < COUNT(kinds_of_route); kind++)
        routed(RTM_NEWROUTE, kinds_of_route[kind], 0x400 + kind * 0x100, kind ? 0 : 2, kind ? 0 : one,
            RT_TABLE_MAIN), routed(RTM_NEWROUTE, kinds_of_route[kind], 0x400, 0, one, 100);
    several(0x600, one, two), several(0x500, one, two), rule(RTM_NEWRULE, 0x300, 100),
        rule(RTM_NEWRULE, 0, 100), dumps(), traffic();
    static const char *const queues[] = {"pfifo_fast", "pfifo", "bfifo", "noqueue", "fq", "fq_codel", "prio",
        "tbf", "htb", "mq", "sfq", "netem"};
    for (size_t queue = 0; queue < COUNT(queues); queue++)
        queueing(one, queues[queue], RTM_NEWQDISC), traffic(), dumps();
    queueing(one, "", RTM_DELQDISC), read_below("/proc/net", 2, 120), read_below("/sys/class/net", 2, 200),
        write_back("/proc/sys/net", 5);
    char path[100];
    snprintf(path, sizeof path, "/sys/class/net/%s", one), read_below(path, 3, 200), write_back(path, 2),
        write_back("/sys/class/net/lo", 2);
    int file = socket(AF_INET, SOCK_DGRAM, 0);
    for (unsigned command = 1; command < 0x5a; command++) {
        static unsigned data[2000];
        struct ifreq ask_for = {0};
        memset(data, 0, 400), data[0] = command, data[1] = command == ETHTOOL_GSTRINGS ? 1 : 0;
        strncpy(ask_for.ifr_name, one, IFNAMSIZ - 1), ask_for.ifr_data = (void *)data,
            ioctl(file, SIOCETHTOOL, &ask_for);
    }
    for (int request = 0x8910; request < 0x8970; request++) {
        struct ifreq ask_for = {0};
        strncpy(ask_for.ifr_name, one, IFNAMSIZ - 1);
        if (request != SIOCSIFFLAGS)
            ioctl(file, request, &ask_for);
    }
    close(file), rule(RTM_DELRULE, 0, 100), next_hop(RTM_DELNEXTHOP, 3, 0, 0, 0, 0),
        next_hop(RTM_DELNEXTHOP, 1, 0, 0, 0, 0);
    routed(RTM_DELROUTE, RTN_UNICAST, 0x400, 2, one, RT_TABLE_MAIN), neighbour(RTM_DELNEIGH, one, 2, 0),
        addressed(one, 3, RTM_DELADDR), addressed("lo", 0x301, RTM_DELADDR);
    up(one, 0), traffic();
    struct ifinfomsg gone = {.ifi_index = number_of(one), .ifi_change = IFF_UP, .ifi_flags = IFF_UP};
    begin(RTM_SETLINK, 0, &gone, sizeof gone), with_number(IFLA_MTU, 1400), with(IFLA_IFALIAS, "alias", 5),
        with_number(IFLA_GROUP, 5), sent();
    if (strcmp(one, "lo"))
        begin(RTM_DELLINK, 0, &gone, sizeof gone), sent();
}

static void in_namespace(void) {
    int outer = open("/proc/self/ns/net", O_RDONLY);
    unshare(CLONE_NEWNET), opened(), devices();
    struct rtgenmsg info = {AF_UNSPEC};
    begin(RTM_NEWNSID, 0, &info, 4), with_number(1, outer), with_number(4, 3), sent(),
        begin(RTM_GETNSID, 0, &info, 4), with_number(1, outer), sent();
    setns(outer, CLONE_NEWNET);
}

static void generic(void) {
    int file = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), groups = ~0;
    bind(file, (void *)&(struct sockaddr_nl){.nl_family = AF_NETLINK, .nl_groups = groups},
        sizeof(struct sockaddr_nl));
    for (int family = 16; family < 36; family++)
        for (int command = 0; command < 24; command++)
            for (int flags = 0; flags <= NLM_F_DUMP; flags += NLM_F_DUMP) {
                struct {
                    struct nlmsghdr head;
                    struct genlmsghdr generic;
                    struct nlattr first;
                    uint32_t value;
                } query = {{sizeof query, family, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0}, {command, 1, 0},
                    {8, 1}, 16};
                query.value = family == 16 ? 16 : (uint32_t)getpid();
                if (family == 16)
                    query.first.nla_len = 6;
                else if (command % 2)
                    query.first.nla_type = 3, memcpy(&query.value, "0", 2);
                send(file, &query, sizeof query, 0);
                for (int turn = 0; turn < 3; turn++)
                    recv(file, buffer, sizeof buffer, MSG_DONTWAIT);
            }
    setsockopt(file, 270, 1, &(int){5}, 4), setsockopt(file, 270, 2, &(int){5}, 4),
        setsockopt(file, 270, 12, &(int){1}, 4), close(file);
}

static void between_sockets(void) {
    int here = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK),
        there = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
    struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = 77};
    bind(there, (void *)&to, sizeof to), sendto(here, buffer, 100, MSG_DONTWAIT, (void *)&to, sizeof to);
    recv(there, buffer, 100, MSG_DONTWAIT), bind(here, (void *)&to, sizeof to), close(there), close(here);
}

static void events(void) {
    int watcher = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    bind(watcher, (void *)&(struct sockaddr_nl){.nl_family = AF_NETLINK, .nl_groups = ~0},
        sizeof(struct sockaddr_nl));
    struct ifinfomsg info = {0};
    for (int type = RTM_NEWLINK; type < RTM_MAX; type++)
        begin(type, 0, &info, sizeof info), sent(), begin(type, NLM_F_CREATE, &info, 4), sent();
    while (recv(watcher, buffer, sizeof buffer, MSG_DONTWAIT) > 0)
        ;
    close(watcher);
}

int main(void) {
    in_guest();
    opened(), part(between_sockets), part(events), part(generic), part(in_namespace), part(devices);
    return 0;
}
