/*
 * Has the kernel make code while it runs, and runs it: a BPF program or a trampoline of ftrace, by the first argument.
 *
 *   ebpf     a socket filter that bpf(2) loads, and that has a name
 *   classic  one that SO_ATTACH_FILTER takes, which has none
 *   ftrace   the function tracer, for one function
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DATAGRAMS = 200, ROUNDS = 300, TRACES = 2000 };

#define TRACED "__task_pid_nr_ns"
#define TRACING "/sys/kernel/tracing"
#define INSN(c, d, s, o, i) ((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})

/* Counts to ROUNDS and keeps the whole packet. */
static int ebpf(void)
{
	const struct bpf_insn program[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_0, 0, 0, 1),
		INSN(BPF_JMP | BPF_JLT | BPF_K, BPF_REG_0, 0, -2, ROUNDS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (unsigned long)program,
		.insn_cnt = sizeof program / sizeof *program,
		.license = (unsigned long)"GPL",
		.prog_name = "counts_to_300",
	};
	int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
	if (fd < 0)
		err(1, "bpf");
	return fd;
}

static void attach(int to, const char *kind)
{
	if (!strcmp(kind, "ebpf")) {
		int fd = ebpf();
		if (setsockopt(to, SOL_SOCKET, SO_ATTACH_BPF, &fd, sizeof fd))
			err(1, "SO_ATTACH_BPF");
		return;
	}
	struct sock_filter filter[ROUNDS + 1];
	for (int i = 0; i < ROUNDS; i++)
		filter[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, i);
	filter[ROUNDS] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, -1);
	struct sock_fprog program = {.len = ROUNDS + 1, .filter = filter};
	if (setsockopt(to, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program))
		err(1, "SO_ATTACH_FILTER");
}

static void filtered(const char *kind)
{
	struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof place;
	int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(to, (void *)&place, length) || getsockname(to, (void *)&place, &length))
		err(1, "bind");
	attach(to, kind);
	for (int i = 0; i < DATAGRAMS; i++) {
		char byte = 'x';
		if (sendto(from, &byte, 1, 0, (void *)&place, length) != 1 || recv(to, &byte, 1, 0) != 1)
			err(1, "datagram");
	}
}

static void tell(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) != (ssize_t)strlen(value) || close(fd))
		err(1, "%s", path);
}

static void traced(void)
{
	if (mount("tracefs", TRACING, "tracefs", 0, NULL) && errno != EBUSY)
		err(1, "mount");
	tell(TRACING "/set_ftrace_filter", TRACED);
	char filter[sizeof TRACED] = {0};
	int fd = open(TRACING "/set_ftrace_filter", O_RDONLY);
	if (fd < 0 || read(fd, filter, sizeof filter - 1) < 0 || close(fd) || strcmp(filter, TRACED))
		errx(1, "all functions would be traced: %s", filter);
	tell(TRACING "/current_tracer", "function");
	for (int i = 0; i < TRACES; i++)
		syscall(SYS_getppid);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "ebpf, classic or ftrace");
	if (!strcmp(argv[1], "ftrace"))
		traced();
	else
		filtered(argv[1]);
	return 0;
}
