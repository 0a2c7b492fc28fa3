/* One operation in batches, with one change of its surroundings: a workload of the studies beside it.
 *   CHANGE=seccomp-300 ./operations getppid
 * Each batch is marked as an operation for ktrial's plugin; the median batch's time is printed. Built by ./build. */
#include "operations.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MARK(constant) __asm__ volatile(".byte 0x0f, 0x1f, 0x80; .long " #constant ::: "memory")
enum { WARMING = 2, FEWEST = 7, MOST = 400, LONG_ENOUGH_NS = 5000000 };

static long nanoseconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* Of this process with all threads, and of children that it has waited for. */
static long cpu_time(void)
{
	struct rusage of;
	getrusage(RUSAGE_CHILDREN, &of);
	long seconds = of.ru_utime.tv_sec + of.ru_stime.tv_sec, micro = of.ru_utime.tv_usec + of.ru_stime.tv_usec;
	return nanoseconds(CLOCK_PROCESS_CPUTIME_ID) + seconds * 1000000000L + micro * 1000L;
}

static int by_size(const void *one, const void *other)
{
	long a = *(const long *)one, b = *(const long *)other;
	return (a > b) - (a < b);
}

static double median(long *values, int count)
{
	qsort(values, count, sizeof *values, by_size);
	return (values[(count - 1) / 2] + values[count / 2]) / 2.0;
}

static void measure(const struct operation *operation)
{
	static long cpu[MOST], wall[MOST];
	int batches = 0;
	for (int warm = 0; warm < WARMING; warm++)
		operation->run(operation->times);
	long begin = nanoseconds(CLOCK_MONOTONIC);
	do {
		long wall_before = nanoseconds(CLOCK_MONOTONIC), cpu_before = cpu_time();
		MARK(0x4b540001);
		operation->run(operation->times);
		MARK(0x4b540003);
		MARK(0x4b540002);
		cpu[batches] = cpu_time() - cpu_before;
		wall[batches++] = nanoseconds(CLOCK_MONOTONIC) - wall_before;
	} while (batches < FEWEST || (batches < MOST && nanoseconds(CLOCK_MONOTONIC) - begin < LONG_ENOUGH_NS));
	printf("batches %d\ncpu %.2f ns\nwall %.2f ns\n", batches, median(cpu, batches) / operation->times,
	       median(wall, batches) / operation->times);
}

static const struct operation *find(const char *name)
{
	const struct operation *tables[] = {file_operations, memory_operations, socket_operations};
	for (int table = 0; table < 3; table++)
		for (const struct operation *one = tables[table]; one->name; one++)
			if (!strcmp(one->name, name))
				return one;
	fprintf(stderr, "there is no operation %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *change = getenv("CHANGE");
	if (argc != 2) {
		fprintf(stderr, "usage: CHANGE=NAME operations OPERATION\n");
		return 2;
	}
	const struct operation *operation = find(argv[1]);
	read_change(change ? change : "none");
	change_surroundings();
	operation->prepare();
	change_process();
	measure(operation);
	fflush(stdout);
	_exit(0);
}
