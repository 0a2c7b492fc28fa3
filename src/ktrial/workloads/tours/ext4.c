// ext4 on a loop device: a file system is made here, mounted in each mode of its journal, used and checked.
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fsmap.h>
#include <linux/loop.h>
#include <sys/swap.h>

enum { BLOCK = 4096, BLOCKS = 4096, INODES = 256, TABLE = 4, ROOT = 20, JOURNAL = 21, IN_JOURNAL = 1024 };
enum { FREE_FROM = JOURNAL + IN_JOURNAL };
enum { FAST_COMMIT = 0x400, HAS_JOURNAL = 4, EXTENTS = 0x40, INLINE_DATA = 0x8000, LARGE_VALUES = 0x400 };
static unsigned char disk[FREE_FROM * BLOCK];

static void at16(unsigned char *place, int at, unsigned value) { memcpy(place + at, &value, 2); }
static void at32(unsigned char *place, int at, unsigned value) { memcpy(place + at, &value, 4); }
static void big(unsigned char *place, int at, unsigned value) { at32(place, at, htonl(value)); }

static void inode(int number, unsigned mode, int first, int count, int with_extents) {
    unsigned char *place = disk + TABLE * BLOCK + (number - 1) * 256;
    at16(place, 0, mode), at32(place, 4, count * BLOCK), at16(place, 26, S_ISDIR(mode) ? 2 : 1);
    at32(place, 28, count * (BLOCK / 512)), at16(place, 128, 32);
    if (!with_extents) {
        at32(place, 40, first);
        return;
    }
    at32(place, 32, 0x80000), at16(place, 40, 0xf30a), at16(place, 42, 1), at16(place, 44, 4);
    at16(place, 56, count), at32(place, 60, first);
}

// A file system of one group (fs/ext4/ext4.h: ext4_super_block, ext4_group_desc, ext4_inode; jbd2.h).
static int made(const char *path, unsigned compatible, unsigned incompatible) {
    memset(disk, 0, sizeof disk);
    unsigned char *super = disk + 1024, *group = disk + BLOCK, *bitmap = disk + 2 * BLOCK;
    at32(super, 0, INODES), at32(super, 4, BLOCKS), at32(super, 12, BLOCKS - FREE_FROM),
        at32(super, 16, INODES - 10);
    at32(super, 24, 2), at32(super, 28, 2), at32(super, 32, 32768), at32(super, 36, 32768),
        at32(super, 40, INODES);
    at16(super, 54, 0xffff), at16(super, 56, 0xef53), at16(super, 58, 1), at16(super, 60, 1),
        at32(super, 76, 1);
    at32(super, 84, 11), at16(super, 88, 256), at32(super, 92, compatible | 0x28),
        at32(super, 96, incompatible | 2);
    at32(super, 100, 0x6b), super[104] = 7, super[252] = 1, at16(super, 348, 32), at16(super, 350, 32);
    if (compatible & HAS_JOURNAL)
        at32(super, 224, 8);
    at32(group, 0, 2), at32(group, 4, 3), at32(group, 8, TABLE), at16(group, 12, BLOCKS - FREE_FROM);
    at16(group, 14, INODES - 10), at16(group, 16, 1);
    memset(bitmap, 0xff, FREE_FROM / 8), bitmap[FREE_FROM / 8] = (1 << FREE_FROM % 8) - 1;
    memset(bitmap + BLOCKS / 8, 0xff, BLOCK - BLOCKS / 8);
    bitmap += BLOCK, bitmap[0] = 0xff, bitmap[1] = 3, memset(bitmap + INODES / 8, 0xff, BLOCK - INODES / 8);
    inode(2, 040755, ROOT, 1, incompatible & EXTENTS), inode(8, 0100600, JOURNAL, IN_JOURNAL, 1);
    unsigned char *root = disk + ROOT * BLOCK, *journal = disk + JOURNAL * BLOCK;
    at32(root, 0, 2), at16(root, 4, 12), root[6] = 1, root[7] = 2, root[8] = '.', at32(root, 12, 2);
    at16(root, 16, BLOCK - 12), root[18] = 2, root[19] = 2, root[20] = root[21] = '.';
    big(journal, 0, 0xc03b3998), big(journal, 4, 4), big(journal, 12, BLOCK), big(journal, 16, IN_JOURNAL);
    big(journal, 20, 1), big(journal, 24, 1), big(journal, 64, 1);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    int whole = write(file, disk, sizeof disk) == sizeof disk && !ftruncate(file, BLOCKS * BLOCK);
    return whole ? file : -1;
}

static int device = -1;

static int loop_of(int file) {
    char name[32];
    int control = open("/dev/loop-control", O_RDWR), number = ioctl(control, LOOP_CTL_GET_FREE);
    snprintf(name, sizeof name, "/dev/loop%d", number), close(control), device = open(name, O_RDWR);
    struct loop_config config = {.fd = file, .block_size = 0, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
    return ioctl(device, LOOP_CONFIGURE, &config) ? -1 : number;
}

static void write_much(const char *name, int flags, int pieces) {
    int file = open(name, O_RDWR | O_CREAT | flags, 0644);
    for (int piece = 0; piece < pieces; piece++)
        (void)!pwrite(file, buffer, 5000, piece * 40000L);
    fdatasync(file), close(file);
}

static void directories(void) {
    mkdir("many", 0755), mkdir("many/deeper", 0755), mknod("fifo", S_IFIFO | 0644, 0),
        mknod("null", S_IFCHR | 0600, 0x103);
    for (int number = 0; number < 150; number++) {
        char name[300];
        snprintf(name, sizeof name, "many/a-name-that-takes-its-space-%0*d", 100 + number % 50, number);
        if (number % 10)
            link("fifo", name);
        else
            close(open(name, O_CREAT | O_WRONLY, 0644));
        if (number % 7 == 3)
            unlink(name);
    }
    read_below("many", 1, 400), symlink("short", "link"), symlink(memset(buffer, 's', 3000), "long-link");
    buffer[3000] = 0, symlink(buffer, "long-link"), readlink("link", buffer, 100),
        readlink("long-link", buffer, 4096);
    rename("many/deeper", "deeper"), rename("fifo", "many/fifo"),
        close(open("temporary", O_TMPFILE | O_RDWR, 0600));
    close(open("one", O_CREAT | O_RDWR, 0644)), mkdir("other", 0755), rename("one", "other/one");
    renameat2(AT_FDCWD, "other/one", AT_FDCWD, "null", RENAME_EXCHANGE);
    renameat2(AT_FDCWD, "null", AT_FDCWD, "white", RENAME_WHITEOUT), rmdir("deeper"), rmdir("many");
    int file = open(".", O_TMPFILE | O_RDWR, 0600);
    linkat(file, "", AT_FDCWD, "given-a-name", AT_EMPTY_PATH), close(file);
}

static void attributes(void) {
    int file = open("with-attributes", O_RDWR | O_CREAT, 0644);
    for (int number = 0; number < 12; number++) {
        char key[40];
        snprintf(key, sizeof key, "user.key%d", number), fsetxattr(file, key, buffer, number * 90, 0);
    }
    setxattr("with-attributes", "trusted.a", "b", 1, XATTR_CREATE), setxattr(".", "security.a", "b", 1, 0);
    static const uint16_t acl[] = {2, 0, 1, 6, 0xffff, 0xffff, 2, 6, 1, 0, 4, 4, 0xffff, 0xffff, 16, 6,
        0xffff, 0xffff,
        32, 4, 0xffff, 0xffff};
    setxattr("with-attributes", "system.posix_acl_access", acl, sizeof acl, 0);
    setxattr("other", "system.posix_acl_default", acl, sizeof acl, 0), mkdir("other/inherits", 0777);
    getxattr("with-attributes", "system.posix_acl_access", buffer, 200),
        fgetxattr(file, "user.key7", buffer, 4096);
    flistxattr(file, buffer, sizeof buffer), fremovexattr(file, "user.key8"),
        fsetxattr(file, "user.key9", "", 0, 0);
    fsetxattr(file, "user.key3", buffer, 3000, XATTR_REPLACE),
        fsetxattr(file, "user.large", buffer, 9000, 0), read_below("other", 2, 20), read_below(".", 1, 60),
            chown("with-attributes", 3, 3),
        chmod("with-attributes", 02755);
    setxattr("with-attributes", "system.posix_acl_access", acl, 4, 0), close(file), unlink("with-attributes");
}

static void extents(void) {
    write_much("sparse", 0, 40), write_much("sparse", O_SYNC, 3), write_much("direct", O_DIRECT, 2);
    int file = open("sparse", O_RDWR);
    fallocate(file, 0, 4000000, 2000000), fallocate(file, FALLOC_FL_KEEP_SIZE, 6500000, 100000);
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8000, 200000),
        pwrite(file, buffer, 9000, 4100000);
    fallocate(file, FALLOC_FL_ZERO_RANGE, 300000, 65000), fallocate(file, FALLOC_FL_COLLAPSE_RANGE, 0, 65536);
    fallocate(file, FALLOC_FL_INSERT_RANGE, 65536, 65536), lseek(file, 0, SEEK_HOLE),
        lseek(file, 100000, SEEK_DATA);
    void *aligned = aligned_alloc(4096, 65536);
    int plain = open("sparse", O_RDWR | O_DIRECT);
    pwrite(plain, aligned, 65536, 8 << 20), pwrite(plain, aligned, 8192, 4200448),
        pread(plain, aligned, 65536, 0);
    pwrite(plain, aligned, 4096, 12288), close(plain), free(aligned);
    char *map = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map != MAP_FAILED)
        memset(map + 40000, 1, 200000), msync(map, 1 << 20, MS_SYNC), munmap(map, 1 << 20);
    struct {
        struct fiemap head;
        struct fiemap_extent extents[20];
    } map_of = {{0, ~0ull, FIEMAP_FLAG_SYNC, 0, 20, 0}};
    ioctl(file, FS_IOC_FIEMAP, &map_of), map_of.head.fm_flags = FIEMAP_FLAG_XATTR,
        ioctl(file, FS_IOC_FIEMAP, &map_of);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), readahead(file, 0, 1 << 20),
        pread(file, buffer, 60000, 200000);
    fsync(file), ftruncate(file, 70001), ftruncate(file, 3 << 20), sync_file_range(file, 0, 65536, 7);
    int second = open("copy", O_RDWR | O_CREAT, 0644), pipes[2];
    copy_file_range(file, 0, second, 0, 20000, 0), sendfile(second, file, 0, 20000), pipe(pipes);
    splice(file, &(loff_t){0}, pipes[1], 0, 8192, 0), splice(pipes[0], 0, second, 0, 8192, 0);
    pwritev2(second, &(struct iovec){buffer, 5000}, 1, 100, RWF_DSYNC | RWF_NOWAIT),
        pwritev2(second, &(struct iovec){buffer, 5000}, 1, -1, RWF_APPEND);
    close(file), close(second), truncate("sparse", 10), unlink("sparse");
}

static void requests(void) {
    static const unsigned numbers[] = {0x80086601, 0x40086602, 0x80087601, 0x40087602, 0x80046604, 0x40046605,
        0x801c581f,
        0x401c5820, 0x660c, 0x6612, 0x6611, 0x6609, 0xc0185879, 0x4004662b, 0xc0286d15, 0x40305839,
            0xc028660f,
        0x40086610, 0x40046607, 0x40286608, 0x8008662c, 0x4008662c, 0xc0045877, 0xc0045878, 0x80406613,
            0x81007100};
    int file = open("requested", O_RDWR | O_CREAT, 0644), directory = open(".", O_RDONLY);
    (void)!write(file, buffer, 50000);
    for (size_t at = 0; at < COUNT(numbers); at++) {
        static uint64_t argument[64];
        memset(argument, 0, sizeof argument), argument[1] = numbers[at] == 0xc0185879 ? ~0ull : 0;
        if (numbers[at] == 0x40086610)
            argument[0] = BLOCKS * 2;
        ioctl(file, numbers[at], argument), ioctl(directory, numbers[at], argument);
    }
    for (unsigned flags = 1; flags < 0x100000; flags *= 2) {
        unsigned now = 0;
        ioctl(file, FS_IOC_GETFLAGS, &now), now ^= flags, ioctl(file, FS_IOC_SETFLAGS, &now);
        pwrite(file, buffer, 100, 0), now ^= flags, ioctl(file, FS_IOC_SETFLAGS, &now);
    }
    struct {
        uint32_t reserved, donor;
        uint64_t from, to, length, moved;
    } move = {0, open("donor", O_RDWR | O_CREAT, 0644), 0, 0, 8, 0};
    (void)!write(move.donor, buffer, 50000), fsync(move.donor), fsync(file), ioctl(file, 0xc028660f, &move);
    int kinds[] = {FS_IOC_FSGETXATTR};
    struct fsxattr extended;
    ioctl(file, kinds[0], &extended), extended.fsx_projid = 5, ioctl(file, FS_IOC_FSSETXATTR, &extended),
        close(file);
    struct statfs system;
    statfs(".", &system), close(move.donor), syncfs(directory), close(directory);
}

// What fits into an inode, read from it and grown out of it.
static void small(void) {
    mkdir("few", 0755), close(open("few/one", O_CREAT | O_WRONLY, 0644)), mkdir("few/more", 0755);
    int file = open("tiny", O_RDWR | O_CREAT, 0644);
    (void)!write(file, buffer, 40), fsync(file), syncfs(file), close(file);
    put("/proc/sys/vm/drop_caches", "3"), get("tiny"), read_below("few", 1, 20);
    file = open("tiny", O_RDWR);
    char *map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    lseek(file, 0, SEEK_HOLE), pwrite(file, buffer, 20, 50), ftruncate(file, 30), fsync(file),
        (void)*(volatile char *)map, pwrite(file, buffer, 3000, 10), munmap(map, 4096), close(file);
    rename("few/one", "few/two"), unlink("few/two"), rmdir("few/more"), rmdir("few"), unlink("tiny");
}

// Files and directories by their handles, once they are forgotten; where everything lies; a file as swap.
static void by_handle(void) {
    static const char *const names[] = {"handled", "outer/inner", "outer", "."};
    static char handles[COUNT(names)][136];
    static struct {
        struct fsmap_head head;
        struct fsmap records[40];
    } map;
    int mount_of, root = open(".", O_RDONLY), file = open("handled", O_RDWR | O_CREAT, 0644);
    mkdir("outer", 0755), mkdir("outer/inner", 0755), (void)!write(file, buffer, 9000), fsync(file),
        close(file);
    for (size_t at = 0; at < COUNT(names); at++)
        *(unsigned *)handles[at] = 128, syscall(SYS_name_to_handle_at, AT_FDCWD, names[at], handles[at],
            &mount_of,
            at % 2 ? 0 : AT_EMPTY_PATH);
    syncfs(root), put("/proc/sys/vm/drop_caches", "3");
    for (size_t at = 0; at < COUNT(names); at++)
        close(syscall(SYS_open_by_handle_at, root, handles[at], O_RDONLY));
    handles[0][8] ^= 0x55, close(syscall(SYS_open_by_handle_at, root, handles[0], O_RDONLY));
    map.head.fmh_count = COUNT(map.records), memset(&map.head.fmh_keys[1], 0xff, sizeof *map.head.fmh_keys);
    map.head.fmh_keys[1].fmr_reserved[0] = map.head.fmh_keys[1].fmr_reserved[1] =
        map.head.fmh_keys[1].fmr_reserved[2] = 0, ioctl(root, FS_IOC_GETFSMAP, &map);
    int swap = open("swapped-to", O_RDWR | O_CREAT, 0600);
    static char header[4096];
    header[1024] = 1, *(uint32_t *)(header + 1028) = 127, memcpy(header + 4086, "SWAPSPACE2", 10);
    for (int page = 0; page < 128; page++)
        (void)!write(swap, page ? buffer : header, 4096);
    fsync(swap), swapon("swapped-to", 0), get("/proc/swaps"), swapoff("swapped-to"), close(swap),
        unlink("swapped-to"), unlink("handled"), rmdir("outer/inner"), rmdir("outer"), close(root);
}

static void use(void) {
    memset(buffer, 'x', sizeof buffer), small(), by_handle();
    memset(buffer, 'x', sizeof buffer), directories(), memset(buffer, 'x', sizeof buffer), attributes(),
        extents(), requests();
}

// More room in each inode than it was made with, and more blocks.
static void wider(const char *name) {
    int file = open("/tmp/disk", O_RDWR);
    ftruncate(file, 2L * BLOCKS * BLOCK), close(file), ioctl(device, LOOP_SET_CAPACITY, 0);
    if (mount(name, "/tmp/mount", "ext4", 0, "debug_want_extra_isize=64,max_dir_size_kb=64"))
        return;
    static const char *const names[] = {"other", "requested", "donor", "", "other/inherits", "given-a-name"};
    for (size_t at = 0; at < COUNT(names); at++) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/mount/%s", names[at]), chmod(path, 0711), utimensat(0, path, 0, 0);
        setxattr(path, "user.more", buffer, 60, 0), setxattr(path, "user.still", buffer, 30, 0), chmod(path,
            0755);
    }
    int root = open("/tmp/mount", O_RDONLY);
    uint64_t blocks = BLOCKS + 2000;
    ioctl(root, 0x40086610, &blocks), blocks = 2 * BLOCKS, ioctl(root, 0x40086607, &blocks), syncfs(root);
    get("/proc/self/mounts"), close(root), umount2("/tmp/mount", 0);
}

// A directory, a bitmap and the journal with something else in them; the kernel says so, and goes on or not.
static void damaged(const char *name) {
    static const int places[] = {ROOT, 2, TABLE + 1, JOURNAL};
    for (size_t place = 0; place < COUNT(places); place++) {
        int file = open("/tmp/disk", O_RDWR);
        memset(buffer, 0xa5, BLOCK), pwrite(file, buffer, BLOCK, (long)places[place] * BLOCK), close(file);
        put("/proc/sys/vm/drop_caches", "3");
        if (mount(name, "/tmp/mount", "ext4", 0, place % 2 ? "errors=remount-ro" : "errors=continue"))
            continue;
        read_below("/tmp/mount", 2, 40), close(open("/tmp/mount/new", O_CREAT | O_RDWR, 0644)),
            mkdir("/tmp/mount/made", 0755), put("/tmp/mount/new", "text"), sync(), unlink("/tmp/mount/new");
        nanosleep(&(struct timespec){0, 50000000}, 0), read_below("/sys/fs/ext4", 2, 80),
            umount2("/tmp/mount", MNT_DETACH);
    }
}

static void mounted(unsigned compatible, unsigned incompatible, const char *options) {
    char name[32];
    mkdir("/tmp/mount", 0755);
    int number = loop_of(made("/tmp/disk", compatible, incompatible));
    snprintf(name, sizeof name, "/dev/loop%d", number);
    if (number < 0 || mount(name, "/tmp/mount", "ext4", 0, options) || chdir("/tmp/mount")) {
        fprintf(stderr, "ext4 with %s: %s\n", options, strerror(errno));
        return;
    }
    use(), read_below("/proc/fs/ext4", 2, 40), read_below("/proc/fs/jbd2", 2, 40),
        write_back("/sys/fs/ext4", 2);
    int root = open(".", O_RDONLY);
    ioctl(root, FIFREEZE, 0), ioctl(root, FITHAW, 0), mount(0, "/tmp/mount", 0, MS_REMOUNT | MS_RDONLY, 0);
    mount(0, "/tmp/mount", 0, MS_REMOUNT, "commit=1,barrier=0"),
        close(open("late", O_CREAT | O_WRONLY, 0600));
    unlink("late"), ioctl(root, 0x8004587d, &(uint32_t){2}), close(root), chdir("/"),
        umount2("/tmp/mount", MNT_DETACH);
    mount(name, "/tmp/mount", "ext4", 0, "noload"), umount2("/tmp/mount", 0),
        mount(name, "/tmp/mount", "ext4", 0, "errors=remount-ro");
    read_below("/tmp/mount", 2, 60), umount2("/tmp/mount", 0);
    wider(name), damaged(name), ioctl(device, LOOP_CLR_FD), close(device);
}

static void ordered(void) { mounted(HAS_JOURNAL, EXTENTS, "data=ordered,journal_checksum,auto_da_alloc"); }
static void journalled(void) { mounted(HAS_JOURNAL, EXTENTS, "data=journal,discard"); }
static void blocks(void) { mounted(HAS_JOURNAL, 0, "data=writeback,nodelalloc"); }
static void without_journal(void) { mounted(0, EXTENTS, "dioread_lock,inode_readahead_blks=8,stripe=4"); }
static void quickly(void) { mounted(HAS_JOURNAL | FAST_COMMIT, EXTENTS, "commit=100"); }
static void in_inodes(void) { mounted(HAS_JOURNAL, EXTENTS | INLINE_DATA | LARGE_VALUES, "delalloc,grpid"); }

int main(void) {
    in_guest();
    part(ordered), part(journalled), part(blocks), part(without_journal), part(in_inodes),
        part(quickly);
    return 0;
}
