/* Preloaded: the wall clock jumps once, CLOCK_JUMP_AFTER seconds after this process began, by CLOCK_JUMP_BY. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double began, after, by;

static double now(clockid_t clock)
{
    struct timespec t;
    syscall(SYS_clock_gettime, clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((constructor)) static void begin(void)
{
    const char *a = getenv("CLOCK_JUMP_AFTER"), *b = getenv("CLOCK_JUMP_BY");
    after = a ? atof(a) : 0;
    by = b ? atof(b) : 0;
    began = now(CLOCK_MONOTONIC);
}

static long jump(void)
{
    return now(CLOCK_MONOTONIC) - began < after ? 0 : (long)by;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int status = syscall(SYS_clock_gettime, clock, t);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += jump();
    return status;
}

int gettimeofday(struct timeval *t, void *zone)
{
    struct timespec s;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &s);
    t->tv_sec = s.tv_sec;
    t->tv_usec = s.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t)
{
    struct timespec s;
    clock_gettime(CLOCK_REALTIME, &s);
    if (t)
        *t = s.tv_sec;
    return s.tv_sec;
}
