// What all tours share. A tour makes one call of each of many kinds, so that functions run that no other
// workload
// runs. Calls that fail have run code, too: hardly any result is looked at. It is for guests alone: it
// mounts,
// unmounts, writes settings and ends tasks.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
static char buffer[1 << 16];

// Do a part in a process of its own: what it breaks ends with it. It gets 2 seconds of a CPU, and 20 of the
// clock:
// where a guest waits, its clock jumps.
static void part(void (*body)(void)) {
    pid_t child = fork();
    if (!child) {
        setpgid(0, 0), setrlimit(RLIMIT_CPU, &(struct rlimit){2, 2});
        body();
        _exit(0);
    }
    for (int turn = 0; turn < 2000; turn++) {
        if (waitpid(child, 0, WNOHANG) == child)
            break;
        nanosleep(&(struct timespec){0, 10000000}, 0);
    }
    kill(-child, SIGKILL), waitpid(child, 0, 0);
}

static int put(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    int done = file < 0 ? -1 : (int)write(file, text, strlen(text));
    close(file);
    return done;
}

static void get(const char *path) {
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (int turn = 0; turn < 4 && read(file, buffer, sizeof buffer) > 0; turn++)
        ;
    close(file);
}

static int named(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strstr(name, *list))
            return 1;
    return 0;
}

// What is never read, and what is never written: it waits, ends the guest, or is another at each boot.
static const char *const unread[] = {"kmsg", "trace_pipe", "kcore", "kallsyms", "sysrq", "clear_warn", "uuid",
    0};
static const char *const unwritten[] = {"drop_caches", "compact", "panic", "sysrq", "core_pattern",
    "modprobe",
    "modules_disabled", "kexec", "bind", "remove", "delete", "reset", "online", "hotplug", "oom", "offline",
    "overcommit", "bpf_jit", "state", "fault", "stat_refresh", "nr_open", "file-max", "kill", "freeze", 0};

// Every file below a directory is read, each a little.
static void read_below(const char *path, int depth, int most) {
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && most > 0 && (entry = readdir(directory)); most--) {
        char name[1024];
        struct stat facts;
        if (entry->d_name[0] == '.' || named(entry->d_name, unread))
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (lstat(name, &facts))
            continue;
        if (S_ISLNK(facts.st_mode))
            (void)!readlink(name, buffer, sizeof buffer);
        else if (S_ISDIR(facts.st_mode) && depth > 0)
            read_below(name, depth - 1, most / 2 + 8);
        else if (S_ISREG(facts.st_mode)) {
            int file = open(name, O_RDONLY | O_NONBLOCK);
            for (int turn = 0; turn < 2 && read(file, buffer, 4096) > 0; turn++)
                ;
            lseek(file, 0, SEEK_SET), poll(&(struct pollfd){file, POLLIN, 0}, 1, 0), close(file);
        }
    }
    if (directory)
        closedir(directory);
}

// Each setting below a directory is written what it has: its store runs, and nothing changes.
static void write_back(const char *path, int depth) {
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char name[1024];
        struct stat facts;
        if (entry->d_name[0] == '.' || named(entry->d_name, unwritten) || named(entry->d_name, unread))
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (lstat(name, &facts))
            continue;
        if (S_ISDIR(facts.st_mode) && depth > 0)
            write_back(name, depth - 1);
        if (!S_ISREG(facts.st_mode) || !(facts.st_mode & S_IWUSR))
            continue;
        int file = open(name, O_RDWR | O_NONBLOCK);
        long size = read(file, buffer, 4096);
        if (size > 0 && size < 4096) {
            char *chosen = memchr(buffer, '[', size), *end = chosen ? memchr(chosen, ']',
                buffer + size - chosen) : 0;
            lseek(file, 0, SEEK_SET);
            (void)!write(file, end ? chosen + 1 : buffer, end ? end - chosen - 1 : size);
        }
        close(file);
    }
    if (directory)
        closedir(directory);
}

// A tour begins here: in a guest alone.
static void in_guest(void) {
    if (access("/ktrial/boot.json", F_OK))
        fputs("a tour runs in a guest of ktrial alone\n", stderr), exit(1);
    for (int number = 1; number < 32; number++)
        if (number != SIGCHLD && number != SIGSEGV && number != SIGBUS && number != SIGILL)
            signal(number, SIG_IGN);
}
