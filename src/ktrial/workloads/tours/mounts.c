// File systems and the files of memory: mounts by the old and the new calls, every kind that the kernel has,
// names,
// locks, watchers, pipes, asynchronous input and output; settings in /proc and /sys.
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/mount.h>

static void paths(const char *home) {
    char name[256], other[256];
    snprintf(name, sizeof name, "%s/one", home), snprintf(other, sizeof other, "%s/other", home),
        mkdir(home, 0755);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), directory = open(home, O_RDONLY | O_DIRECTORY);
    memset(buffer, 'x', sizeof buffer);
    struct iovec parts[2] = {{buffer, 4096}, {buffer + 8192, 4096}};
    for (int turn = 0; turn < 20; turn++)
        (void)!write(file, buffer, sizeof buffer);
    pwritev(file, parts, 2, 12288), preadv(file, parts, 2, 4096), preadv2(file, parts, 2, 0, RWF_NOWAIT),
        pwritev2(file, parts, 2, 0, RWF_DSYNC);
    for (int mode = 0; mode < 128; mode = mode ? mode * 2 : 1)
        fallocate(file, mode, 8192, 65536), fallocate(file, mode | FALLOC_FL_KEEP_SIZE, 8192, 65536);
    lseek(file, 0, SEEK_HOLE), lseek(file, 0, SEEK_DATA), lseek(file, -4, SEEK_END),
        lseek(directory, 5, SEEK_SET), lseek(directory, 0, SEEK_SET);
    sync_file_range(file, 0, 65536, 7), fdatasync(file), fsync(file), syncfs(file), sync(),
        ftruncate(file, 100000), truncate(name, 50000);
    fchmod(file, 0600), chmod(name, 04755), fchown(file, 1, 1), chown(name, 0, 0), lchown(name, 0, 0),
        access(name, R_OK | X_OK), faccessat(AT_FDCWD, name, W_OK, AT_EACCESS);
    struct timespec times[2] = {{1, 2}, {0, UTIME_NOW}};
    futimens(file, times), utimensat(AT_FDCWD, name, times, AT_SYMLINK_NOFOLLOW), syscall(SYS_utime, name, 0),
        syscall(SYS_utimes, name, 0), syscall(SYS_futimesat, AT_FDCWD, name, 0);
    struct statx more;
    struct statfs system;
    statx(AT_FDCWD, name, 0, STATX_ALL, &more), statx(file, "", AT_EMPTY_PATH, STATX_ALL, &more),
        statfs(home, &system), fstatfs(file, &system), syscall(SYS_fstat, file, buffer),
        syscall(SYS_lstat, name, buffer);
    static const char *const keys[] = {"user.a", "trusted.b", "security.c", "security.capability",
        "system.posix_acl_access", "bad"};
    for (size_t key = 0; key < COUNT(keys); key++)
        setxattr(name, keys[key], key == 3 ? "\1\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" : "\2\0\0\0",
            key == 3 ? 20 : 4, 0), lsetxattr(name, keys[key], "b", 1, XATTR_CREATE),
            fgetxattr(file, keys[key], buffer, 100), lgetxattr(name, keys[key], buffer, 100),
            getxattr(name, keys[key], buffer, 1);
    listxattr(name, buffer, sizeof buffer), llistxattr(name, buffer, 10),
        flistxattr(file, buffer, sizeof buffer);
    for (size_t key = 0; key < COUNT(keys); key++)
        key % 2 ? removexattr(name, keys[key]) : lremovexattr(name, keys[key]), fremovexattr(file, keys[key]);
    link(name, other), symlink(name, "/tmp/tour-link"), readlink("/tmp/tour-link", buffer, 100),
        get("/tmp/tour-link"), unlink("/tmp/tour-link"), symlink("loop", "/tmp/loop"), get("/tmp/loop/x"),
        unlink("/tmp/loop"), unlink(other);
    rename(name, other), renameat2(AT_FDCWD, other, AT_FDCWD, name, RENAME_NOREPLACE),
        close(open(other, O_CREAT | O_WRONLY | O_EXCL, 0644));
    renameat2(AT_FDCWD, other, AT_FDCWD, name, RENAME_EXCHANGE),
        renameat2(AT_FDCWD, other, AT_FDCWD, name, RENAME_WHITEOUT), mkdir(other, 0755), rename(home, other),
        rmdir(other);
    mknod("/tmp/tour-fifo", S_IFIFO | 0644, 0), mknod("/tmp/tour-null", S_IFCHR | 0644, 0x103),
        close(open("/tmp/tour-null", O_RDWR)), close(open("/tmp/tour-fifo", O_RDWR | O_NONBLOCK)),
        unlink("/tmp/tour-fifo"), unlink("/tmp/tour-null");
    for (int flags = 0; flags < 32; flags++) {
        uint64_t how[3] = {flags % 2 ? O_PATH | O_CLOEXEC : O_RDONLY, 0, flags};
        close(syscall(SYS_openat2, directory, flags % 3 ? "one" : "../one/..", how, 24));
    }
    static char handle[128 + 8];
    int mount_of;
    *(unsigned *)handle = 128, syscall(SYS_name_to_handle_at, AT_FDCWD, name, handle, &mount_of, 0),
        close(syscall(SYS_open_by_handle_at, directory, handle, O_RDONLY)),
        syscall(SYS_close_range, 200, 300, 4);
    syscall(SYS_getdents, directory, buffer, 4096), lseek(directory, 0, SEEK_SET),
        syscall(SYS_getdents64, directory, buffer, 4096), syscall(SYS_ustat, 1, buffer),
        syscall(SYS_sysfs, 3), syscall(SYS_sysfs, 2, 1, buffer), syscall(SYS_sysfs, 1, "tmpfs");
    close(open(home, O_TMPFILE | O_RDWR, 0644)), copy_file_range(file, &(loff_t){0}, file, &(loff_t){200000},
        100, 0), ioctl(file, FICLONE, directory);
    for (unsigned request = 1; request < 0x90; request++)
        ioctl(file, 0x5400 + request, buffer), ioctl(file, 0x660000 + request, buffer);
    ioctl(file, FS_IOC_GETFLAGS, buffer), ioctl(file, FS_IOC_SETFLAGS, buffer),
        ioctl(file, 0xc020660b, memset(buffer, 0, 100)), ioctl(file, FIBMAP, buffer),
        ioctl(file, FIOQSIZE, buffer);
    void *aligned = aligned_alloc(4096, 65536);
    int plain = open(name, O_RDWR | O_DIRECT);
    memset(aligned, 2, 65536), (void)!write(plain, aligned, 65536), pread(plain, aligned, 65536, 0),
        close(plain), free(aligned), close(file), chdir(home), getcwd(buffer, 4096), fchdir(directory),
        umask(022), close(directory), chdir("/");
}

static void held(void) {
    int file = open("/tmp/held", O_RDWR | O_CREAT, 0644), again = open("/tmp/held", O_RDWR);
    flock(file, LOCK_EX), flock(again, LOCK_SH | LOCK_NB), flock(file, LOCK_SH), flock(file, LOCK_UN),
        flock(again, LOCK_EX), close(again);
    for (int from = 0; from < 100; from += 10) {
        struct flock range = {from % 20 ? F_WRLCK : F_RDLCK, SEEK_SET, from, 20, 0};
        fcntl(file, F_SETLK, &range), fcntl(file, F_GETLK, &range), range.l_pid = 0,
            fcntl(file, F_OFD_SETLK, &range), range.l_type = F_UNLCK, range.l_start += 5, range.l_len = 2,
            fcntl(file, F_SETLK, &range), fcntl(file, F_OFD_GETLK, &range);
    }
    pid_t child = fork();
    if (!child) {
        struct flock all = {F_WRLCK, SEEK_SET, 0, 0, 0};
        alarm(1), fcntl(file, F_SETLKW, &all), _exit(0);
    }
    nanosleep(&(struct timespec){0, 5000000}, 0), get("/proc/locks"), get("/proc/self/fdinfo/3"),
        fcntl(file, F_SETLK, &(struct flock){F_UNLCK, SEEK_SET, 0, 0, 0}), waitpid(child, 0, 0);
    int leased = open("/tmp/leased", O_RDONLY | O_CREAT, 0644);
    fcntl(leased, F_SETLEASE, F_RDLCK), fcntl(leased, F_GETLEASE), child = fork();
    if (!child)
        close(open("/tmp/leased", O_WRONLY)), _exit(0);
    nanosleep(&(struct timespec){0, 5000000}, 0), fcntl(leased, F_SETLEASE, F_UNLCK), waitpid(child, 0, 0),
        close(leased);
    for (int command = 0; command < 20; command++)
        if (command != F_SETLKW)
            fcntl(file, command, 0);
    for (int command = 1024; command < 1040; command++)
        fcntl(file, command, &(uint64_t){0});
    int duplicate = fcntl(file, F_DUPFD_CLOEXEC, 50);
    dup3(file, duplicate, O_CLOEXEC), dup2(file, 60), close(60), close(duplicate), close(file);
}

static void watched(void) {
    int notes = inotify_init1(IN_NONBLOCK), polled = epoll_create1(EPOLL_CLOEXEC), inner = epoll_create(5),
        counter = eventfd(1, EFD_NONBLOCK | EFD_SEMAPHORE);
    mkdir("/tmp/watched", 0755);
    int watch = inotify_add_watch(notes, "/tmp/watched", IN_ALL_EVENTS),
        directory = open("/tmp/watched", O_RDONLY);
    fcntl(directory, F_NOTIFY, DN_CREATE | DN_DELETE | DN_MULTISHOT);
    static const unsigned classes[] = {0, 4, 8, 0x200, 0x400, 0xe00, 0x1f00};
    for (size_t kind = 0; kind < COUNT(classes); kind++) {
        int all = fanotify_init(classes[kind] | FAN_NONBLOCK | FAN_CLOEXEC, O_RDONLY);
        for (unsigned where = 0; where <= 0x100; where = where ? where * 16 : 16) {
            fanotify_mark(all, FAN_MARK_ADD | where, FAN_OPEN | FAN_CLOSE | FAN_MODIFY | FAN_ACCESS, AT_FDCWD,
                "/tmp/watched");
            fanotify_mark(all, FAN_MARK_ADD | where, FAN_CREATE | FAN_DELETE | FAN_MOVE | FAN_ATTRIB
                | FAN_ONDIR | FAN_EVENT_ON_CHILD, AT_FDCWD, "/tmp/watched"),
                fanotify_mark(all, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | where, FAN_ACCESS, AT_FDCWD,
                "/tmp/watched");
        }
        close(open("/tmp/watched/a", O_CREAT | O_RDWR, 0644)), rename("/tmp/watched/a", "/tmp/watched/b"),
            put("/tmp/watched/b", "text"), get("/tmp/watched/b"), chmod("/tmp/watched/b", 0600),
            unlink("/tmp/watched/b");
        poll(&(struct pollfd){all, POLLIN, 0}, 1, 0), ioctl(all, FIONREAD, buffer);
        long size = read(all, buffer, 8192);
        for (char *at = buffer; at + 24 <= buffer + size && *(uint32_t *)at >= 24; at += *(uint32_t *)at)
            close(*(int *)(at + 16));
        snprintf(buffer, 100, "/proc/self/fdinfo/%d", all), get(buffer),
            fanotify_mark(all, FAN_MARK_FLUSH, 0, AT_FDCWD, "/"),
            fanotify_mark(all, FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, "/tmp/watched"), close(all);
    }
    int asks = fanotify_init(FAN_CLASS_CONTENT | FAN_NONBLOCK, O_RDONLY);
    if (!fanotify_mark(asks, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_ACCESS_PERM | FAN_EVENT_ON_CHILD, AT_FDCWD,
        "/tmp/watched")) {
        pid_t child = fork();
        if (!child)
            get("/tmp/watched"), close(open("/tmp/watched", O_RDONLY)), _exit(0);
        for (int turn = 0; turn < 4; turn++) {
            poll(&(struct pollfd){asks, POLLIN, 0}, 1, 20);
            if (read(asks, buffer, 24) == 24)
                (void)!write(asks, &(struct fanotify_response){*(int *)(buffer + 16), FAN_ALLOW}, 8);
        }
        close(asks), waitpid(child, 0, 0);
    }
    poll(&(struct pollfd){notes, POLLIN, 0}, 1, 0), ioctl(notes, FIONREAD, buffer),
        (void)!read(notes, buffer, 8192), snprintf(buffer, 100, "/proc/self/fdinfo/%d", notes), get(buffer),
        inotify_rm_watch(notes, watch);
    inotify_add_watch(notes, "/tmp/watched", IN_DELETE_SELF | IN_ONESHOT), rmdir("/tmp/watched"),
        close(notes), close(directory);
    int pipes[2], file = open("/tmp", O_RDONLY);
    pipe(pipes);
    struct epoll_event event = {EPOLLIN | EPOLLET | EPOLLONESHOT, {0}},
        exclusive = {EPOLLIN | EPOLLEXCLUSIVE, {0}}, got[4];
    epoll_ctl(polled, EPOLL_CTL_ADD, counter, &event), epoll_ctl(polled, EPOLL_CTL_MOD, counter, &event),
        epoll_ctl(polled, EPOLL_CTL_ADD, inner, &exclusive), epoll_ctl(inner, EPOLL_CTL_ADD, pipes[0],
        &exclusive);
    epoll_ctl(inner, EPOLL_CTL_ADD, polled, &event), epoll_ctl(polled, EPOLL_CTL_ADD, file, &event),
        event.events = EPOLLIN | EPOLLWAKEUP, epoll_ctl(polled, EPOLL_CTL_ADD, pipes[0], &event),
        (void)!write(pipes[1], "x", 1);
    epoll_pwait(polled, got, 4, 0, 0), epoll_wait(inner, got, 4, 1),
        syscall(SYS_epoll_pwait2, polled, got, 4, &(struct timespec){0, 1000}, 0, 0),
        poll(&(struct pollfd){inner, POLLIN, 0}, 1, 0), snprintf(buffer, 100, "/proc/self/fdinfo/%d", polled),
        get(buffer);
    close(pipes[1]), epoll_wait(polled, got, 4, 1), epoll_ctl(polled, EPOLL_CTL_DEL, counter, &event),
        (void)!read(counter, buffer, 8), eventfd_write(counter, 3), close(pipes[0]), close(counter),
        close(inner), close(polled), close(file);
    fd_set ready;
    FD_ZERO(&ready);
    FD_SET(0, &ready);
    select(1, &ready, 0, &ready, &(struct timeval){0, 1}), pselect(1, &ready, 0, 0, &(struct timespec){0, 1},
        0), ppoll(&(struct pollfd){0, POLLIN, 0}, 1, &(struct timespec){0, 1000}, 0);
}

static void pipes_and_requests(void) {
    int file = open("/tmp/piped", O_RDWR | O_CREAT, 0644), pipes[2], second[2], flags;
    (void)!write(file, buffer, 60000), pipe2(pipes, O_NONBLOCK | O_DIRECT), pipe2(second, O_NONBLOCK);
    struct iovec part_of = {buffer, 8192};
    fcntl(second[0], F_SETPIPE_SZ, 1 << 17), fcntl(second[0], F_GETPIPE_SZ),
        splice(file, &(loff_t){0}, second[1], 0, 8192, SPLICE_F_MOVE),
        tee(second[0], pipes[1], 4096, SPLICE_F_NONBLOCK), vmsplice(pipes[1], &part_of, 1, SPLICE_F_GIFT);
    vmsplice(second[0], &part_of, 1, 0), (void)!read(pipes[0], buffer, 4096),
        splice(pipes[0], 0, second[1], 0, 4096, SPLICE_F_NONBLOCK), splice(second[0], 0, file, 0, 4096, 0),
        sendfile(second[1], file, 0, 4096), (void)!write(pipes[1], buffer, 200);
    poll((struct pollfd[]){{pipes[0], POLLIN, 0}, {pipes[1], POLLOUT, 0}, {file, POLLIN, 0}}, 3, 0),
        ioctl(pipes[0], FIONREAD, &flags), ioctl(pipes[0], FIONBIO, &flags),
        fcntl(pipes[0], F_SETFL, O_ASYNC), close(pipes[0]), (void)!write(pipes[1], "x", 1), close(pipes[1]);
    unsigned long context = 0;
    struct request {
        uint64_t data;
        uint32_t key, flags;
        uint16_t operation;
        int16_t priority;
        uint32_t file;
        uint64_t start, bytes, offset, reserved;
        uint32_t more, event;
    } request, *requests[] = {&request};
    syscall(SYS_io_setup, 8, &context);
    int event = eventfd(0, EFD_NONBLOCK), whole = open("/tmp/piped", O_RDWR | O_DIRECT);
    for (int operation = 0; operation < 10; operation++)
        for (int turn = 0; turn < 2; turn++) {
            request = (struct request){1, 0, 0, operation, 0,
                operation == 5 ? second[0] : turn ? whole : file, (uint64_t)buffer & ~4095ul, 512, 0, 0, 1,
                event};
            if (operation == 5)
                request.start = POLLIN | POLLPRI, request.bytes = 0;
            if (operation > 6)
                request.start = (uint64_t)&part_of, request.bytes = 1;
            syscall(SYS_io_submit, context, 1, requests), syscall(SYS_io_cancel, context, &request, buffer);
        }
    syscall(SYS_io_getevents, context, 0, 8, buffer, &(struct timespec){0, 1000}),
        syscall(SYS_io_pgetevents, context, 0, 8, buffer, &(struct timespec){0, 1000}, 0),
        syscall(SYS_io_destroy, context);
    struct io_uring_params parameters = {0};
    int ring = syscall(SYS_io_uring_setup, 8, &parameters);
    if (ring >= 0) {
        char *entries = mmap(0, parameters.sq_off.array + 64, 3, MAP_SHARED, ring, IORING_OFF_SQ_RING);
        struct io_uring_sqe *queue = mmap(0, 8 * sizeof *queue, 3, MAP_SHARED, ring, IORING_OFF_SQES);
        for (int operation = 0; operation < 54; operation++) {
            unsigned *tail = (unsigned *)(entries + parameters.sq_off.tail);
            memset(queue, 0, sizeof *queue), queue->opcode = operation,
                queue->fd = operation % 2 ? file : second[0], queue->addr = (uint64_t)&part_of,
                queue->len = 1, ((unsigned *)(entries + parameters.sq_off.array))[*tail & 7] = 0;
            ++*tail, syscall(SYS_io_uring_enter, ring, 1, 0, 1, 0, 0);
        }
        for (int operation = 0; operation < 26; operation++)
            syscall(SYS_io_uring_register, ring, operation, &part_of, 1);
        close(ring);
    }
    close(file), close(whole), close(event), close(second[0]), close(second[1]), unlink("/tmp/piped");
}

static void kinds(void) {
    static const char *const all[] = {"tmpfs", "ramfs", "proc", "sysfs", "devpts", "debugfs", "tracefs",
        "securityfs", "configfs", "mqueue", "hugetlbfs", "cgroup2", "cgroup", "devtmpfs", "bpf", "pstore",
        "autofs", "binfmt_misc", "fuse", "overlay", "rpc_pipefs", "efivarfs", "resctrl", "selinuxfs",
        "smackfs", "9p", "nfs", "ext4", "iso9660", "vfat", "squashfs"};
    mkdir("/tmp/mount", 0755), mkdir("/tmp/elsewhere", 0755), mkdir("/tmp/lower", 0755),
        mkdir("/tmp/upper", 0755), mkdir("/tmp/work", 0755), close(open("/tmp/lower/file", O_CREAT | O_RDWR,
        0644));
    for (size_t kind = 0; kind < COUNT(all); kind++) {
        const char *options = !strcmp(all[kind],
            "overlay") ? "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"
            : !strcmp(all[kind], "tmpfs") ? "size=8m,nr_inodes=200,mode=700,uid=1,huge=always"
            : !strcmp(all[kind], "cgroup") ? "none,name=tour" : 0;
        if (mount("/dev/ram0", "/tmp/mount", all[kind], MS_NOATIME | MS_NODEV, options)
            && mount("none", "/tmp/mount", all[kind], 0, 0))
            continue;
        read_below("/tmp/mount", 2, 150);
        if (kind < 2 || !strcmp(all[kind], "overlay"))
            paths("/tmp/mount/home"), put("/tmp/mount/file", "copied up"), unlink("/tmp/mount/file");
        mkdir("/tmp/mount/made", 0755), mkdir("/tmp/mount/made/inner", 0755),
            rename("/tmp/mount/made/inner", "/tmp/mount/made/moved"), rmdir("/tmp/mount/made/moved"),
            rmdir("/tmp/mount/made"), symlink("a", "/tmp/mount/link"), unlink("/tmp/mount/link"),
            setxattr("/tmp/mount", "user.a", "b", 1, 0), setxattr("/tmp/mount", "trusted.a", "b", 1, 0);
        mount(0, "/tmp/mount", 0, MS_REMOUNT | MS_RDONLY, 0),
            mount(0, "/tmp/mount", 0, MS_REMOUNT | MS_BIND | MS_NOSUID, 0),
            mount("/tmp/mount", "/tmp/elsewhere", 0, MS_BIND | MS_REC, 0), get("/proc/self/mountinfo"),
            umount("/tmp/elsewhere"), umount2("/tmp/mount", MNT_EXPIRE), umount2("/tmp/mount", MNT_DETACH);
    }
}

static void by_new_calls(void) {
    unshare(CLONE_NEWNS), mkdir("/tmp/mount", 0755), mkdir("/tmp/elsewhere", 0755);
    int context = syscall(SYS_fsopen, "tmpfs", 1);
    syscall(SYS_fsconfig, context, 1, "size", "1M", 0), syscall(SYS_fsconfig, context, 0, "ro", 0, 0),
        syscall(SYS_fsconfig, context, 1, "none", "1M", 0), (void)!read(context, buffer, 200),
        syscall(SYS_fsconfig, context, 6, 0, 0, 0);
    int made = syscall(SYS_fsmount, context, 1, 4);
    syscall(SYS_move_mount, made, "", AT_FDCWD, "/tmp/mount", 4);
    struct {
        uint64_t set, clear, propagation, namespace;
    } attributes = {8, 1, MS_SHARED, 0};
    syscall(SYS_mount_setattr, AT_FDCWD, "/tmp/mount", 0x8000, &attributes, 32);
    int picked = syscall(SYS_fspick, AT_FDCWD, "/tmp/mount", 0),
        tree = syscall(SYS_open_tree, AT_FDCWD, "/tmp/mount", 1 | 0x8000);
    syscall(SYS_fsconfig, picked, 1, "size", "2M", 0), syscall(SYS_fsconfig, picked, 7, 0, 0, 0),
        close(picked), syscall(SYS_move_mount, tree, "", AT_FDCWD, "/tmp/elsewhere", 4),
        umount("/tmp/elsewhere"), close(tree), close(made), close(context);
    static const unsigned long ways[] = {MS_SHARED, MS_SLAVE, MS_SHARED, MS_PRIVATE, MS_UNBINDABLE,
        MS_PRIVATE};
    mkdir("/tmp/mount/inner", 0755), mkdir("/tmp/mount/old", 0755);
    for (size_t way = 0; way < COUNT(ways); way++)
        mount(0, "/tmp/mount", 0, ways[way] | MS_REC, 0), mount("/tmp/mount", "/tmp/elsewhere", 0,
            MS_BIND | MS_REC, 0), mount("none", "/tmp/mount/inner", "tmpfs", 0, 0),
            get("/proc/self/mountinfo"), get("/proc/self/mounts"), get("/proc/self/mountstats"),
            umount2("/tmp/mount/inner", MNT_DETACH), mount("/tmp/elsewhere", "/tmp/mount/inner", 0, MS_MOVE,
            0), umount2("/tmp/mount/inner", MNT_DETACH), umount2("/tmp/elsewhere", MNT_DETACH);
    poll(&(struct pollfd){open("/proc/self/mountinfo", O_RDONLY), POLLPRI, 0}, 1, 0),
        mount("none", "/tmp/mount/inner", "tmpfs", 0, 0), syscall(SYS_pivot_root, "/tmp/mount",
        "/tmp/mount/old"), syscall(SYS_quotactl, 0x800001 << 8, "/dev/loop0", 0, buffer), umount("/nowhere"),
        chroot("/tmp/mount");
}

static void settings(void) {
    put("/sys/module/printk/parameters/time", "N"), put("/sys/module/printk/parameters/time", "Y");
    read_below("/sys/module", 3, 900);
    write_back("/proc/sys/fs", 3), write_back("/proc/sys/net", 5), write_back("/proc/sys/kernel", 3),
        write_back("/sys/module", 3), write_back("/sys/kernel/slab", 1), write_back("/sys/class", 3),
        write_back("/sys/bus", 3), write_back("/sys/kernel", 2);
}
// A directory goes that is a mount point in another namespace.
static void gone_elsewhere(void) {
    int pipes[2];
    mkdir("/tmp/gone", 0755), pipe(pipes);
    pid_t child = fork();
    if (!child)
        unshare(CLONE_NEWNS), mount(0, "/", 0, MS_REC | MS_PRIVATE, 0),
            mount("none", "/tmp/gone", "tmpfs", 0, 0), (void)!write(pipes[1], "x", 1),
            nanosleep(&(struct timespec){0, 50000000}, 0), get("/proc/self/mounts"), _exit(0);
    (void)!read(pipes[0], buffer, 1), rmdir("/tmp/gone"), waitpid(child, 0, 0), close(pipes[0]),
        close(pipes[1]);
}

static void of_tasks(void) {
    (void)!readlink("/proc/self/map_files/1000-2000", buffer, 100); // before they are listed
    read_below("/proc", 3, 2500);
}
static void of_devices(void) { read_below("/sys", 8, 5000); }
static void of_debugging(void) { read_below("/sys/kernel/debug", 5, 1200),
    write_back("/sys/kernel/debug", 1); }
static void of_memory(void) { paths("/tmp/home"); }

static void terminals(void) {
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK), number = 0;
    char name[40];
    ioctl(master, 0x40045431, &(int){0}), ioctl(master, 0x80045430, &number),
        snprintf(name, sizeof name, "/dev/pts/%d", number), setsid();
    int slave = open(name, O_RDWR | O_NONBLOCK);
    (void)!write(slave, "text\n", 5), (void)!read(master, buffer, 100), (void)!write(master, "in\3", 3),
        (void)!read(slave, buffer, 100), close(slave), close(master);
    static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "mem", "port", "hpet",
        "rtc0", "cpu_dma_latency", "snapshot", "fuse"};
    for (size_t device = 0; device < COUNT(devices); device++) {
        snprintf(name, sizeof name, "/dev/%s", devices[device]);
        int file = open(name, O_RDWR | O_NONBLOCK);
        (void)!read(file, buffer, 512), (void)!write(file, buffer, 4), lseek(file, 0, SEEK_END),
            mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0), poll(&(struct pollfd){file, POLLIN, 0}, 1, 0),
            close(file);
    }
}

int main(void) {
    in_guest();
    part(of_memory), part(held), part(watched), part(pipes_and_requests), part(kinds), part(by_new_calls),
        part(gone_elsewhere), part(of_tasks), part(of_devices), part(of_debugging), part(terminals),
        part(settings);
    return 0;
}
