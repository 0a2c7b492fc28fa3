/* Operations on pipes and sockets, in a network namespace of the program's own. */
#define _GNU_SOURCE
#include "operations.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2], sender, receiver, listener;
static struct sockaddr_in address;
static char *out, *in;

static void buffers(void)
{
	out = aligned_alloc(4096, 1 << 20), in = aligned_alloc(4096, 1 << 20);
	memset(out, 1, 1 << 20), memset(in, 1, 1 << 20);
}

/* Through and back out, whole. */
static void through(int to, int from, long size)
{
	long sent = 0, got = 0;
	while (got < size) {
		if (sent < size)
			sent += checked(send(to, out + sent, size - sent, MSG_DONTWAIT), "send");
		got += checked(recv(from, in + got, size - got, 0), "receive");
	}
}

static void pipe_prepare(void)
{
	buffers();
	checked(pipe(ends), "pipe");
}

static void pipe_often(long times)
{
	long size = size_of_copies();
	while (times--)
		need(write(ends[1], out, size) == size && read(ends[0], in, size) == size, "pipe");
}

static void unix_prepare(void)
{
	buffers();
	checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	filter_socket(ends[1]);
}

static void unix_often(long times)
{
	while (times--)
		through(ends[0], ends[1], size_of_copies());
}

/* In the other network namespace where there is one: then what is sent goes through veth. */
static int receiving(int type)
{
	socklen_t length = sizeof address;
	int other = other_namespace(), one = 1, made;
	address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (other < 0) {
		made = checked(socket(AF_INET, type, 0), "socket");
	} else {
		int home = checked(open("/proc/self/ns/net", O_RDONLY), "own network namespace");
		address.sin_addr.s_addr = inet_addr("10.9.0.2");
		checked(setns(other, CLONE_NEWNET), "setns");
		made = checked(socket(AF_INET, type, 0), "socket");
		checked(bind(made, (void *)&address, sizeof address), "bind");
		checked(setns(home, CLONE_NEWNET), "setns");
		close(home);
	}
	if (other < 0)
		checked(bind(made, (void *)&address, sizeof address), "bind");
	checked(getsockname(made, (void *)&address, &length), "name");
	if (change_is("timestamps"))
		checked(setsockopt(made, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one), "timestamps");
	filter_socket(made);
	return made;
}

static void udp_prepare(void)
{
	buffers();
	receiver = receiving(SOCK_DGRAM);
	sender = checked(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	if (change_is("connected"))
		checked(connect(sender, (void *)&address, sizeof address), "connect");
}

static void udp_often(long times)
{
	long size = size_of_copies() < 60000 ? size_of_copies() : 60000;
	bool connected = change_is("connected");
	while (times--) {
		struct sockaddr *to = connected ? 0 : (void *)&address;
		need(sendto(sender, out, size, 0, to, connected ? 0 : sizeof address) == size, "sendto");
		need(recv(receiver, in, size, 0) == size, "recv");
	}
}

static void congestion(int of)
{
	const char *named = change_is("reno") ? "reno" : change_is("bbr") ? "bbr" : "cubic";
	checked(setsockopt(of, IPPROTO_TCP, TCP_CONGESTION, named, strlen(named)), named);
}

static void listen_prepare(void)
{
	buffers();
	listener = receiving(SOCK_STREAM);
	congestion(listener);
	checked(listen(listener, 16), "listen");
}

static int connected(void)
{
	int one = 1, made = checked(socket(AF_INET, SOCK_STREAM, 0), "socket");
	congestion(made);
	checked(setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "nodelay");
	checked(connect(made, (void *)&address, sizeof address), "connect");
	return made;
}

static void tcp_prepare(void)
{
	listen_prepare();
	sender = connected();
	receiver = checked(accept(listener, 0, 0), "accept");
}

static void tcp_often(long times)
{
	while (times--)
		through(sender, receiver, size_of_copies());
}

/* The side that connects ends with a reset, so that no port waits for two minutes. */
static void accept_often(long times)
{
	struct linger none = {.l_onoff = 1, .l_linger = 0};
	while (times--) {
		int one = connected(), other = checked(accept(listener, 0, 0), "accept");
		checked(setsockopt(one, SOL_SOCKET, SO_LINGER, &none, sizeof none), "linger");
		close(one), close(other);
	}
}

const struct operation socket_operations[] = {
	{"pipe", pipe_prepare, pipe_often, 800},	{"unix", unix_prepare, unix_often, 400},
	{"udp", udp_prepare, udp_often, 200},		{"tcp", tcp_prepare, tcp_often, 150},
	{"accept", listen_prepare, accept_often, 20},	{0},
};
