/* Operations on files and descriptors, in a directory of the program's own mount namespace. */
#define _GNU_SOURCE
#include "operations.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int file, listed;
static char path[4096], made[4096], *buffer;
static struct pollfd watched[4096];
static long watches;

static void nothing(void)
{
}

static void getppid_often(long times)
{
	while (times--)
		syscall(SYS_getppid);
}

static void clock_often(long times)
{
	struct timespec now;
	bool call = change_is("clock-syscall");
	while (times--)
		if (call)
			syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
		else
			clock_gettime(CLOCK_MONOTONIC, &now);
}

/* A file of 64 KiB; below directories, and beside other files, as the change says. */
static void make_file(void)
{
	char name[64];
	snprintf(path, sizeof path, "%s", PLACE);
	for (long level = change_is("depth") ? change_number() : 0; level; level--) {
		strcat(path, "/a-directory");
		checked(mkdir(path, 0755), path);
	}
	for (long other = change_is("dir") ? change_number() : 0; other; other--) {
		snprintf(name, sizeof name, PLACE "/another-file-%ld", other);
		checked(close(checked(open(name, O_CREAT | O_WRONLY, 0644), name)), name);
	}
	snprintf(made, sizeof made, "%s/made", path);
	strcat(path, "/file");
	buffer = aligned_alloc(4096, 1 << 20);
	memset(buffer, 1, 1 << 20);
	file = checked(open(path, O_CREAT | O_RDWR, 0644), path);
	need(write(file, buffer, 65536) == 65536, "write the file");
	if (change_is("inotify"))
		checked(inotify_add_watch(checked(inotify_init1(IN_NONBLOCK), "inotify"), PLACE, IN_ATTRIB), "watch");
	if (change_is("uring"))
		start_uring();
}

static void open_often(long times)
{
	while (times--)
		close(checked(open(path, O_RDONLY), "open"));
}

static void stat_often(long times)
{
	struct stat of;
	while (times--)
		checked(stat(path, &of), "stat");
}

static void read_often(long times)
{
	long size = size_of_copies();
	bool uring = change_is("uring");
	while (times--)
		need((uring ? uring_read(file, buffer, size) : pread(file, buffer, size, 0)) == size, "read");
}

static void write_often(long times)
{
	long size = size_of_copies();
	while (times--)
		need(pwrite(file, buffer, size, 0) == size, "write");
}

static void create_often(long times)
{
	while (times--) {
		close(checked(open(made, O_CREAT | O_EXCL | O_WRONLY, 0644), "create"));
		checked(unlink(made), "unlink");
	}
}

static void list_prepare(void)
{
	make_file();
	listed = checked(open(PLACE, O_RDONLY | O_DIRECTORY), "directory");
}

static void list_often(long times)
{
	while (times--) {
		checked(lseek(listed, 0, SEEK_SET), "rewind");
		while (checked(syscall(SYS_getdents64, listed, buffer, 32768), "getdents64"))
			;
	}
}

/* Locks elsewhere in the file are a list that each new one is compared with. */
static void lock_prepare(void)
{
	make_file();
	for (long other = change_is("locks") ? change_number() : 0; other; other--) {
		struct flock one = {.l_type = F_WRLCK, .l_start = 100 + 2 * other, .l_len = 1};
		checked(fcntl(file, F_SETLK, &one), "lock elsewhere");
	}
}

static void lock_often(long times)
{
	struct flock one = {.l_type = F_WRLCK, .l_start = 1000000, .l_len = 1};
	while (times--) {
		one.l_type = F_WRLCK;
		checked(fcntl(file, F_SETLK, &one), "lock");
		one.l_type = F_UNLCK;
		checked(fcntl(file, F_SETLK, &one), "unlock");
	}
}

static void poll_prepare(void)
{
	int ends[2];
	watches = change_is("watch") ? change_number() : 10;
	for (long one = 0; one < watches; one++) {
		checked(pipe(ends), "pipe");
		watched[one] = (struct pollfd){.fd = ends[0], .events = POLLIN};
	}
}

static void poll_often(long times)
{
	while (times--)
		need(poll(watched, watches, 0) == 0, "poll");
}

static void caught(int number)
{
	(void)number;
}

static void signal_prepare(void)
{
	signal(SIGUSR1, caught);
}

static void signal_often(long times)
{
	pid_t self = getpid();
	while (times--)
		checked(kill(self, SIGUSR1), "kill");
}

const struct operation file_operations[] = {
	{"getppid", nothing, getppid_often, 3000},	{"clock", nothing, clock_often, 3000},
	{"open", make_file, open_often, 400},		{"stat", make_file, stat_often, 800},
	{"read", make_file, read_often, 800},		{"write", make_file, write_often, 600},
	{"create", make_file, create_often, 100},	{"list", list_prepare, list_often, 100},
	{"lock", lock_prepare, lock_often, 500},	{"poll", poll_prepare, poll_often, 600},
	{"signal", signal_prepare, signal_often, 600},	{0},
};
