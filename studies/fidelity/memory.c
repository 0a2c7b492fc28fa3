/* Operations on address spaces and tasks. */
#define _GNU_SOURCE
#include "operations.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, WALKED = 16 << 20, LINE = 64 };
static char *region;
static unsigned *next;
static int there[2], back[2];

static void nothing(void)
{
}

static void fork_often(long times)
{
	int status;
	while (times--) {
		pid_t child = checked(fork(), "fork");
		if (!child)
			_exit(0);
		need(waitpid(child, &status, 0) == child && status == 0, "wait");
	}
}

/* Memory at a multiple of 2 MiB, with huge pages if the change says so. */
static char *mapped(size_t size)
{
	char *at = mmap(0, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(at != MAP_FAILED, "mmap");
	at += -(unsigned long)at % HUGE_PAGE;
	checked(madvise(at, size, change_is("thp") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE), "madvise");
	return at;
}

static void faults_prepare(void)
{
	region = mapped(HUGE_PAGE);
}

static void faults_often(long times)
{
	while (times--) {
		for (long at = 0; at < HUGE_PAGE; at += PAGE)
			region[at] = 1;
		checked(madvise(region, HUGE_PAGE, MADV_DONTNEED), "madvise");
	}
}

static void mmap_often(long times)
{
	while (times--) {
		char *at = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		need(at != MAP_FAILED, "mmap");
		at[0] = 1;
		checked(munmap(at, 4 * PAGE), "munmap");
	}
}

static void mprotect_prepare(void)
{
	region = mapped(HUGE_PAGE);
	memset(region, 1, 16 * PAGE);
}

static void mprotect_often(long times)
{
	while (times--) {
		checked(mprotect(region + PAGE, PAGE, PROT_READ), "mprotect");
		checked(mprotect(region + PAGE, PAGE, PROT_READ | PROT_WRITE), "mprotect");
	}
}

/* One cycle through all lines, in an order drawn by a generator (Sattolo 1986; xorshift32, Marsaglia 2003). */
static void walk_prepare(void)
{
	unsigned lines = WALKED / LINE, state = 2463534242u;
	unsigned *order = malloc(lines * sizeof *order);
	next = (unsigned *)mapped(WALKED);
	for (unsigned one = 0; one < lines; one++)
		order[one] = one;
	for (unsigned one = lines - 1; one; one--) {
		state ^= state << 13, state ^= state >> 17, state ^= state << 5;
		unsigned other = state % one, kept = order[one];
		order[one] = order[other], order[other] = kept;
	}
	for (unsigned one = 0; one < lines; one++)
		next[order[one] * (LINE / 4)] = order[(one + 1) % lines] * (LINE / 4);
	free(order);
}

static void walk_often(long times)
{
	static volatile unsigned at;
	unsigned here = at;
	while (times--)
		here = next[here];
	at = here;
}

static void *answer(void *unused)
{
	char byte;
	while (read(there[0], &byte, 1) == 1)
		need(write(back[1], &byte, 1) == 1, "answer");
	return unused;
}

/* Two threads of one process, on one CPU: its CPU time is that of both. */
static void switch_prepare(void)
{
	pthread_t other;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(checked(sched_getcpu(), "CPU"), &one);
	checked(sched_setaffinity(0, sizeof one, &one), "affinity");
	checked(pipe(there), "pipe");
	checked(pipe(back), "pipe");
	need(pthread_create(&other, 0, answer, 0) == 0, "thread");
}

static void switch_often(long times)
{
	char byte = 1;
	while (times--)
		need(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "switch");
}

const struct operation memory_operations[] = {
	{"fork", nothing, fork_often, 6},		{"faults", faults_prepare, faults_often, 2},
	{"mmap", nothing, mmap_often, 300},		{"mprotect", mprotect_prepare, mprotect_often, 200},
	{"walk", walk_prepare, walk_often, 20000},	{"switch", switch_prepare, switch_often, 100},
	{0},
};
