// Block devices: each kind that is there, its requests and queues' settings, partitions, buffered and direct
// reads and
// writes, schedulers, devices that are made and taken away.
#include <linux/blkpg.h>
#include <linux/blkzoned.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/loop.h>

static void *aligned;

static void transferred(int file, int plain) {
    for (int turn = 0; turn < 12; turn++)
        pwrite(file, aligned, 65536, turn * 40000L), pread(file, aligned, 65536, turn * 70000L),
            pwrite(plain, aligned, 65536, turn * 131072L), pread(plain, aligned, 32768, turn * 65536L);
    struct iovec parts[2] = {{aligned, 4096}, {(char *)aligned + 8192, 8192}};
    pwritev2(plain, parts, 2, 0, RWF_DSYNC), preadv2(plain, parts, 2, 0, RWF_HIPRI),
        preadv2(plain, parts, 2, 0, RWF_NOWAIT), fsync(file), fdatasync(file),
        sync_file_range(file, 0, 65536, 7);
    for (int mode = 0; mode < 64; mode++)
        fallocate(file, mode, 0, 65536);
    unsigned long context = 0;
    struct {
        uint64_t data;
        uint32_t key, flags;
        uint16_t operation;
        int16_t priority;
        uint32_t file;
        uint64_t start, bytes, offset, reserved[2];
    } requests[2] = {{1, 0, 0, 1, 0, plain, (uint64_t)aligned, 16384, 0, {0}},
        {2, 0, 0, 0, 0, plain, (uint64_t)aligned, 16384, 65536, {0}}},
        *both[] = {&requests[0], (void *)&requests[1]};
    syscall(SYS_io_setup, 8, &context), syscall(SYS_io_submit, context, 2, both),
        syscall(SYS_io_getevents, context, 2, 2, buffer, &(struct timespec){0, 50000000}),
        syscall(SYS_io_destroy, context);
    char *map = mmap(0, 65536, 3, MAP_SHARED, file, 0);
    if (map != MAP_FAILED)
        map[5000] = 1, msync(map, 65536, MS_SYNC), munmap(map, 65536);
    for (int advice = 0; advice < 6; advice++)
        posix_fadvise(file, 0, 65536, advice);
    readahead(file, 0, 65536), lseek(file, 0, SEEK_END), lseek(file, 0, SEEK_HOLE);
}

static void asked(int file) {
    static uint64_t argument[64];
    for (int request = 0x1200; request < 0x12a0; request++)
        if (request != BLKRRPART)
            argument[0] = 0, argument[1] = 4096, ioctl(file, request, argument);
    static const unsigned long sized[] = {BLKGETSIZE64, BLKBSZGET, BLKDISCARD, BLKZEROOUT, BLKSECDISCARD,
        BLKROSET, BLKREPORTZONE, BLKRESETZONE, BLKOPENZONE, BLKCLOSEZONE, BLKFINISHZONE, 0x127e, 0xc0481272,
        0x5331, 0x5326, HDIO_GETGEO, 0x2285, 0x2201};
    for (size_t request = 0; request < COUNT(sized); request++)
        memset(argument, 0, sizeof argument),
            argument[1] = sized[request] == BLKDISCARD || sized[request] == BLKZEROOUT ? 65536 : 0,
            ioctl(file, sized[request], argument);
    int bytes = 4096;
    ioctl(file, BLKBSZSET, &bytes), ioctl(file, BLKRASET, 64), ioctl(file, BLKROSET, &(int){0}),
        ioctl(file, BLKFLSBUF, 0);
    struct pr {
        uint64_t key, other;
        uint32_t type, flags;
    } reservation = {1, 2, 1, 0};
    for (int request = 200; request < 206; request++)
        ioctl(file, 0x40187000 + request, &reservation), ioctl(file, 0x40107000 + request, &reservation);
    struct blkpg_partition piece = {65536, 65536, 1, "", ""};
    struct blkpg_ioctl_arg change = {BLKPG_ADD_PARTITION, 0, sizeof piece, &piece};
    ioctl(file, BLKPG, &change), change.op = BLKPG_RESIZE_PARTITION, piece.length = 131072,
        ioctl(file, BLKPG, &change), read_below("/sys/block", 3, 300), get("/proc/partitions"),
        get("/proc/diskstats"), change.op = BLKPG_DEL_PARTITION, ioctl(file, BLKPG, &change);
}

static void table(int file) { // one of DOS with an extended partition, then one of EFI
    unsigned char *sector = aligned;
    memset(sector, 0, 65536), sector[510] = sector[1022 + 65536 - 1024] = 0x55, sector[511] = 0xaa;
    for (int entry = 0; entry < 4; entry++)
        sector[446 + entry * 16 + 4] = entry == 3 ? 5 : 0x83,
            *(uint32_t *)(sector + 446 + entry * 16 + 8) = 64 + entry * 256,
            *(uint32_t *)(sector + 446 + entry * 16 + 12) = 128;
    pwrite(file, sector, 4096, 0), ioctl(file, BLKRRPART, 0), get("/proc/partitions"),
        memset(sector + 446, 0, 64), sector[450] = 0xee, *(uint32_t *)(sector + 454) = 1,
        *(uint32_t *)(sector + 458) = 9999;
    memcpy(sector + 512, "EFI PART\0\0\1\0\x5c\0\0\0", 16), pwrite(file, sector, 4096, 0),
        ioctl(file, BLKRRPART, 0), memset(sector, 0, 4096), pwrite(file, sector, 4096, 0),
        ioctl(file, BLKRRPART, 0);
}

static void toured(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "/dev/%s", name);
    int file = open(path, O_RDWR | O_NONBLOCK), plain = open(path, O_RDWR | O_DIRECT);
    if (file < 0)
        return;
    close(open(path, O_RDWR | O_EXCL)), transferred(file, plain), asked(file), table(file);
    static const char *const schedulers[] = {"mq-deadline", "kyber", "bfq", "none"};
    for (size_t scheduler = 0; scheduler < COUNT(schedulers); scheduler++) {
        snprintf(path, sizeof path, "/sys/block/%s/queue/scheduler", name), put(path, schedulers[scheduler]),
            transferred(file, plain);
        snprintf(path, sizeof path, "/sys/block/%s/queue", name), read_below(path, 2, 100),
            write_back(path, 2);
    }
    static const char *const settings[][2] = {{"nr_requests", "16"}, {"wbt_lat_usec", "2000"},
        {"io_poll", "1"}, {"nomerges", "2"}, {"rq_affinity", "2"}, {"iostats", "0"}, {"add_random", "1"},
        {"write_cache", "write back"}, {"max_sectors_kb", "64"}, {"read_ahead_kb", "8"}, {"rotational", "1"}};
    for (size_t setting = 0; setting < COUNT(settings); setting++)
        snprintf(path, sizeof path, "/sys/block/%s/queue/%s", name, settings[setting][0]),
            put(path, settings[setting][1]);
    transferred(file, plain), snprintf(path, sizeof path, "/sys/kernel/debug/block/%s", name),
        read_below(path, 3, 200), snprintf(path, sizeof path, "/sys/block/%s", name),
        read_below(path, 4, 300), write_back(path, 2);
    snprintf(path, sizeof path, "/sys/block/%s/events_poll_msecs", name), put(path, "10"),
        nanosleep(&(struct timespec){0, 50000000}, 0), put(path, "-1"), close(file), close(plain),
        put("/proc/sys/vm/drop_caches", "1");
}

static void memory_disk(void) { toured("ram1"); }
static void null_disk(void) { toured("nullb0"); }
static void partition(void) { toured("vda"); }

static void loop_disk(void) {
    int control = open("/dev/loop-control", O_RDWR), number = ioctl(control, LOOP_CTL_GET_FREE),
        back = open("/tmp/looped", O_RDWR | O_CREAT, 0600);
    char path[64];
    ftruncate(back, 16 << 20), snprintf(path, sizeof path, "/dev/loop%d", number);
    int file = open(path, O_RDWR);
    struct loop_config config = {.fd = back, .block_size = 512,
        .info = {.lo_flags = LO_FLAGS_PARTSCAN | LO_FLAGS_DIRECT_IO, .lo_file_name = "looped"}};
    struct loop_info64 info;
    ioctl(file, LOOP_CONFIGURE, &config), ioctl(file, LOOP_GET_STATUS64, &info), info.lo_sizelimit = 8 << 20,
        ioctl(file, LOOP_SET_STATUS64, &info), ioctl(file, LOOP_SET_CAPACITY, 0),
        ioctl(file, LOOP_SET_DIRECT_IO, 0), ioctl(file, LOOP_SET_BLOCK_SIZE, 4096);
    ioctl(file, LOOP_GET_STATUS, buffer), ioctl(file, LOOP_CHANGE_FD, back),
        ioctl(file, LOOP_SET_BLOCK_SIZE, 512), ftruncate(back, 4 << 20), toured(path + 5),
        ioctl(file, LOOP_CLR_FD, 0), close(file), ioctl(control, LOOP_CTL_ADD, 40),
        ioctl(control, LOOP_CTL_REMOVE, 40), close(control);
}

// Disks of the null driver, by its files: with memory, with zones, of each mode of its queue.
static void made_disks(void) {
    static const char *const settings[][2] = {{"size", "64"}, {"memory_backed", "1"}, {"discard", "1"},
        {"completion_nsec", "1000"}, {"irqmode", "2"}, {"poll_queues", "1"}, {"submit_queues", "1"},
        {"cache_size", "1"}, {"badblocks", "+100-102"}, {"queue_mode", "2"}, {"blocking", "1"}};
    mkdir("/tmp/configuration", 0755), mount("none", "/tmp/configuration", "configfs", 0, 0);
    for (int kind = 0; kind < 4; kind++) {
        char home[100], path[200];
        snprintf(home, sizeof home, "/tmp/configuration/nullb/made%d", kind), mkdir(home, 0755);
        for (size_t setting = 0; setting < COUNT(settings); setting++)
            snprintf(path, sizeof path, "%s/%s", home, settings[setting][0]), put(path, settings[setting][1]);
        snprintf(path, sizeof path, "%s/queue_mode", home), put(path, kind == 1 ? "0" : "2"),
            snprintf(path, sizeof path, "%s/zoned", home), put(path, kind == 2 ? "1" : "0"),
            snprintf(path, sizeof path, "%s/zone_size", home), put(path, "16");
        snprintf(path, sizeof path, "%s/power", home), put(path, "1"), read_below(home, 1, 60);
        for (int number = 0; number < 6; number++)
            snprintf(path, sizeof path, "/sys/block/nullb%d/nullb_index", number);
        toured(kind ? "nullb2" : "nullb1"), snprintf(path, sizeof path, "/sys/block/made%d", kind);
        if (!access(path, F_OK))
            toured(path + 11);
        snprintf(path, sizeof path, "%s/power", home), put(path, "0"), rmdir(home);
    }
    umount("/tmp/configuration");
}

int main(void) {
    in_guest(), aligned = aligned_alloc(4096, 131072), memset(aligned, 1, 131072);
    part(memory_disk), part(null_disk), part(loop_disk), part(made_disks), part(partition);
    return 0;
}
