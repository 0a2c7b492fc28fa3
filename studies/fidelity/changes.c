/* Changes of the process that operates: filters, tracers, sizes. What is around it is in surroundings.c. */
#define _GNU_SOURCE
#include "operations.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static char named[64];
static long number;

void need(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

long checked(long result, const char *what)
{
	need(result >= 0, what);
	return result;
}

/* A name that is not here is a mistake, and no change. */
static const char *const all[] = {
	"none", "nothing", "seccomp", "seccomp-remembered", "bpf", "tracepoint", "clock-syscall", "pidns", "threads",
	"fds", "dir", "depth", "overlay", "ext4", "xfs", "landlock", "inotify", "uring", "bytes", "locks", "watch",
	"vmas", "rss", "thp", "sockfilter", "timestamps", "connected", "mtu", "reno", "bbr", "routes", "rules", "nft",
	"veth", 0,
};

void read_change(const char *text)
{
	need(strlen(text) < sizeof named, "the change's name");
	strcpy(named, text);
	char *dash = strrchr(named, '-');
	number = dash && dash[1] >= '0' && dash[1] <= '9' ? atol(dash + 1) : 1;
	if (dash && dash[1] >= '0' && dash[1] <= '9')
		*dash = 0;
	for (int one = 0; all[one]; one++)
		if (change_is(all[one]))
			return;
	fprintf(stderr, "there is no change %s\n", text);
	exit(2);
}

bool change_is(const char *name)
{
	return !strcmp(named, name);
}

long change_number(void)
{
	return number;
}

long size_of_copies(void)
{
	return change_is("bytes") ? number : 512;
}

/* `number` comparisons that never match. Of an argument: nothing is remembered. Of the call's number: the
 * kernel remembers in a bitmap that the answer is always yes (8e01b51a31a1, 5.11). */
static void seccomp_filter(bool remembered)
{
	static struct sock_filter code[4096];
	int at = 0, offset = remembered ? 0 : offsetof(struct seccomp_data, args[5]);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
	for (long one = 0; one < number; one++) {
		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xdead0000 + one, 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {.len = at, .filter = code};
	checked(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
	checked(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

void filter_socket(int socket)
{
	static struct sock_filter code[1024];
	if (!change_is("sockfilter"))
		return;
	for (long one = 0; one < number; one++)
		code[one] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, one);
	code[number] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, -1);
	struct sock_fprog program = {.len = number + 1, .filter = code};
	checked(setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), "socket filter");
}

static void landlock_layers(void)
{
	struct landlock_ruleset_attr handled = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				     LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE};
	struct landlock_path_beneath_attr rule = {.allowed_access = handled.handled_access_fs};
	rule.parent_fd = checked(open(PLACE, O_PATH), PLACE);
	checked(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges");
	for (long layer = 0; layer < number; layer++) {
		int set = checked(syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0), "landlock");
		checked(syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule, 0), "landlock rule");
		checked(syscall(SYS_landlock_restrict_self, set, 0), "landlock_restrict_self");
	}
}

/* An empty program at each system call, of whomever. It goes when the process ends. */
static void bpf_at_system_calls(void)
{
	struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insn_cnt = 2};
	load.insns = (unsigned long)code, load.license = (unsigned long)"GPL";
	int program = checked(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load), "bpf program");
	union bpf_attr attach = {.raw_tracepoint = {.name = (unsigned long)"sys_enter", .prog_fd = program}};
	checked(syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attach, sizeof attach), "raw tracepoint");
}

/* Counts this process's system calls, as perf stat -e raw_syscalls:sys_enter does. */
static void count_system_calls(void)
{
	char text[32] = "";
	int id = checked(open("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", O_RDONLY), "tracepoint");
	need(read(id, text, sizeof text - 1) > 0, "tracepoint");
	struct perf_event_attr counted = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof counted, .config = atol(text)};
	checked(syscall(SYS_perf_event_open, &counted, 0, -1, -1, 0), "perf event");
}

static void *wait_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void idle_threads(void)
{
	pthread_t one;
	for (long made = 0; made < number; made++)
		need(pthread_create(&one, 0, wait_for_ever, 0) == 0, "thread");
}

static void open_descriptors(void)
{
	struct rlimit most;
	checked(getrlimit(RLIMIT_NOFILE, &most), "limit of descriptors");
	if (most.rlim_max < (rlim_t)number + 100)
		most.rlim_max = number + 100; /* guests have 4096 */
	most.rlim_cur = number + 100;
	checked(setrlimit(RLIMIT_NOFILE, &most), "limit of descriptors");
	int null = checked(open("/dev/null", O_RDONLY), "/dev/null");
	for (long one = 0; one < number; one++)
		checked(dup(null), "descriptor");
}

/* Single pages of alternating rights: no two become one mapping. */
static void mappings(void)
{
	for (long one = 0; one < number; one++) {
		int rights = one % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
		need(mmap(0, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "mapping");
	}
}

static void resident(void)
{
	char *at = mmap(0, number << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(at != MAP_FAILED, "memory");
	checked(madvise(at, number << 20, MADV_NOHUGEPAGE), "madvise");
	memset(at, 1, number << 20);
}

void change_process(void)
{
	if (change_is("threads"))
		idle_threads();
	else if (change_is("fds"))
		open_descriptors();
	else if (change_is("vmas"))
		mappings();
	else if (change_is("rss"))
		resident();
	else if (change_is("landlock"))
		landlock_layers();
	else if (change_is("bpf"))
		bpf_at_system_calls();
	else if (change_is("tracepoint"))
		count_system_calls();
	else if (change_is("seccomp") || change_is("seccomp-remembered"))
		seccomp_filter(change_is("seccomp-remembered"));
}
