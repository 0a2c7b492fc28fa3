// Tasks: classes of scheduling, signals, clocks and timers, tracing another task, namespaces, locks and
// waits,
// messages between tasks, credentials, limits.
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sys/fsuid.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <ucontext.h>

static const struct timespec soon = {0, 1000000}, zero;

static void spin(int turns) {
    for (volatile int turn = 0; turn < turns; turn++)
        ;
}

static void classes(void) {
    for (int policy = 0; policy < 7; policy++) {
        struct {
            uint32_t size, policy;
            uint64_t flags;
            int32_t nice;
            uint32_t priority;
            uint64_t runtime, deadline, period;
            uint32_t low, high;
        } wish = {56, policy, policy % 2 ? 1 : 0, policy == 3 ? 5 : 0, policy == 1 || policy == 2 ? 10 : 0,
            2000000, 5000000, 10000000, 100, 500};
        pid_t children[4];
        for (int number = 0; number < 4; number++)
            if (!(children[number] = fork())) {
                syscall(SYS_sched_setattr, 0, &wish, 0), wish.flags |= 0x60,
                    syscall(SYS_sched_setattr, 0, &wish, 0);
                for (int turn = 0; turn < 20; turn++)
                    sched_yield(), spin(20000), nanosleep(&soon, 0);
                struct sched_param priority = {wish.priority};
                struct timespec slice;
                sched_setparam(0, &priority), sched_setscheduler(0, policy, &priority),
                    sched_getparam(0, &priority), sched_rr_get_interval(0, &slice);
                get("/proc/self/sched"), put("/proc/self/sched", "0"), get("/proc/self/schedstat"),
                    spin(100000), _exit(0);
            }
        for (int number = 0; number < 4; number++)
            setpriority(PRIO_PROCESS, children[number], number), waitpid(children[number], 0, 0);
    }
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus), sched_getaffinity(0, sizeof cpus, &cpus);
    nice(1), setpriority(PRIO_USER, 0, 1), getpriority(PRIO_USER, 0), setpriority(PRIO_PGRP, 0, 2),
        getpriority(PRIO_PGRP, 0), getpriority(PRIO_PROCESS, 0);
    for (int kind = 0; kind < 4; kind++)
        syscall(SYS_ioprio_set, 1 + kind % 3, 0, kind << 13 | 4), syscall(SYS_ioprio_get, 1 + kind % 3, 0);
    sched_get_priority_max(1), sched_get_priority_min(2), syscall(SYS_sched_getattr, 0, buffer, 56, 0),
        put("/proc/self/autogroup", "3"), get("/proc/self/autogroup");
    put("/proc/self/oom_score_adj", "10"), put("/proc/self/oom_adj", "1"),
        put("/proc/self/timerslack_ns", "50"), put("/proc/self/comm", "tour"),
        put("/proc/self/coredump_filter", "7");
    for (int option = 0; option < 5; option++)
        prctl(62, option, getpid(), 0, buffer); // core scheduling
    read_below("/proc/sys/kernel", 2, 300), write_back("/proc/sys/kernel", 2),
        write_back("/sys/kernel/debug/sched", 2), read_below("/sys/kernel/debug/sched", 3, 100);
}

static void handler(int number) { (void)number; }
static void with_details(int number, siginfo_t *facts, void *context) { (void)number, (void)facts,
    (void)context; }

static void signals(void) {
    stack_t stack = {malloc(65536), 0, 65536}, old_stack;
    sigaltstack(&stack, &old_stack);
    for (int number = 1; number < 65; number++) {
        struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART
            | (number % 2 ? SA_ONSTACK : SA_NODEFER)}, old;
        action.sa_sigaction = with_details, sigaction(number, number == SIGCHLD ? 0 : &action, &old);
    }
    raise(SIGUSR1), kill(getpid(), SIGUSR2), syscall(SYS_tkill, syscall(SYS_gettid), SIGRTMIN),
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGHUP);
    sigset_t all, old;
    sigfillset(&all), sigprocmask(SIG_BLOCK, &all, &old), sigqueue(getpid(), SIGRTMIN + 1, (union sigval){7}),
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){8});
    kill(0, 0), kill(-1, 0), raise(SIGTERM), sigpending(&old);
    int file = signalfd(-1, &all, SFD_NONBLOCK);
    poll(&(struct pollfd){file, POLLIN, 0}, 1, 0), (void)!read(file, buffer, 1024), signalfd(file, &all, 0),
        get("/proc/self/status"), close(file);
    siginfo_t facts;
    raise(SIGUSR1), sigtimedwait(&all, &facts, &soon), sigtimedwait(&all, &facts, &soon), raise(SIGUSR2),
        sigprocmask(SIG_SETMASK, &old, 0);
    syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &facts), syscall(SYS_rt_tgsigqueueinfo, getpid(),
        getpid(), SIGUSR1, &facts), signal(SIGALRM, handler);
    struct itimerval interval = {{0, 2000}, {0, 500}};
    setitimer(ITIMER_REAL, &interval, 0), pause(), sigsuspend(&old), nanosleep(&soon, 0), usleep(3000),
        getitimer(ITIMER_REAL, &interval);
    interval = (struct itimerval){{0, 0}, {0, 0}}, setitimer(ITIMER_REAL, &interval, 0), alarm(2), alarm(0);
    int pipes[2];
    pipe(pipes), fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK), fcntl(pipes[0], F_SETOWN, getpid()),
        fcntl(pipes[0], F_SETSIG, SIGRTMIN), (void)!write(pipes[1], "x", 1);
    fcntl(pipes[0], F_SETSIG, 0), (void)!write(pipes[1], "x", 1), fcntl(pipes[0], F_SETOWN, -getpgrp()),
        (void)!write(pipes[1], "x", 1), close(pipes[0]), (void)!write(pipes[1], "x", 1);
    for (int kind = 0; kind < 7; kind++) { // ways to end, some with a core file
        pid_t child = fork();
        if (!child) {
            signal(SIGSEGV, SIG_DFL), signal(SIGFPE, SIG_DFL), signal(SIGILL, SIG_DFL),
                signal(SIGTRAP, SIG_DFL), chdir("/tmp"), setrlimit(RLIMIT_CORE,
                &(struct rlimit){1 << 20, 1 << 20});
            if (kind == 0)
                *(volatile int *)0 = 1;
            else if (kind == 1)
                __asm__ volatile("ud2");
            else if (kind == 2)
                __asm__ volatile("int3");
            else if (kind == 3)
                setrlimit(RLIMIT_CPU, &(struct rlimit){1, 2}), signal(SIGXCPU, SIG_DFL), spin(1000);
            else if (kind == 4)
                raise(SIGSTOP);
            else if (kind == 5)
                syscall(SYS_exit_group, 1);
            else
                __asm__ volatile("div %0" : : "r"(0) : "rax", "rdx");
            _exit(1);
        }
        nanosleep(&soon, 0), waitid(P_PID, child, &facts, WEXITED | WSTOPPED | WNOWAIT), kill(child, SIGCONT),
            waitid(P_PID, child, &facts, WCONTINUED | WNOHANG | WEXITED), waitpid(child, 0, 0);
    }
}

// A timer of a task's own CPU time that begins anew each time it has been delivered.
static void of_own_time(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
    timer_t timer;
    signal(SIGRTMIN + 2, handler);
    if (!timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer))
        timer_settime(timer, 0, &(struct itimerspec){{0, 1000000}, {0, 1000000}}, 0), spin(20000000),
            timer_delete(timer);
}

static void clocks(void) {
    signal(SIGALRM, handler); // a clock of one's own CPU time stands still while one waits for it
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 5000}, {0, 5000}}, 0);
    for (int clock = -6; clock < 12; clock++) {
        struct timespec now, wait = {0, 10000};
        struct itimerspec often = {{0, 1000000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
        syscall(SYS_clock_gettime, clock, &now), syscall(SYS_clock_getres, clock, &now),
            syscall(SYS_clock_nanosleep, clock, 0, &wait, 0);
        syscall(SYS_clock_gettime, clock, &now), now.tv_nsec = (now.tv_nsec + 1000000) % 1000000000,
            clock_nanosleep(clock, TIMER_ABSTIME, &now, 0);
        struct sigevent event = {.sigev_notify = clock % 2 ? SIGEV_SIGNAL : SIGEV_NONE,
            .sigev_signo = SIGRTMIN + 2};
        signal(SIGRTMIN + 2, handler);
        timer_t timer;
        if (!timer_create(clock, &event, &timer))
            timer_settime(timer, 0, &often, 0), spin(200000), nanosleep(&(struct timespec){0, 4000000}, 0),
                timer_gettime(timer, &often), timer_getoverrun(timer), get("/proc/self/timers"),
                timer_delete(timer);
        int file = timerfd_create(clock, TFD_NONBLOCK);
        timerfd_settime(file, 0, &often, 0), nanosleep(&soon, 0), timerfd_gettime(file, &often),
            poll(&(struct pollfd){file, POLLIN, 0}, 1, 2), (void)!read(file, buffer, 8);
        timerfd_settime(file, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET,
            &(struct itimerspec){{0, 0}, {2000000000, 0}}, 0), timerfd_settime(file, 0, &never, 0),
            close(file);
        struct timex adjust = {.modes = 0};
        clock_adjtime(clock, &adjust);
    }
    struct itimerval interval = {{0, 500}, {0, 500}};
    setitimer(ITIMER_VIRTUAL, &interval, 0), setitimer(ITIMER_PROF, &interval, 0), spin(200000),
        times((struct tms *)buffer);
    struct timespec now;
    struct timeval old;
    clock_gettime(CLOCK_REALTIME, &now), clock_settime(CLOCK_REALTIME, &now),
        syscall(SYS_gettimeofday, &old, 0), syscall(SYS_settimeofday, &old, 0),
            adjtime(&(struct timeval){0, 1}, 0);
    static const int modes[] = {1, 2, 4, 8, 16, 32, 0x80, 0x100, 0x1000, 0x2000, 0x4000, 0x8001, 0xa001};
    for (size_t mode = 0; mode < COUNT(modes); mode++) {
        struct timex adjust = {.modes = 0};
        adjtimex(&adjust), adjust.modes = modes[mode], adjtimex(&adjust);
    }
    syscall(SYS_time, buffer), get("/proc/timer_list"), read_below("/sys/devices/system/clocksource", 3, 40),
        write_back("/sys/devices/system/clocksource", 3);
}

static void traced(void) {
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0), raise(SIGSTOP), getppid();
        pid_t grand = fork();
        if (!grand)
            _exit(0);
        waitpid(grand, 0, 0), raise(SIGUSR1), syscall(SYS_getuid), _exit(3);
    }
    int status;
    waitpid(child, &status, 0), ptrace(PTRACE_SETOPTIONS, child, 0, 0x1000ff);
    for (int turn = 0; turn < 60; turn++) {
        static char registers[2048], facts[512];
        struct iovec area = {registers, sizeof registers};
        for (int set = 1; set < 0x300; set = set < 8 ? set + 1 : set == 8 ? 0x200 : set + 1)
            area.iov_len = sizeof registers, ptrace(PTRACE_GETREGSET, child, set, &area),
                turn % 20 || ptrace(PTRACE_SETREGSET, child, set, &area);
        ptrace(PTRACE_GETREGS, child, 0, registers), ptrace(PTRACE_SETREGS, child, 0, registers),
            ptrace(PTRACE_PEEKUSER, child, 0, 0), ptrace(PTRACE_PEEKDATA, child, buffer, 0);
        ptrace(PTRACE_POKEDATA, child, buffer, 0), ptrace(PTRACE_POKEUSER, child,
            offsetof(struct { char regs[848]; long d[8]; }, d), buffer),
            ptrace(PTRACE_GETFPREGS, child, 0, facts);
        ptrace(PTRACE_GETSIGINFO, child, 0, facts), ptrace(PTRACE_SETSIGINFO, child, 0, facts),
            ptrace(PTRACE_GETEVENTMSG, child, 0, facts), ptrace(0x420e, child, 88, facts);
        ptrace(PTRACE_GETSIGMASK, child, 8, facts), ptrace(PTRACE_SETSIGMASK, child, 8, facts),
            ptrace(0x420f, child, 40, facts), ptrace(PTRACE_PEEKSIGINFO, child,
            &(struct { uint64_t o; uint32_t f; int32_t n; }){0, 0, 1}, facts);
        ptrace(turn % 3 ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, child, 0, 0);
        pid_t next = waitpid(-1, &status, __WALL);
        if (next < 0)
            break;
        if (next != child)
            ptrace(PTRACE_CONT, next, 0, 0);
        else if (WIFEXITED(status) || WIFSIGNALED(status))
            break;
    }
    kill(child, SIGKILL), waitpid(child, 0, 0);
    child = fork();
    if (!child)
        for (;;)
            nanosleep(&soon, 0);
    ptrace(PTRACE_SEIZE, child, 0, 0x10), ptrace(PTRACE_INTERRUPT, child, 0, 0), waitpid(child, &status, 0),
        ptrace(PTRACE_LISTEN, child, 0, 0),
        ptrace(PTRACE_INTERRUPT, child, 0, 0), waitpid(child, &status, WNOHANG),
            ptrace(PTRACE_DETACH, child, 0, 0);
    ptrace(PTRACE_ATTACH, child, 0, 0), waitpid(child, &status, WNOHANG), read_below("/proc/self", 2, 200);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", child), read_below(path, 2, 200),
        ptrace(PTRACE_KILL, child, 0, 0), kill(child, SIGKILL), waitpid(child, 0, 0);
    syscall(SYS_kcmp, getpid(), getppid(), 0, 0, 1);
    for (int kind = 0; kind < 8; kind++)
        syscall(SYS_kcmp, getpid(), getpid(), kind, 0, 1);
}

static void filtered(void) {
    struct sock_filter body[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getppid}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | 5},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getpgrp}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF},
            {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getgid},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP}, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getegid},
            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_LOG}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    struct sock_fprog program = {COUNT(body), body};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), signal(SIGSYS, handler);
    uint32_t action = SECCOMP_RET_TRAP;
    uint16_t sizes[3];
    syscall(SYS_seccomp, 2, 0, &action), syscall(SYS_seccomp, 3, 0, sizes);
    int listener = syscall(SYS_seccomp, 1, 8, &program);
    pid_t child = fork();
    if (!child)
        getppid(), getgid(), getegid(), syscall(SYS_getpgrp), _exit(0);
    char note[512] = {0}, answer[64] = {0};
    poll(&(struct pollfd){listener, POLLIN, 0}, 1, 50), ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, note),
        memcpy(answer, note, 8), ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, note);
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, answer), waitpid(child, 0, 0), get("/proc/self/status"),
        prctl(PR_GET_SECCOMP), syscall(SYS_seccomp, 1, 2, &program);
    if (!fork())
        prctl(PR_SET_SECCOMP, 1, 0, 0, 0), syscall(SYS_exit, 0);
    wait(0);
}

static int run_alone(void *unused) {
    (void)unused, mount("proc", "/proc", "proc", 0, 0), sethostname("inner", 5),
        read_below("/proc/sys/kernel", 1, 60), read_below("/proc/self/ns", 1, 20), getpid();
    return 0;
}

static void namespaces(void) {
    static const int kinds[] = {CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWPID,
        CLONE_NEWCGROUP, CLONE_NEWUSER, 0x80};
    static const char *const names[] = {"mnt", "uts", "ipc", "net", "pid", "cgroup", "user", "time"};
    static char stack[65536];
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[kind]);
        int own = open(path, O_RDONLY);
        for (int request = 0xb701; request < 0xb709; request++)
            ioctl(own, request, buffer);
        pid_t child = fork();
        if (!child)
            unshare(kinds[kind]), waitpid(fork() ?: (_exit(run_alone(0)), 0), 0, 0), setns(own, kinds[kind]),
                put("/proc/self/setgroups", "deny"), put("/proc/self/uid_map", "0 0 1"),
                put("/proc/self/gid_map", "0 0 1"), put("/proc/self/timens_offsets", "monotonic 10 0"),
                    _exit(0);
        waitpid(child, 0, 0), child = clone(run_alone, stack + sizeof stack,
            kinds[kind] | CLONE_NEWNS | SIGCHLD, 0), waitpid(child, 0, 0), close(own);
    }
    int self = syscall(SYS_pidfd_open, getpid(), 0);
    syscall(SYS_pidfd_send_signal, self, SIGUSR1, 0, 0), close(syscall(SYS_pidfd_getfd, self, 0, 0)),
        poll(&(struct pollfd){self, POLLIN, 0}, 1, 0), get("/proc/self/fdinfo/3"), setns(self, CLONE_NEWUTS),
        close(self);
    unshare(CLONE_FS | CLONE_FILES | CLONE_SYSVSEM), sethostname("tour", 4), gethostname(buffer, 100),
        setdomainname("tour", 4), uname((struct utsname *)buffer), syscall(SYS_personality, 0xffffffff);
}

static int word, other_word;

static void *waits(void *kind) {
    static const int calls[] = {0, 9, 6, 13, 11, 0};
    for (int turn = 0; turn < 3; turn++)
        syscall(SYS_futex, &word, calls[(long)kind], 0, &soon, &other_word, 1);
    return 0;
}

static int taken, wanted;

static void *waits_for_both(void *unused) {
    (void)unused, syscall(SYS_futex, &wanted, FUTEX_WAIT_REQUEUE_PI | 128, 0, 0, &taken, 0),
        syscall(SYS_futex, &taken, FUTEX_UNLOCK_PI | 128, 0, 0, 0, 0);
    return 0;
}

// Who waits is moved to a lock that has an owner, and gets it from him.
static void requeued(void) {
    pthread_t thread;
    syscall(SYS_futex, &taken, FUTEX_LOCK_PI | 128, 0, 0, 0, 0),
        pthread_create(&thread, 0, waits_for_both, 0), nanosleep(&(struct timespec){0, 20000000}, 0);
    syscall(SYS_futex, &wanted, FUTEX_CMP_REQUEUE_PI | 128, 1, (void *)1, &taken, 0),
        syscall(SYS_futex, &taken, FUTEX_UNLOCK_PI | 128, 0, 0, 0, 0), pthread_join(thread, 0);
}

static void locks(void) {
    pthread_t threads[6];
    for (long kind = 0; kind < 6; kind++)
        pthread_create(&threads[kind], 0, waits, (void *)kind);
    nanosleep(&soon, 0);
    for (int command = 0; command < 14; command++)
        syscall(SYS_futex, &word, command, 1,
            command == 3 || command == 4 || command == 5 || command == 12 ? (void *)1 : (void *)&soon,
            &other_word, 0), syscall(SYS_futex, &word, command | 128, 1, &soon, &other_word, 1);
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } several[2] = {{0, (uint64_t)&word, 2, 0}, {0, (uint64_t)&other_word, 2, 0}};
    struct timespec until = {0, 0};
    syscall(SYS_futex_waitv, several, 2, 0, &until, CLOCK_MONOTONIC);
    for (int number = 0; number < 6; number++)
        pthread_join(threads[number], 0);
    for (int kind = 0; kind < 3; kind++) {
        pthread_mutexattr_t how;
        static pthread_mutex_t mutex;
        pthread_mutexattr_init(&how), pthread_mutexattr_setprotocol(&how, kind),
            pthread_mutexattr_setrobust(&how, 1), pthread_mutexattr_setpshared(&how, 1),
            pthread_mutex_init(&mutex, &how);
        pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex);
        pthread_create(&threads[0], 0, (void *(*)(void *))pthread_mutex_lock, &mutex),
            pthread_join(threads[0], 0), pthread_mutex_lock(&mutex), pthread_mutex_consistent(&mutex),
            pthread_mutex_unlock(&mutex);
    }
    syscall(SYS_get_robust_list, 0, buffer, buffer + 8), syscall(SYS_rseq, 0, 0, 0, 0),
        syscall(SYS_set_tid_address, buffer);
}

static void messages(void) {
    int shared = shmget(IPC_PRIVATE, 65536, IPC_CREAT | 0600), queue = msgget(77, IPC_CREAT | 0600),
        semaphores = semget(78, 3, IPC_CREAT | 0600);
    char *attached = shmat(shared, 0, 0);
    if (attached != (void *)-1)
        attached[5000] = 1, get("/proc/self/maps"), shmat(shared, attached + 65536, SHM_RDONLY | SHM_REMAP),
            shmdt(attached);
    struct {
        long type;
        char text[6000];
    } message = {3, "tour"};
    pid_t child = fork();
    if (!child)
        msgrcv(queue, &message, 6000, 9, MSG_NOERROR), semop(semaphores, (struct sembuf[]){{2, -1, SEM_UNDO}},
            1), _exit(0);
    nanosleep(&soon, 0), msgsnd(queue, &message, 6000, IPC_NOWAIT),
        msgrcv(queue, &message, 64, 3, IPC_NOWAIT), msgrcv(queue, &message, 6000, -5, MSG_NOERROR),
        msgrcv(queue, &message, 60, 0, 020000 | IPC_NOWAIT);
    message.type = 9, msgsnd(queue, &message, 64, 0), nanosleep(&soon, 0);
    struct sembuf operations[3] = {{0, 1, SEM_UNDO}, {1, 2, 0}, {2, 1, SEM_UNDO}};
    semop(semaphores, operations, 3), semtimedop(semaphores, (struct sembuf[]){{0, -5, 0}}, 1, &soon),
        waitpid(child, 0, 0);
    unsigned short values[3] = {1, 2, 3};
    static char facts[4096];
    for (int command = 0; command < 21; command++)
        if (command != IPC_RMID)
            semctl(semaphores, 0, command, command == GETALL || command == SETALL ? (void *)values
                : command == SETVAL ? (void *)1 : facts), msgctl(queue, command, (void *)facts),
                shmctl(shared, command, (void *)facts);
    get("/proc/sysvipc/shm"), get("/proc/sysvipc/sem"), get("/proc/sysvipc/msg"),
        semctl(semaphores, 0, IPC_RMID), msgctl(queue, IPC_RMID, 0), shmctl(shared, IPC_RMID, 0);
    long limits[8] = {0, 4, 100, 0};
    int posix = syscall(SYS_mq_open, "tour", O_CREAT | O_RDWR, 0600, limits);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    syscall(SYS_mq_notify, posix, &event), syscall(SYS_mq_timedsend, posix, "text", 4, 2, 0),
        syscall(SYS_mq_timedreceive, posix, buffer, 200, 0, 0),
        syscall(SYS_mq_timedreceive, posix, buffer, 200, 0, &zero);
    syscall(SYS_mq_getsetattr, posix, 0, limits), poll(&(struct pollfd){posix, POLLIN, 0}, 1, 0),
        close(posix), syscall(SYS_mq_unlink, "tour");
}

static void credentials(void) {
    struct rlimit limit;
    for (int kind = 0; kind < RLIM_NLIMITS; kind++)
        getrlimit(kind, &limit), setrlimit(kind, &limit), prlimit(getppid(), kind, 0, &limit);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage), getrusage(RUSAGE_CHILDREN, &usage), getrusage(RUSAGE_THREAD, &usage),
        wait4(-1, 0, WNOHANG, &usage), sysinfo((struct sysinfo *)buffer);
    getpid(), getppid(), getpgrp(), getsid(0), setpgid(0, 0), setsid(), getuid(), geteuid(), getgid(),
        getegid(), syscall(SYS_vhangup), acct(0);
    gid_t groups[4] = {1, 2, 3};
    setgroups(3, groups), getgroups(4, groups), getresuid(&groups[0], &groups[1], &groups[2]),
        getresgid(&groups[0], &groups[1], &groups[2]), setresuid(-1, 0, 0), setresgid(-1, 0, 0);
    uint32_t head[2] = {_LINUX_CAPABILITY_VERSION_3, 0}, data[6];
    syscall(SYS_capget, head, data), syscall(SYS_capset, head, data), head[1] = getppid(),
        syscall(SYS_capget, head, data);
    for (int option = 1; option < 72; option++)
        if (option != PR_SET_SECCOMP && option != PR_SET_PDEATHSIG && option != PR_SET_TSC
            && option != PR_SET_MM &&
            option != PR_SET_SYSCALL_USER_DISPATCH)
            for (int value = 0; value < 3; value++)
                prctl(option, value ? (unsigned long)value : (unsigned long)buffer, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGUSR1), prctl(PR_SET_MM, PR_SET_MM_ENV_START, buffer, 0, 0),
        prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, buffer, 0, 0), prctl(PR_SET_MM, PR_SET_MM_AUXV, buffer, 64, 0),
        prctl(0x53564d41, 0, buffer, 4096, "name");
    syscall(SYS_add_key, "user", "a", "b", 1, -3);
    for (int command = 0; command < 33; command++)
        syscall(SYS_keyctl, command, -3, "a", 1, 0);
    syscall(SYS_request_key, "user", "a", 0, -3), syscall(SYS_bpf, 0, buffer, 32),
        syscall(SYS_bpf, 5, memset(buffer, 0, 4096), 48);
    for (int action = 0; action < 11; action++)
        if (action != 2 && action != 4 && action != 5)
            syscall(SYS_syslog, action, buffer, 4096);
    syscall(SYS_getrandom, buffer, 64, 1), syscall(SYS_modify_ldt, 0, buffer, 64),
        syscall(SYS_modify_ldt, 1, "\1\0\0\0\0\0\0\0\1\0\0\0\x51\0\0\0", 16),
        syscall(SYS_arch_prctl, 0x1003, buffer), syscall(SYS_arch_prctl, 0x1022, 0);
    syscall(SYS_ioperm, 0x80, 1, 1), syscall(SYS_iopl, 3), syscall(SYS_init_module, buffer, 100, ""),
        syscall(SYS_finit_module, 0, "", 0), syscall(SYS_delete_module, "none", 0),
        syscall(SYS_kexec_load, 0, 0, 0, 0);
    int ruleset = syscall(SYS_landlock_create_ruleset, &(uint64_t){1}, 8, 0);
    syscall(SYS_landlock_restrict_self, ruleset, 0), setreuid(0, 5), setfsuid(5), setfsgid(5), setregid(5, 5),
        setuid(5), open("/proc/1/mem", O_RDONLY), kill(1, 0), nice(-5), chroot("/");
}

static void of_memory(void) {
    static uint64_t vector[40];
    int program = open("/proc/self/exe", O_RDONLY);
    for (int field = 1; field < 12; field++)
        prctl(PR_SET_MM, field, buffer, 0, 0);
    prctl(PR_SET_MM, PR_SET_MM_AUXV, vector, sizeof vector, 0),
        prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, program, 0, 0);
    get("/proc/self/exe"), get("/proc/self/cwd/proc/uptime"), read_below("/proc/self/", 2, 400);
    read_below("/proc/self/map_files", 1, 40), close(program);
}

static void reboots(void) { syscall(SYS_reboot, 1, 2, 3, 0), syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0),
    syscall(SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, 0); }

static long opened(struct perf_event_attr *event, pid_t task, int cpu, int group, unsigned long flags) {
    return syscall(SYS_perf_event_open, event, task, cpu, group, flags);
}

static void counted(void) {
    put("/proc/sys/kernel/perf_event_paranoid", "-1");
    for (int kind = 0; kind < 26; kind++) {
        struct perf_event_attr event = {.type = kind < 12 ? 1 : kind < 18 ? 0 : 5, .size = sizeof event,
            .config = kind < 12 ? kind : kind < 18 ? kind - 12 : 0, .sample_period = kind % 3 == 1 ? 100 : 0};
        if (event.type == 5)
            event.bp_type = 3, event.bp_len = 4, event.bp_addr = (uint64_t)&word, event.sample_period = 1;
        event.sample_type = 0x1ffff & ~(1 << 11 | 1 << 12 | 1 << 13), event.read_format = kind % 2 ? 15 : 7,
            event.mmap = event.comm = event.task = event.inherit_stat = 1, event.watermark = kind % 2;
        event.inherit = kind % 4 == 0, event.freq = kind % 5 == 1, event.exclude_hv = 1,
            event.sample_id_all = event.mmap2 = event.ksymbol = event.context_switch = 1;
        if (event.freq)
            event.sample_freq = 2000;
        int leader = opened(&event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC), on_cpu = opened(&event, -1, 0, -1, 0);
        if (leader < 0)
            event.sample_type &= 0x7ff, event.inherit = 0, leader = opened(&event, 0, -1, -1, 0);
        event.disabled = 1;
        int member = opened(&event, 0, -1, leader, PERF_FLAG_FD_OUTPUT);
        char *ring = mmap(0, 9 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, leader, 0);
        ioctl(member, PERF_EVENT_IOC_SET_OUTPUT, leader), fcntl(leader, F_SETFL, O_ASYNC | O_NONBLOCK),
            ioctl(leader, PERF_EVENT_IOC_ENABLE, 1), ioctl(leader, PERF_EVENT_IOC_REFRESH, 3),
            ioctl(leader, PERF_EVENT_IOC_PERIOD, &(uint64_t){50});
        word = kind, memset(mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 65536), spin(50000),
            nanosleep(&soon, 0), prctl(PR_TASK_PERF_EVENTS_DISABLE), prctl(PR_TASK_PERF_EVENTS_ENABLE);
        pid_t child = fork();
        if (!child)
            spin(50000), prctl(PR_SET_NAME, "counted"), _exit(0);
        waitpid(child, 0, 0), (void)!read(leader, buffer, 1024), (void)!read(on_cpu, buffer, 1024),
            poll(&(struct pollfd){leader, POLLIN, 0}, 1, 0), ioctl(leader, PERF_EVENT_IOC_ID, buffer),
            ioctl(leader, PERF_EVENT_IOC_PAUSE_OUTPUT, 1);
        ioctl(leader, PERF_EVENT_IOC_RESET, 1), ioctl(leader, PERF_EVENT_IOC_DISABLE, 1),
            event.sample_period += 5, ioctl(leader, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &event),
            munmap(ring, 9 * 4096), close(leader), close(member), close(on_cpu);
    }
    struct perf_event_attr own = {.type = 1, .config = 1, .size = sizeof own, .sample_period = 10000};
    own.sigtrap = own.remove_on_exec = 1, signal(SIGTRAP, handler);
    int trap = opened(&own, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    spin(200000), close(trap), read_below("/sys/bus/event_source", 4, 120),
        write_back("/sys/bus/event_source", 3);
}

static volatile int trapped;
static void at_trap(int number) { (void)number, trapped++; }

// An event that sends its task a signal; one that another process has of it; counters of a group of tasks.
static void with_signals(void) {
    struct perf_event_attr own = {.type = 1, .config = 0, .size = sizeof own, .sample_period = 20000};
    put("/proc/sys/kernel/perf_event_paranoid", "-1"), signal(SIGTRAP, at_trap);
    own.sigtrap = own.remove_on_exec = own.exclude_kernel = own.disabled = 1;
    for (int config = 0; config < 3; config++) {
        own.config = config, own.sample_period = config == 2 ? 1 : 20000;
        int file = opened(&own, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        ioctl(file, PERF_EVENT_IOC_ENABLE, 0), spin(300000);
        memset(mmap(0, 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 65536);
        ioctl(file, PERF_EVENT_IOC_DISABLE, 0), close(file);
    }
    struct perf_event_attr backward = {.type = 1, .config = 1, .size = sizeof own, .sample_period = 20000};
    backward.write_backward = backward.namespaces = backward.sample_id_all = 1;
    backward.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_REGS_USER
        | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
    backward.sample_regs_user = backward.sample_regs_intr = 0xff;
    int file = opened(&backward, 0, -1, -1, 0);
    char *ring = mmap(0, 3 * 4096, PROT_READ, MAP_SHARED, file, 0);
    spin(300000), unshare(CLONE_NEWUTS), mprotect(ring, 4096, PROT_NONE), munmap(ring + 4096, 4096),
        close(file);
}

int main(void) {
    in_guest();
    part(classes), part(signals), part(clocks), part(traced), part(filtered), part(namespaces), part(locks),
        part(messages), part(credentials), part(of_memory), part(of_own_time), part(requeued), part(reboots),
        part(counted), part(with_signals);
    return 0;
}
