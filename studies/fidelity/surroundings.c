/* What is around the process: namespaces, file systems, networks, made anew and gone with it. */
#define _GNU_SOURCE
#include "operations.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BASE "/tmp/ktrial-operations-base"
enum { IMAGE_BYTES = 320 << 20 };
static int other = -1;

/* Runs a program with the text as its input, and its output dropped. */
void feed(const char *const arguments[], const char *text)
{
	int status, input = checked(memfd_create("input", 0), "input");
	need(write(input, text, strlen(text)) == (ssize_t)strlen(text), "input");
	checked(lseek(input, 0, SEEK_SET), "input");
	pid_t child = checked(vfork(), "vfork");
	if (!child) {
		dup2(input, 0);
		dup2(open("/dev/null", O_WRONLY), 1);
		execv(arguments[0], (char *const *)arguments);
		_exit(127);
	}
	need(waitpid(child, &status, 0) == child && status == 0, arguments[0]);
	close(input);
}

static void place(const char *path)
{
	mkdir(path, 0755);
	checked(mount("none", path, "tmpfs", 0, "size=700m,mode=755"), path);
}

static void overlay(void)
{
	for (int one = 0; one < 3; one++)
		checked(mkdir((const char *[]){BASE "/lower", BASE "/upper", BASE "/work"}[one], 0755), BASE);
	checked(mount("overlay", PLACE, "overlay", 0,
		      "lowerdir=" BASE "/lower,upperdir=" BASE "/upper,workdir=" BASE "/work"), "overlay");
}

/* On a loop device over a file in memory; the device frees itself when nothing is mounted any more. */
static void disk(const char *type, const char *make)
{
	char device[32];
	int image = checked(open(BASE "/image", O_CREAT | O_RDWR, 0600), "image");
	checked(ftruncate(image, IMAGE_BYTES), "image");
	feed((const char *const[]){make, "-q", BASE "/image", 0}, "");
	int control = checked(open("/dev/loop-control", O_RDWR), "loop devices");
	snprintf(device, sizeof device, "/dev/loop%ld", checked(ioctl(control, LOOP_CTL_GET_FREE), "loop"));
	int loop = checked(open(device, O_RDWR), device);
	struct loop_config as = {.fd = image, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
	checked(ioctl(loop, LOOP_CONFIGURE, &as), device);
	checked(mount(device, PLACE, type, 0, ""), type);
	close(loop), close(control), close(image);
}

static void file_system(void)
{
	place(BASE);
	mkdir(PLACE, 0755);
	if (change_is("overlay"))
		overlay();
	else if (change_is("ext4"))
		disk("ext4", "/usr/sbin/mkfs.ext4");
	else if (change_is("xfs"))
		disk("xfs", "/usr/sbin/mkfs.xfs");
	else
		place(PLACE);
}

static void ip(const char *lines)
{
	feed((const char *const[]){"/usr/sbin/ip", "-batch", "-", 0}, lines);
}

/* A child that only keeps another network namespace alive. */
static void veth(void)
{
	char lines[256], path[64];
	int made[2];
	checked(pipe(made), "pipe");
	pid_t child = checked(fork(), "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		checked(unshare(CLONE_NEWNET), "network namespace");
		close(made[0]), close(made[1]);
		for (;;)
			pause();
	}
	close(made[1]);
	need(read(made[0], lines, 1) == 0, "namespace");
	snprintf(path, sizeof path, "/proc/%d/ns/net", child);
	int home = checked(open("/proc/self/ns/net", O_RDONLY), "namespace");
	other = checked(open(path, O_RDONLY), path);
	snprintf(lines, sizeof lines, "link add v0 type veth peer name v1 netns %d\n"
		 "addr add 10.9.0.1/24 dev v0\nlink set v0 up\n", child);
	ip(lines);
	checked(setns(other, CLONE_NEWNET), "setns");
	ip("addr add 10.9.0.2/24 dev v1\nlink set v1 up\nlink set lo up\n");
	checked(setns(home, CLONE_NEWNET), "setns");
	close(home);
}

int other_namespace(void)
{
	return other;
}

/* The line, `count` times; in it %ld and %ld are two bytes of an address. */
static const char *repeated(const char *first, const char *line, const char *last)
{
	static char text[1 << 20];
	int at = snprintf(text, sizeof text, "%s", first);
	for (long one = 0; one < change_number(); one++)
		at += snprintf(text + at, sizeof text - at, line, one / 250, 1 + one % 250);
	snprintf(text + at, sizeof text - at, "%s", last);
	return text;
}

static void network(void)
{
	ip("link set lo up\n");
	if (change_is("mtu"))
		ip("link set lo mtu 500\n");
	else if (change_is("rules"))
		ip(repeated("", "rule add from 10.77.%ld.%ld table main\n", ""));
	else if (change_is("routes"))
		ip(repeated("", "route add 10.78.%ld.%ld/32 dev lo\n", ""));
	else if (change_is("nft"))
		feed((const char *const[]){"/usr/sbin/nft", "-f", "-", 0},
		     repeated("table ip t {\nchain c {\ntype filter hook input priority 0;\n",
			      "ip saddr 10.79.%ld.%ld drop\n", "}\n}\n"));
	else if (change_is("veth"))
		veth();
}

/* Goes on in the innermost of nested PID namespaces; each outer one waits, and passes the status on. */
static void pid_namespaces(void)
{
	for (long level = 0; level < change_number(); level++) {
		int status = 0;
		checked(unshare(CLONE_NEWPID), "PID namespace");
		pid_t child = checked(fork(), "fork");
		if (!child)
			continue;
		checked(waitpid(child, &status, 0), "wait");
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
}

void change_surroundings(void)
{
	if (change_is("pidns"))
		pid_namespaces();
	checked(unshare(CLONE_NEWNS | CLONE_NEWNET), "namespaces");
	checked(mount("none", "/", 0, MS_REC | MS_PRIVATE, 0), "private mounts");
	if (change_is("tracepoint") && access("/sys/kernel/tracing/events", F_OK))
		checked(mount("none", "/sys/kernel/tracing", "tracefs", 0, ""), "tracefs");
	file_system();
	network();
}

static struct io_uring_params ring;
static unsigned char *submitted, *completed;
static struct io_uring_sqe *entries;
static int uring;

void start_uring(void)
{
	uring = checked(syscall(SYS_io_uring_setup, 8, &ring), "io_uring");
	int both = PROT_READ | PROT_WRITE;
	submitted = mmap(0, 4096, both, MAP_SHARED, uring, IORING_OFF_SQ_RING);
	completed = mmap(0, 4096, both, MAP_SHARED, uring, IORING_OFF_CQ_RING);
	entries = mmap(0, 4096, both, MAP_SHARED, uring, IORING_OFF_SQES);
	need(submitted != MAP_FAILED && completed != MAP_FAILED && (void *)entries != MAP_FAILED, "rings");
	for (unsigned one = 0; one < ring.sq_entries; one++)
		((unsigned *)(submitted + ring.sq_off.array))[one] = one;
}

/* One request, and the wait for it, in one system call. */
long uring_read(int file, void *buffer, unsigned length)
{
	unsigned *tail = (void *)(submitted + ring.sq_off.tail), *head = (void *)(completed + ring.cq_off.head);
	entries[*tail % ring.sq_entries] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .fd = file, .addr = (unsigned long)buffer, .len = length};
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	need(syscall(SYS_io_uring_enter, uring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1, "io_uring_enter");
	struct io_uring_cqe *done = (void *)(completed + ring.cq_off.cqes);
	long result = done[*head % ring.cq_entries].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return result;
}
