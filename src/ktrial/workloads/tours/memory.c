// Memory: every advice, locks, moves, huge pages that are made and split, swap, reclaim in a small group,
// shared
// memory, faults in files, other tasks' memory.
#include <linux/memfd.h>
#include <linux/userfaultfd.h>
#include <sys/swap.h>

static char *anonymous(size_t size, int flags) {
    return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void advices(void) {
    static const int all[] = {0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25};
    size_t size = 4 << 20;
    int file = open("/tmp/advised", O_RDWR | O_CREAT, 0600), memory = memfd_create("advised", 0);
    ftruncate(file, size), ftruncate(memory, size);
    char *maps[] = {anonymous(size, MAP_POPULATE), mmap(0, size, 3, MAP_SHARED, file, 0),
        mmap(0, size, 3, MAP_SHARED, memory, 0),
        mmap(0, size, 3, MAP_PRIVATE, file, 0)};
    for (size_t map = 0; map < COUNT(maps); map++)
        for (size_t at = 0; at < COUNT(all); at++)
            memset(maps[map] + at * 65536, 1, 131072), madvise(maps[map] + at * 65536, 131072, all[at]),
                memset(maps[map] + at * 65536, 2, 4096);
    madvise(maps[0], 65536, 100), madvise(maps[0], 65536, 101), madvise(maps[0] + 1, 5, 4);
    struct iovec part_of = {maps[0], 1 << 20};
    int self = syscall(SYS_pidfd_open, getpid(), 0);
    for (size_t at = 0; at < COUNT(all); at++)
        syscall(SYS_process_madvise, self, &part_of, 1, all[at], 0);
    unlink("/tmp/advised");
}

static void changes(void) {
    size_t size = 4 << 20;
    char *map = anonymous(size, MAP_POPULATE), *grows = anonymous(1 << 20,
        MAP_GROWSDOWN | MAP_STACK | MAP_NORESERVE);
    mprotect(map, 65536, PROT_READ), mprotect(map + 16384, 16384, PROT_NONE),
        mprotect(map, 65536, PROT_READ | PROT_WRITE);
    mprotect(map, 65536, PROT_READ | PROT_EXEC), mlock(map + 262144, 65536),
        mlock2(map + 65536, 65536, MLOCK_ONFAULT), munlock(map, 32768);
    mlockall(MCL_CURRENT | MCL_FUTURE), anonymous(65536, 0), munlockall(), mincore(map, size, (void *)buffer),
        msync(map, size, MS_ASYNC);
    char *moved = mremap(map + (1 << 20), 65536, 1 << 20, MREMAP_MAYMOVE), *target = anonymous(1 << 20, 0);
    mremap(moved, 1 << 20, 32768, 0), mremap(moved, 32768, 32768, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    mremap(map + (2 << 20), 65536, 65536, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0),
        munmap(map + (3 << 20), 8192), memset(grows + 4096, 1, 65536);
    mmap(map + 65536, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        mmap((void *)(1L << 40), 4096, 1, 0x100022, -1, 0);
    remap_file_pages(map, 4096, 0, 0, 0), brk(sbrk(0)), sbrk(1 << 20), sbrk(-(1 << 20));
    for (int piece = 0; piece < 400; piece++)
        mmap(map + piece * 8192, 4096, piece % 2 ? PROT_READ : PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    struct iovec here = {buffer, 4096}, there = {target, 4096};
    process_vm_readv(getpid(), &here, 1, &there, 1, 0), process_vm_writev(getpid(), &here, 1, &there, 1, 0);
    int pagemap = open("/proc/self/pagemap", O_RDONLY), own = open("/proc/self/mem", O_RDWR);
    pread(pagemap, buffer, 4096, (long)target / 4096 * 8), pread(own, buffer, 4096, (long)target),
        pwrite(own, buffer, 4096, (long)target);
    for (int kind = 1; kind < 6; kind++)
        put("/proc/self/clear_refs", (char[2]){'0' + kind, 0});
    get("/proc/self/smaps"), get("/proc/self/numa_maps"), get("/proc/self/smaps_rollup"),
        get("/proc/self/maps"), close(pagemap), close(own);
    for (int command = 0; command < 600; command = command < 3 ? command + 1 : command * 2)
        syscall(SYS_membarrier, command, 0, 0);
    void *pages[8] = {map, target, buffer};
    int status[8], nodes[8] = {0};
    unsigned long mask = 1;
    for (int mode = 0; mode < 6; mode++)
        syscall(SYS_mbind, target, 65536, mode, &mask, 8, 3), syscall(SYS_set_mempolicy, mode, &mask, 8);
    syscall(SYS_get_mempolicy, status, &mask, 64, target, 3), syscall(SYS_migrate_pages, 0, 64, &mask, &mask);
    syscall(SYS_move_pages, 0, 3, pages, 0, status, 2), syscall(SYS_move_pages, 0, 3, pages, nodes, status,
        2);
    int key = syscall(SYS_pkey_alloc, 0, 0);
    syscall(SYS_pkey_mprotect, target, 4096, PROT_READ, key), syscall(SYS_pkey_free, key),
        syscall(SYS_process_mrelease, -1, 0);
    pid_t child = fork();
    if (!child)
        memset(map, 7, 65536), pause(), _exit(0);
    int pidfd = syscall(SYS_pidfd_open, child, 0);
    kill(child, SIGKILL), syscall(SYS_process_mrelease, pidfd, 0), waitpid(child, 0, 0), close(pidfd);
}

static void huge(void) {
    size_t size = 12 << 20;
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always"),
        put("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always");
    put("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "10"),
        put("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan", "9999");
    char *map = anonymous(size, 0);
    madvise(map, size, MADV_HUGEPAGE), memset(map, 1, 8 << 20), mprotect(map + 4096, 4096, PROT_READ),
        get("/proc/self/smaps");
    madvise(map + (4 << 20), 2 << 20, MADV_DONTNEED), munmap(map + (2 << 20) + 4096, 8192),
        madvise(map + (6 << 20), 4096, MADV_FREE);
    (void)*(volatile char *)(map + (10 << 20)), mremap(map + (6 << 20), 4 << 20, 8 << 20, MREMAP_MAYMOVE),
        madvise(map, 4096, 21);
    if (!fork())
        memset(map, 7, 1 << 20), _exit(0);
    wait(0), put("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
    char *small = anonymous(8 << 20, 0);
    madvise(small, 8 << 20, MADV_NOHUGEPAGE), memset(small, 1, 8 << 20),
        madvise(small, 8 << 20, MADV_HUGEPAGE);
    madvise(small, 4 << 20, 25), nanosleep(&(struct timespec){0, 300000000}, 0),
        madvise(small, 8 << 20, MADV_PAGEOUT);
    int memory = memfd_create("huge", 0);
    ftruncate(memory, 8 << 20);
    char *shared = mmap(0, 8 << 20, 3, MAP_SHARED, memory, 0);
    madvise(shared, 8 << 20, MADV_HUGEPAGE), memset(shared, 1, 6 << 20),
        fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192);
    madvise(shared, 8 << 20, 25), munmap(shared + 4096, 4096), ftruncate(memory, 3 << 20),
        put("/sys/kernel/debug/split_huge_pages", "1");
    int pages = memfd_create("small", 0);
    ftruncate(pages, 4 << 20), shared = mmap(0, 6 << 20, 3, MAP_SHARED, pages, 0);
    madvise(shared, 4 << 20, MADV_NOHUGEPAGE), memset(shared, 1, 4 << 20),
        madvise(shared, 4 << 20, MADV_HUGEPAGE);
    madvise(shared, 4 << 20, 25), put("/proc/sys/vm/nr_hugepages", "4");
    int large = memfd_create("large", MFD_HUGETLB);
    ftruncate(large, 4 << 20), shared = mmap(0, 4 << 20, 3, MAP_SHARED, large, 0);
    if (shared != MAP_FAILED)
        memset(shared, 1, 2 << 20), mprotect(shared, 2 << 20, PROT_READ),
            madvise(shared, 2 << 20, MADV_DONTNEED), munmap(shared, 4 << 20);
    put("/proc/sys/vm/nr_hugepages", "0"), put("/proc/sys/vm/compact_memory", "1"),
        put("/proc/sys/vm/drop_caches", "3");
}

// Pages of a file in memory become one, and the empty huge page goes when nobody reads it any more.
static void collapsed(void) {
    enum { HUGE = 2 << 20 };
    uintptr_t at = ((uintptr_t)anonymous(6 * HUGE, 0) + HUGE - 1) & -(uintptr_t)HUGE;
    int memory = memfd_create("collapsed", 0);
    ftruncate(memory, 2 * HUGE);
    char *map = mmap((void *)at, 2 * HUGE, 3, MAP_SHARED | MAP_FIXED, memory, 0),
        *own = (char *)at + 2 * HUGE;
    for (long page = 0; page < HUGE; page += 4096)
        map[page] = 1;
    madvise(map, HUGE, 25), (void)!pwrite(memory, buffer, 4096, HUGE), madvise(map + HUGE, HUGE, 25);
    munmap(map, HUGE), put("/sys/kernel/mm/transparent_hugepage/use_zero_page", "1"),
        put("/sys/kernel/mm/transparent_hugepage/enabled", "always");
    if (!fork())
        (void)*(volatile char *)own, (void)*(volatile char *)(own + HUGE), _exit(0);
    wait(0), put("/proc/sys/vm/drop_caches", "2"), (void)*(volatile char *)own, mprotect(own, HUGE,
        PROT_READ),
        mprotect(own, HUGE, PROT_READ | PROT_WRITE), memset(own, 1, 4096), memset(own + HUGE, 1, HUGE);
    if (!fork())
        mprotect(own + HUGE, HUGE, PROT_READ), mprotect(own + HUGE, HUGE, 3), memset(own + HUGE, 2, 8192),
            _exit(0);
    wait(0), madvise(own + HUGE, HUGE, MADV_FREE), madvise(own + HUGE, HUGE, MADV_PAGEOUT);
}

static void swapped(void) {
    int file = open("/tmp/swap", O_RDWR | O_CREAT, 0600), control = open("/dev/loop-control", O_RDWR);
    size_t size = 24 << 20;
    char name[32], *header = calloc(1, 4096);
    header[1024] = 1, *(uint32_t *)(header + 1028) = size / 4096 - 1, memcpy(header + 4086, "SWAPSPACE2", 10);
    (void)!write(file, header, 4096), ftruncate(file, size), snprintf(name, sizeof name, "/dev/loop%d",
        ioctl(control, 0x4c82));
    int loop = open(name, O_RDWR);
    ioctl(loop, 0x4c00, file), swapon("/tmp/swap", 0);
    if (swapon(name, SWAP_FLAG_PREFER | SWAP_FLAG_DISCARD | 5))
        fprintf(stderr, "swap on %s: %s\n", name, strerror(errno));
    char *map = anonymous(12 << 20, 0);
    int memory = memfd_create("swapped", 0);
    ftruncate(memory, 2 << 20);
    char *shared = mmap(0, 2 << 20, 3, MAP_SHARED, memory, 0);
    memset(map, 3, 12 << 20), memset(shared, 3, 2 << 20), madvise(map, 12 << 20, MADV_PAGEOUT),
        madvise(shared, 2 << 20, MADV_PAGEOUT), get("/proc/self/smaps");
    if (!fork())
        memset(map, 4, 1 << 20), _exit(0);
    wait(0), memset(map, 5, 5 << 20), memset(shared, 5, 1 << 20),
        madvise(map + (6 << 20), 1 << 20, MADV_WILLNEED), madvise(map + (7 << 20), 1 << 20, MADV_FREE);
    mincore(shared, 2 << 20, (void *)buffer), get("/proc/swaps"), madvise(map, 12 << 20, MADV_PAGEOUT),
        munmap(map + (8 << 20), 1 << 20), swapoff(name);
    ioctl(loop, 0x4c01, 0), close(loop), close(file), unlink("/tmp/swap");
}

// A group with less memory than its task wants: reclaim, then its killer.
static void limited(void) {
    mkdir("/tmp/groups", 0755), mount("none", "/tmp/groups", "cgroup2", 0, 0);
    static const char *const controllers[] = {"+memory", "+pids", "+cpu", "+io", "+cpuset", "+hugetlb"};
    for (size_t number = 0; number < COUNT(controllers); number++)
        put("/tmp/groups/cgroup.subtree_control", controllers[number]);
    mkdir("/tmp/groups/small", 0755), put("/tmp/groups/small/memory.high", "6M"),
        put("/tmp/groups/small/memory.max", "10M");
    put("/tmp/groups/small/memory.min", "1M"), put("/tmp/groups/small/memory.low", "2M"),
        put("/tmp/groups/small/memory.swap.max", "max");
    pid_t child = fork();
    if (!child) {
        put("/tmp/groups/small/cgroup.procs", "0");
        int file = open("/tmp/in-group", O_RDWR | O_CREAT, 0600);
        for (int piece = 0; piece < 200; piece++)
            (void)!write(file, buffer, sizeof buffer);
        memset(anonymous(20 << 20, 0), 1, 20 << 20), _exit(0);
    }
    nanosleep(&(struct timespec){0, 200000000}, 0), read_below("/tmp/groups/small", 1, 80),
        waitpid(child, 0, 0);
    put("/tmp/groups/small/memory.high", "1M"), put("/tmp/groups/small/memory.reclaim", "1M"),
        put("/tmp/groups/small/memory.max", "1M"), put("/tmp/groups/small/memory.oom.group", "1");
    write_back("/tmp/groups/small", 0), read_below("/tmp/groups", 2, 90), rmdir("/tmp/groups/small"),
        unlink("/tmp/in-group"), umount("/tmp/groups");
}

static void pressed(void) {
    struct {
        long total, free;
    } now = {0, 0};
    char line[64];
    FILE *info = fopen("/proc/meminfo", "r");
    while (info && fgets(line, sizeof line, info))
        sscanf(line, "MemAvailable: %ld", &now.free);
    int file = open("/tmp/fills", O_RDWR | O_CREAT, 0600);
    size_t size = (size_t)(now.free / 2) << 10;
    char *map = anonymous(size, 0);
    for (size_t at = 0; map != MAP_FAILED && at < size; at += 65536)
        map[at] = 1;
    put("/proc/sys/vm/drop_caches", "1"), put("/proc/sys/vm/compact_memory", "1"),
        put("/proc/sys/vm/min_free_kbytes", "40000");
    nanosleep(&(struct timespec){0, 100000000}, 0), put("/proc/sys/vm/min_free_kbytes", "4000"), close(file),
        unlink("/tmp/fills");
}

static void shared(void) {
    int memory = memfd_create("tour", MFD_ALLOW_SEALING), secret = syscall(SYS_memfd_secret, 0);
    ftruncate(memory, 1 << 20), ftruncate(secret, 65536);
    char *map = mmap(0, 1 << 20, 3, MAP_SHARED, memory, 0), *hidden = mmap(0, 65536, 3, MAP_SHARED, secret,
        0);
    if (hidden != MAP_FAILED)
        memset(hidden, 1, 8192), munmap(hidden, 65536);
    close(secret), memset(map, 1, 1 << 19), fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
        65536), fallocate(memory, 0, 1 << 19, 1 << 18);
    madvise(map, 65536, MADV_REMOVE), (void)!write(memory, buffer, 4096), lseek(memory, 0, SEEK_HOLE),
        lseek(memory, 0, SEEK_DATA), munmap(map, 1 << 20);
    for (int seal = 2; seal <= 16; seal *= 2)
        fcntl(memory, F_ADD_SEALS, seal), (void)!pwrite(memory, buffer, 100, 1 << 20);
    fcntl(memory, F_GET_SEALS), mmap(0, 4096, 3, MAP_SHARED, memory, 0), fsync(memory), close(memory);
    int handler = syscall(SYS_userfaultfd, O_NONBLOCK | O_CLOEXEC);
    struct uffdio_api api = {UFFD_API, 0, 0};
    if (handler >= 0 && !ioctl(handler, UFFDIO_API, &api)) {
        char *area = anonymous(65536, 0);
        struct uffdio_register range = {{(uint64_t)area, 65536},
            UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP, 0};
        ioctl(handler, UFFDIO_REGISTER, &range);
        struct uffdio_copy copy = {(uint64_t)area, (uint64_t)buffer & ~4095ull, 4096, 0, 0};
        struct uffdio_zeropage zero = {{(uint64_t)area + 4096, 4096}, 0, 0};
        struct uffdio_writeprotect protect = {{(uint64_t)area, 4096}, 1};
        ioctl(handler, UFFDIO_COPY, &copy), ioctl(handler, UFFDIO_ZEROPAGE, &zero),
            ioctl(handler, UFFDIO_WRITEPROTECT, &protect);
        protect.mode = 0, ioctl(handler, UFFDIO_WRITEPROTECT, &protect),
            poll(&(struct pollfd){handler, POLLIN, 0}, 1, 0), read(handler, buffer, 32);
        ioctl(handler, UFFDIO_UNREGISTER, &range.range), close(handler);
    }
}

static void of_files(void) {
    int file = open("/tmp/mapped", O_RDWR | O_CREAT, 0600);
    ftruncate(file, 2 << 20);
    char *map = mmap(0, 2 << 20, 3, MAP_SHARED, file, 0), *own = mmap(0, 2 << 20, 3, MAP_PRIVATE, file, 0);
    memset(map, 1, 1 << 20), (void)*(volatile char *)(own + 8192), memset(own, 2, 1 << 19),
        msync(map, 2 << 20, MS_SYNC | MS_INVALIDATE);
    ftruncate(file, 4096), mincore(map, 2 << 20, (void *)buffer), munmap(map, 1 << 20),
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    for (int advice = 0; advice < 8; advice++)
        posix_fadvise(file, 0, 8192, advice);
    readahead(file, 0, 65536), close(file), unlink("/tmp/mapped");
    if (!fork())
        (void)*(volatile char *)(map + (1 << 20) + 4096), _exit(0);
    wait(0);
}

static void statistics(void) {
    put("/sys/kernel/slab/dentry/validate", "1"), put("/sys/kernel/slab/dentry/shrink", "1"),
        get("/proc/slabinfo"), get("/proc/vmallocinfo"), get("/proc/buddyinfo"), get("/proc/pagetypeinfo"),
        get("/proc/zoneinfo"), get("/proc/vmstat");
    get("/proc/meminfo"), get("/proc/kpagecount"), get("/proc/kpageflags"), get("/proc/kpagecgroup"),
        read_below("/sys/kernel/slab", 2, 1500);
    write_back("/sys/kernel/mm", 4), write_back("/proc/sys/vm", 1), read_below("/sys/kernel/mm", 4, 400),
        read_below("/sys/devices/system/memory", 2, 60);
    read_below("/sys/devices/system/node", 3, 200), read_below("/sys/kernel/debug", 2, 300),
        read_below("/sys/class/bdi", 2, 60), write_back("/sys/class/bdi", 2);
}

int main(void) {
    in_guest();
    part(advices), part(changes), part(huge), part(collapsed), part(swapped), part(limited), part(shared),
        part(of_files),
        part(statistics), part(pressed);
    return 0;
}
