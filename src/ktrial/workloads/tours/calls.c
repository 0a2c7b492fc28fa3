// System calls that nothing else makes, most of them the old form of another; the kernel's log; owners and
// attributes of files that lie on no disk; parameters of modules; settings of queues of work, of interrupts.
#include <sys/timex.h>

static const struct timespec soon = {0, 1000000};

static void old_forms(void) {
    int pipes[2], home = open("/tmp", O_RDONLY | O_DIRECTORY);
    struct rlimit limit;
    struct timex clock = {.modes = 0};
    struct iovec parts[2] = {{buffer, 10}, {buffer + 100, 10}};
    syscall(SYS_pipe, pipes), syscall(SYS_writev, pipes[1], parts, 2), syscall(SYS_readv, pipes[0], parts, 2),
        close(pipes[0]), close(pipes[1]);
    syscall(SYS_nanosleep, &soon, 0), syscall(SYS_adjtimex, &clock), syscall(SYS_getcpu, buffer, 0, 0),
        syscall(SYS_getpgid, 0), syscall(SYS_getrlimit, 3, &limit), syscall(SYS_setrlimit, 3, &limit),
        syscall(SYS_sched_getscheduler, 0), syscall(SYS_sched_setscheduler, 0, 3, &(int){0}),
        syscall(SYS_set_mempolicy_home_node, 0, 4096, 0, 0), syscall(SYS_setgid, 0), syscall(SYS_getpgrp),
        syscall(SYS_signalfd, -1, buffer, 8), syscall(SYS_eventfd, 1), syscall(SYS_inotify_init);
    syscall(SYS_creat, "/tmp/created", 0644), syscall(SYS_faccessat, home, "created", R_OK),
        syscall(SYS_fchmodat, home, "created", 0600), syscall(SYS_fchownat, home, "created", 1, 1, 0),
        syscall(SYS_mkdirat, home, "directory", 0755), syscall(SYS_mknodat, home, "node", S_IFIFO | 0600, 0),
        syscall(SYS_symlinkat, "created", home, "link"), syscall(SYS_linkat, home, "created", home, "second",
            0),
        syscall(SYS_readlinkat, home, "link", buffer, 100), syscall(SYS_newfstatat, home, "link", buffer, 0);
    syscall(SYS_renameat, home, "created", home, "renamed"), syscall(SYS_unlinkat, home, "renamed", 0),
        syscall(SYS_unlinkat, home, "directory", AT_REMOVEDIR), syscall(SYS_unlinkat, home, "node", 0),
        syscall(SYS_unlinkat, home, "link", 0), syscall(SYS_unlinkat, home, "second", 0), close(home);
    int number[2], first = open("/tmp/first", O_RDWR | O_CREAT, 0644);
    syscall(SYS_dup, first), syscall(SYS_dup2, first, 90), syscall(SYS_select, 0, 0, 0, 0,
        &(struct timeval){0, 1}),
        syscall(SYS_poll, 0, 0, 1), syscall(SYS_pread64, first, buffer, 10, 0),
        syscall(SYS_alarm, 0), syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, number),
        syscall(SYS_epoll_create, 1), syscall(SYS_accept, number[0], 0, 0), syscall(SYS_fork) ?: (_exit(0),
            0);
    wait(0), syscall(SYS_sync_file_range, first, 0, 0, 2), syscall(SYS_restart_syscall), close(first);
}

static void started(void) {
    put("/tmp/first", "");
    int file = open("/tmp/script", O_RDWR | O_CREAT | O_TRUNC, 0755);
    (void)!write(file, "#!/tmp/none with an argument\n", 29), close(file);
    char *const words[] = {"script", "a", 0}, *const settings[] = {"A=b", 0};
    for (int way = 0; way < 5; way++) {
        pid_t child = fork();
        if (!child) {
            int program = open("/proc/self/exe", O_RDONLY);
            if (way == 0)
                execve("/tmp/script", words, settings);
            else if (way == 1)
                syscall(SYS_execveat, AT_FDCWD, "/tmp/none", words, settings, AT_SYMLINK_NOFOLLOW);
            else if (way == 2)
                syscall(SYS_execveat, program, "", words, settings, AT_EMPTY_PATH);
            else if (way == 3) {
                int script = open("/tmp/script2", O_RDWR | O_CREAT | O_TRUNC, 0755);
                (void)!write(script, "#! /proc/self/exe \n", 19), close(script), execve("/tmp/script2",
                    words, settings);
            } else
                put("/proc/self/coredump_filter", "255"), execve("/proc/self/exe", words, 0);
            _exit(1);
        }
        waitpid(child, 0, 0);
    }
}

static void log_of_kernel(void) {
    int log = open("/dev/kmsg", O_RDWR | O_NONBLOCK), old = open("/proc/kmsg", O_RDONLY | O_NONBLOCK);
    (void)!write(log, "<5>a tour was here\n", 19), (void)!write(log, "<12>again", 9), lseek(log, 0, SEEK_SET);
    for (int turn = 0; turn < 6; turn++)
        (void)!read(log, buffer, 8192), poll(&(struct pollfd){log, POLLIN, 0}, 1, 0);
    lseek(log, 0, SEEK_DATA), lseek(log, 0, SEEK_END), lseek(log, 3, SEEK_CUR), (void)!read(log, buffer, 10),
        (void)!read(old, buffer, 500), poll(&(struct pollfd){old, POLLIN, 0}, 1, 0), close(old), close(log);
    static const char *const levels[] = {"off", "on", "ratelimit", "none"};
    for (size_t level = 0; level < COUNT(levels); level++)
        put("/proc/sys/kernel/printk_devkmsg", levels[level]);
    syscall(SYS_syslog, 2, buffer, 100), syscall(SYS_syslog, 4, buffer, 4096), syscall(SYS_syslog, 5, 0, 0);
    int symbols = open("/proc/kallsyms", O_RDONLY);
    for (int turn = 0; turn < 3; turn++)
        (void)!read(symbols, buffer, 4096);
    close(symbols);
}

// Owners, modes, sizes and attributes of what each of these file systems makes up.
static void made_up(void) {
    mount("none", "/sys/kernel/debug", "debugfs", 0, 0), mkdir("/tmp/configuration", 0755),
        mount("none", "/tmp/configuration", "configfs", 0, 0), mkdir("/tmp/configuration/nullb/one", 0755);
    static const char *const names[] = {"/proc/sys/kernel/ostype", "/proc/sys/vm", "/proc/self/status",
        "/proc/version", "/proc/irq", "/sys/kernel/mm", "/sys/kernel/notes", "/sys/kernel/debug/sleep_time",
        "/sys/kernel/debug/bdi", "/tmp/configuration/nullb", "/tmp/configuration/nullb/one",
        "/tmp/configuration/nullb/one/size", "/proc/self/fd/0", "/proc/self/task", "/dev/shm", "/dev/null",
        "/proc/self/net", "/proc/net/dev", "/proc/self/ns/uts", "/proc/fs", "/proc/self/fdinfo/0"};
    for (size_t at = 0; at < COUNT(names); at++) {
        struct stat facts;
        struct statx more;
        static char handle[136];
        int mount_of, file = open(names[at], O_RDONLY | O_NONBLOCK);
        if (stat(names[at], &facts))
            continue;
        chmod(names[at], facts.st_mode & 07777), chown(names[at], facts.st_uid, facts.st_gid),
            utimensat(AT_FDCWD, names[at], 0, 0), truncate(names[at], 0),
            statx(AT_FDCWD, names[at], 0, STATX_ALL, &more);
        for (int kind = 0; kind < 3; kind++) {
            const char *key = kind == 0 ? "user.tour" : kind == 1 ? "trusted.tour" : "security.tour";
            setxattr(names[at], key, "value", 5, 0), getxattr(names[at], key, buffer, 100),
                listxattr(names[at], buffer, sizeof buffer), removexattr(names[at], key);
        }
        *(unsigned *)handle = 128;
        if (!syscall(SYS_name_to_handle_at, AT_FDCWD, names[at], handle, &mount_of, 0))
            close(syscall(SYS_open_by_handle_at, file, handle, O_RDONLY | O_NONBLOCK));
        lseek(file, 1, SEEK_SET), lseek(file, 0, SEEK_CUR), lseek(file, 0, SEEK_END),
            mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0), ioctl(file, 0x5401, buffer),
            poll(&(struct pollfd){file, POLLIN | POLLPRI, 0}, 1, 0), fsync(file), close(file);
    }
    symlink("/tmp/configuration/nullb/one", "/tmp/configuration/nullb/one/link"),
        unlink("/tmp/configuration/nullb/one/link"), rmdir("/tmp/configuration/nullb/one"),
        umount("/tmp/configuration");
}

// What a setting takes, and what it does not; it has its own value again afterwards.
static void tried(const char *place, const char *const *values, size_t count) {
    static char own[4096];
    int file = open(place, O_RDWR);
    long length = read(file, own, sizeof own - 1);
    close(file);
    if (length <= 0)
        return;
    own[length] = 0;
    for (size_t value = 0; value < count; value++)
        put(place, values[value]), get(place);
    put(place, own);
}

static void parameters(void) {
    static const char *const values[] = {"1", "0", "N", "Y", "text", "-5", "99999999999999999999"};
    static const char *const places[] = {"/sys/module/printk/parameters/time",
        "/sys/module/printk/parameters/always_kmsg_dump",
        "/sys/module/kernel/parameters/crash_kexec_post_notifiers",
        "/sys/module/rcutree/parameters/jiffies_till_first_fqs", "/sys/module/tcp_cubic/parameters/beta",
        "/sys/module/rcutree/parameters/jiffies_till_next_fqs", "/sys/module/spurious/parameters/noirqdebug",
        "/sys/module/kernel/parameters/ignore_rlimit_data", "/sys/kernel/rcu_expedited",
        "/sys/kernel/rcu_normal", "/sys/kernel/reboot/force", "/sys/kernel/reboot/cpu",
        "/proc/irq/default_smp_affinity"};
    for (size_t place = 0; place < COUNT(places); place++)
        tried(places[place], values, COUNT(values));
    static const char *const modes[] = {"hard", "warm", "cold", "soft", "none"},
        *const types[] = {"pci", "kbd", "bios", "acpi", "none"};
    tried("/sys/kernel/reboot/mode", modes, COUNT(modes)), tried("/sys/kernel/reboot/type", types,
        COUNT(types));
}

static void queues(void) {
    static const char *const values[] = {"1", "0", "wrong"},
        *const names[] = {"max_active", "nice", "cpumask", "numa", "per_cpu", "pool_ids"};
    char path[100];
    for (size_t name = 0; name < COUNT(names); name++)
        snprintf(path, sizeof path, "/sys/devices/virtual/workqueue/writeback/%s", names[name]), get(path),
            tried(path, values, COUNT(values));
    tried("/sys/devices/virtual/workqueue/cpumask", values, COUNT(values)), sync(), nanosleep(&soon, 0);
    put("/sys/devices/system/clocksource/clocksource0/unbind_clocksource", "none"),
        put("/sys/devices/system/clockevents/clockevent0/unbind_device", "none");
    for (int number = 0; number < 20; number++)
        for (int list = 0; list < 2; list++)
            snprintf(path, sizeof path, "/proc/irq/%d/smp_affinity%s", number, list ? "_list" : ""),
                get(path), put(path, list ? "0" : "1"), put(path, "0xg");
    read_below("/proc/irq", 2, 200), read_below("/sys/kernel/irq", 2, 200);
}

// Numbers, texts and switches of the debugging files, which take what they have.
static void of_debugging(void) {
    static const char *const values[] = {"4096", "none", "1"},
        *const places[] = {"/sys/kernel/debug/fault_around_bytes", "/sys/kernel/debug/sched/latency_warn_ms",
            "/sys/kernel/debug/x86/tlb_single_page_flush_ceiling", "/sys/kernel/debug/sched/verbose"};
    for (size_t place = 0; place < COUNT(places); place++)
        tried(places[place], values, COUNT(values));
    read_below("/sys/kernel/debug/slab", 2, 100), read_below("/sys/kernel/debug/sched", 3, 60);
}

// A signal for all threads, which the one that has it in its hands does not take.
static void *waits_for_signals(void *unused) {
    sigset_t some;
    siginfo_t facts;
    (void)unused, sigemptyset(&some), sigaddset(&some, SIGUSR1), sigaddset(&some, SIGUSR2);
    for (int turn = 0; turn < 2; turn++)
        sigtimedwait(&some, &facts, &(struct timespec){0, 50000000});
    return 0;
}

static void between_threads(void) {
    pthread_t threads[3];
    sigset_t some;
    signal(SIGUSR1, SIG_DFL), signal(SIGUSR2, SIG_DFL), sigemptyset(&some), sigaddset(&some, SIGUSR1),
        sigaddset(&some, SIGUSR2), sigprocmask(SIG_BLOCK, &some, 0);
    for (int number = 0; number < 3; number++)
        pthread_create(&threads[number], 0, waits_for_signals, 0);
    nanosleep(&soon, 0), kill(getpid(), SIGUSR1), kill(getpid(), SIGUSR2), nanosleep(&soon, 0),
        kill(getpid(), SIGUSR1);
    for (int number = 0; number < 3; number++)
        pthread_join(threads[number], 0);
    int notes = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(notes, "/tmp", IN_CREATE), inotify_add_watch(notes, "/tmp", IN_DELETE | IN_MASK_ADD),
        inotify_add_watch(notes, "/tmp", IN_OPEN), close(open("/tmp", O_RDONLY)), close(notes);
}

int main(int count, char **words) {
    if (count > 1) // by itself
        return 0;
    in_guest();
    part(old_forms), part(started), part(log_of_kernel), part(between_threads), part(made_up),
        part(parameters), part(queues),
        part(of_debugging);
    return 0;
}
