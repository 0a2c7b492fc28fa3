// Control groups of both versions: limits that are reached, notices of them, charges that move with a task,
// shares of the CPU, freezing, ending all tasks of a group.
#define HOME "/tmp/groups"
static const struct timespec soon = {0, 20000000};

static void of(const char *group, const char *file, const char *text) {
    char path[200];
    snprintf(path, sizeof path, HOME "/%s/%s", group, file), put(path, text);
}

static void show(const char *group, const char *file) {
    char path[200];
    snprintf(path, sizeof path, HOME "/%s/%s", group, file), get(path);
}

static void all_of(const char *group) {
    char path[200];
    snprintf(path, sizeof path, HOME "/%s", group), read_below(path, 0, 120), write_back(path, 0);
}

static char *touched(size_t size, int value) {
    char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? map : memset(map, value, size);
}

static void made(const char *controllers) {
    mkdir(HOME, 0755), mount("none", HOME, "cgroup", 0, controllers);
    mkdir(HOME "/a", 0755), mkdir(HOME "/a/b", 0755), mkdir(HOME "/c", 0755);
}

static void unmade(void) {
    rmdir(HOME "/a/b"), rmdir(HOME "/a"), rmdir(HOME "/c"), umount(HOME), nanosleep(&soon, 0);
}

// Tell an event's file of what happens to `file` of a group.
static int noticed(const char *group, const char *file, const char *arguments) {
    char path[200], text[100];
    snprintf(path, sizeof path, HOME "/%s/%s", group, file);
    int event = eventfd(0, EFD_NONBLOCK), control = open(path, O_RDONLY);
    snprintf(text, sizeof text, "%d %d %s", event, control, arguments),
        of(group, "cgroup.event_control", text), close(control);
    return event;
}

// A task that reaches the limit of its group and waits there, as nobody ends it, until the limit is raised.
static void reaches(void) {
    made("memory"), of("a", "memory.use_hierarchy", "1"), of("a", "memory.limit_in_bytes", "3M"),
        of("a", "memory.oom_control", "1"), of("a", "memory.swappiness", "10");
    int events[] = {noticed("a", "memory.usage_in_bytes", "1M"), noticed("a", "memory.usage_in_bytes", "2M"),
        noticed("a", "memory.oom_control", ""), noticed("a", "memory.pressure_level", "low"),
        noticed("a", "memory.pressure_level", "critical,hierarchy"),
        noticed("a", "memory.memsw.usage_in_bytes", "1M")};
    pid_t child = fork();
    if (!child)
        of("a", "tasks", "0"), touched(5 << 20, 1), _exit(0);
    nanosleep(&(struct timespec){0, 200000000}, 0), show("a", "memory.oom_control"), all_of("a"),
        of("a", "memory.limit_in_bytes", "12M"), waitpid(child, 0, 0);
    for (size_t number = 0; number < COUNT(events); number++)
        (void)!read(events[number], buffer, 8), close(events[number]);
    of("a", "memory.force_empty", "0"), of("a", "memory.limit_in_bytes", "1M"),
        of("a", "memory.max_usage_in_bytes", "0"), of("a", "memory.failcnt", "0"), nanosleep(&soon, 0),
        unmade();
}

// A task goes to another group, with what it has: pages of its own, huge ones, of files, in memory that is
// shared, in swap.
static void moves(void) {
    made("memory");
    for (size_t group = 0; group < 2; group++)
        of(group ? "c" : "a", "memory.move_charge_at_immigrate", "3"),
            of(group ? "c" : "a", "memory.soft_limit_in_bytes", "1M");
    pid_t child = fork();
    if (!child) {
        of("a", "cgroup.procs", "0");
        int file = open("/tmp/moves", O_RDWR | O_CREAT, 0600);
        ftruncate(file, 1 << 20);
        char *own = touched(6 << 20, 2), *map = mmap(0, 1 << 20, 3, MAP_SHARED, file, 0);
        memset(map, 1, 1 << 20), madvise(own, 1 << 20, MADV_PAGEOUT);
        for (int turn = 0; turn < 3; turn++)
            of(turn % 2 ? "a" : "c", turn ? "tasks" : "cgroup.procs", "0"), own[turn << 20] = 1;
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair), send(pair[0], buffer, 60000, MSG_DONTWAIT);
        int server = socket(AF_INET, SOCK_STREAM, 0);
        listen(server, 3), unlink("/tmp/moves"), nanosleep(&soon, 0), _exit(0);
    }
    nanosleep(&(struct timespec){0, 10000000}, 0), all_of("a"), all_of("c"), waitpid(child, 0, 0),
        show("c", "memory.numa_stat"), show("c", "memory.kmem.slabinfo"), show("", "memory.stat"), unmade();
}

// A task takes what limits it only softly, while others want memory.
static void softly(void) {
    made("memory"), of("a", "memory.soft_limit_in_bytes", "1M"), of("c", "memory.limit_in_bytes", "40M");
    pid_t child = fork();
    if (!child) {
        of("a", "tasks", "0");
        int file = open("/tmp/soft", O_RDWR | O_CREAT, 0600);
        for (int piece = 0; piece < 400; piece++)
            (void)!write(file, buffer, sizeof buffer);
        nanosleep(&soon, 0), unlink("/tmp/soft"), _exit(0);
    }
    nanosleep(&soon, 0), put("/proc/sys/vm/min_free_kbytes", "60000"),
        put("/proc/sys/vm/compact_memory", "1"),
        waitpid(child, 0, 0), put("/proc/sys/vm/min_free_kbytes", "4000"), unmade();
}

static void shares(void) {
    made("cpu,cpuacct"), of("a", "cpu.shares", "512"), of("a", "cpu.idle", "1"), of("a", "cpu.idle", "0"),
        of("c", "cpu.cfs_quota_us", "2000"), of("c", "cpu.cfs_period_us", "10000"),
        of("", "notify_on_release", "1"), of("", "release_agent", "/bin/none"),
        of("a/b", "notify_on_release", "1"), of("a", "cgroup.clone_children", "1"),
        of("a", "cpuacct.usage", "0");
    pid_t children[3];
    for (int number = 0; number < 3; number++)
        if (!(children[number] = fork())) {
            of(number == 2 ? "a/b" : number ? "c" : "a", number ? "tasks" : "cgroup.procs", "0");
            struct sched_param priority = {0};
            for (int turn = 0; turn < 200; turn++)
                for (volatile int spin = 0; spin < 20000; spin++)
                    ;
            sched_setscheduler(0, SCHED_BATCH, &priority), get("/proc/self/cgroup"), _exit(0);
        }
    nanosleep(&soon, 0), all_of("a"), all_of("c"), show("a", "tasks"), show("c", "cgroup.procs"),
        show("", "cgroup.sane_behavior"), get("/proc/cgroups");
    for (int number = 0; number < 3; number++)
        waitpid(children[number], 0, 0);
    rename(HOME "/c", HOME "/renamed"), rmdir(HOME "/renamed"), mount(0, HOME, 0, MS_REMOUNT, "cpu"),
        unmade();
}

// The second version: threads apart from their process, freezing, ending all.
static void second(void) {
    mkdir(HOME, 0755), mount("none", HOME, "cgroup2", 0, "nsdelegate,memory_recursiveprot");
    static const char *const controllers[] = {"+memory", "+pids", "+cpu", "+io"};
    for (size_t number = 0; number < COUNT(controllers); number++)
        of("", "cgroup.subtree_control", controllers[number]);
    mkdir(HOME "/a", 0755), mkdir(HOME "/a/b", 0755), mkdir(HOME "/c", 0755);
    of("a", "cpu.weight", "50"), of("a", "cpu.weight.nice", "5"), of("a", "cpu.max", "5000 10000"),
        of("a", "cpu.idle", "1"), of("a", "cpu.idle", "0"), of("a", "cgroup.max.depth", "3"),
        of("a", "cgroup.max.descendants", "9"), of("a", "memory.high", "4M"), of("a", "memory.max", "32M"),
        of("a", "memory.swap.high", "1M"), of("a", "memory.oom.group", "1");
    pid_t children[3];
    for (int number = 0; number < 3; number++)
        if (!(children[number] = fork())) {
            of(number ? "a" : "c", "cgroup.procs", "0");
            if (number == 1)
                touched(8 << 20, 1), unshare(CLONE_NEWCGROUP), get("/proc/self/cgroup");
            for (;;)
                nanosleep(&soon, 0);
        }
    nanosleep(&soon, 0), of("a", "cgroup.freeze", "1"), nanosleep(&soon, 0), show("a", "cgroup.events"),
        get("/proc/pressure/memory"), all_of("a");
    char number[20];
    snprintf(number, sizeof number, "%d", children[0]), of("a", "cgroup.procs", number), nanosleep(&soon, 0),
        of("c", "cgroup.procs", number), kill(children[0], SIGCONT), of("a", "cgroup.freeze", "0"),
        nanosleep(&soon, 0), of("a", "memory.reclaim", "1M"), of("a", "memory.max", "2M");
    of("a", "cgroup.subtree_control", "-memory"), of("c", "cgroup.type", "threaded"),
        of("c", "cgroup.threads", number), all_of("c"), all_of("a");
    int group = open(HOME "/a", O_RDONLY | O_DIRECTORY);
    struct {
        uint64_t flags, pidfd, child, parent, signal, stack, size, tls, tid, tids, group;
    } how = {0x200000000ull, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, group};
    pid_t inside = syscall(SYS_clone3, &how, sizeof how);
    if (!inside)
        _exit(0);
    waitpid(inside, 0, 0), of("a", "cgroup.kill", "1"), of("c", "cgroup.kill", "1");
    for (int place = 0; place < 3; place++)
        kill(children[place], SIGKILL), waitpid(children[place], 0, 0);
    close(group), unmade();
}

int main(void) {
    in_guest();
    part(reaches), part(moves), part(softly), part(shares), part(second);
    return 0;
}
