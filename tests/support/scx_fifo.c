// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest sched_ext scheduler: one queue for all, first in, first out, with a slice that can be set.
 *
 * usage: scx_fifo [--slice-us N] [--name NAME] [--partial] [--stall] [--nonsense] [--quit-after-ms N]
 *
 * It needs neither clang nor libbpf: what is registered is a kernel structure (struct sched_ext_ops) whose members
 * are found in the kernel's own type information (BTF), with one callback of a dozen instructions. The kernel does
 * the rest: Documentation/scheduler/sched-ext.rst, "only ops.name is mandatory".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef BPF_F_LINK
#define BPF_F_LINK (1U << 13) /* Linux 6.4: the map takes effect by a link, and ends with it */
#endif
#define STRUCT_OPS_ATTACH 44 /* enum bpf_attach_type: BPF_STRUCT_OPS, Linux 6.4 */
#define DSQ_GLOBAL 0x8000000000000001ULL /* include/linux/sched/ext.h: SCX_DSQ_GLOBAL */
#define SWITCH_PARTIAL 8ULL /* SCX_OPS_SWITCH_PARTIAL: only tasks of the class SCHED_EXT */
#define NAME_SIZE 128

static const char *name = "ktrial_fifo";
static uint64_t slice_ns = 20000000;
static bool stall, nonsense, partial;
static long quit_after_ms;

static void die(const char *what)
{
	fprintf(stderr, "scx_fifo: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The kernel's types. */
static struct btf_header *btf;
static const struct btf_type **types;
static uint32_t type_count = 1;

static size_t tail(const struct btf_type *type)
{
	uint32_t many = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case 17: /* BTF_KIND_DECL_TAG */
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return many * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return many * 8;
	case 19: /* BTF_KIND_ENUM64 */
		return many * 12;
	case BTF_KIND_FUNC_PROTO:
		return many * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return many * 12;
	}
	return 0;
}

static void read_types(void)
{
	struct stat found;
	int file = open("/sys/kernel/btf/vmlinux", O_RDONLY);

	if (file < 0 || fstat(file, &found))
		die("/sys/kernel/btf/vmlinux");
	btf = malloc(found.st_size);
	for (off_t at = 0; at < found.st_size;) {
		ssize_t got = read(file, (char *)btf + at, found.st_size - at);

		if (got <= 0)
			die("/sys/kernel/btf/vmlinux");
		at += got;
	}
	close(file);
	char *at = (char *)btf + btf->hdr_len + btf->type_off, *end = at + btf->type_len;

	types = calloc(btf->type_len / sizeof(struct btf_type) + 2, sizeof(*types));
	for (; at < end; at += sizeof(struct btf_type) + tail((void *)at))
		types[type_count++] = (void *)at;
}

static const char *text(uint32_t offset)
{
	return (char *)btf + btf->hdr_len + btf->str_off + offset;
}

static uint32_t type_of(const char *wanted, uint32_t kind)
{
	for (uint32_t id = 1; id < type_count; id++)
		if (BTF_INFO_KIND(types[id]->info) == kind && !strcmp(text(types[id]->name_off), wanted))
			return id;
	return 0;
}

static uint32_t member(uint32_t structure, const char *wanted, uint32_t *offset)
{
	const struct btf_member *members = (void *)(types[structure] + 1);

	for (uint32_t index = 0; index < BTF_INFO_VLEN(types[structure]->info); index++)
		if (!strcmp(text(members[index].name_off), wanted)) {
			*offset = BTF_MEMBER_BIT_OFFSET(members[index].offset) / 8;
			return index;
		}
	fprintf(stderr, "scx_fifo: this kernel's %s has no %s\n", text(types[structure]->name_off), wanted);
	exit(1);
}

/* The callback: put the task at the end of the one queue, or lose it. */
static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define CONSTANT(d, value) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, 0, 0, (uint32_t)(value)), INSN(0, 0, 0, 0, (uint64_t)(value) >> 32)

static int enqueue_program(uint32_t ops, uint32_t index)
{
	static char log[65536];
	uint32_t insert = type_of("scx_bpf_dsq_insert", BTF_KIND_FUNC);

	if (!insert)
		insert = type_of("scx_bpf_dispatch", BTF_KIND_FUNC); /* its name until Linux 6.12 */
	struct bpf_insn whole[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_4, BPF_REG_1, 8, 0), /* enq_flags */
		CONSTANT(BPF_REG_3, slice_ns),
		CONSTANT(BPF_REG_2, DSQ_GLOBAL),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_1, 0, 0), /* the task */
		INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, insert),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	if (nonsense) /* reads a register that nobody has written */
		whole[0] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_4, BPF_REG_9, 0, 0);
	size_t size = sizeof(whole) / sizeof(*whole), from = stall ? size - 2 : 0;
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_STRUCT_OPS,
		.insns = (uint64_t)(whole + from),
		.insn_cnt = size - from,
		.license = (uint64_t) "GPL",
		.attach_btf_id = ops,
		.expected_attach_type = index,
		.log_buf = (uint64_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
		.prog_name = "fifo_enqueue",
	};
	long program = bpf(BPF_PROG_LOAD, &attr);

	if (program < 0) {
		fprintf(stderr, "%s", log);
		die("the verifier refused enqueue");
	}
	return program;
}

/* A map of struct_ops comes with types of its own, if only one that nobody uses. */
static int own_types(void)
{
	struct {
		struct btf_header header;
		struct btf_type type;
		uint32_t integer;
		char text[5];
	} __attribute__((packed)) own = {
		.header = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(struct btf_header) },
		.type = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.integer = BTF_INT_SIGNED << 24 | 32,
		.text = "\0int",
	};

	own.header.type_len = own.header.str_off = sizeof(own.type) + sizeof(own.integer);
	own.header.str_len = sizeof(own.text);
	union bpf_attr attr = { .btf = (uint64_t)&own, .btf_size = sizeof(own) };
	long types_of_ours = bpf(BPF_BTF_LOAD, &attr);

	if (types_of_ours < 0)
		die("types were not taken");
	return types_of_ours;
}

static int registered(void)
{
	uint32_t ops = type_of("sched_ext_ops", BTF_KIND_STRUCT);
	uint32_t value = type_of("bpf_struct_ops_sched_ext_ops", BTF_KIND_STRUCT);
	uint32_t at, data, zero = 0;

	if (!ops || !value) {
		fprintf(stderr, "scx_fifo: this kernel has no sched_ext\n");
		exit(1);
	}
	member(value, "data", &data);
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_STRUCT_OPS,
		.key_size = sizeof(zero),
		.value_size = types[value]->size,
		.max_entries = 1,
		.map_flags = BPF_F_LINK,
		.btf_fd = own_types(),
		.btf_vmlinux_value_type_id = value,
	};
	long map = bpf(BPF_MAP_CREATE, &attr);

	if (map < 0)
		die("no map for sched_ext_ops");
	char *content = calloc(1, types[value]->size);

	member(ops, "name", &at);
	strncpy(content + data + at, name, NAME_SIZE - 1);
	member(ops, "timeout_ms", &at);
	*(uint32_t *)(content + data + at) = 2000;
	member(ops, "flags", &at);
	*(uint64_t *)(content + data + at) = partial ? SWITCH_PARTIAL : 0;
	uint32_t index = member(ops, "enqueue", &at);

	*(uint64_t *)(content + data + at) = enqueue_program(ops, index);
	attr = (union bpf_attr){ .map_fd = map, .key = (uint64_t)&zero, .value = (uint64_t)content };
	if (bpf(BPF_MAP_UPDATE_ELEM, &attr))
		die("sched_ext_ops was not taken");
	attr = (union bpf_attr){ .link_create = { .prog_fd = map, .attach_type = STRUCT_OPS_ATTACH } };
	long link = bpf(BPF_LINK_CREATE, &attr);

	if (link < 0)
		die("not enabled");
	return link;
}

int main(int count, char **arguments)
{
	for (int i = 1; i < count; i++) {
		const char *next = i + 1 < count ? arguments[i + 1] : "";

		if (!strcmp(arguments[i], "--stall"))
			stall = true;
		else if (!strcmp(arguments[i], "--nonsense"))
			nonsense = true;
		else if (!strcmp(arguments[i], "--partial"))
			partial = true;
		else if (!strcmp(arguments[i], "--slice-us") && *next)
			slice_ns = strtoull(next, NULL, 10) * 1000, i++;
		else if (!strcmp(arguments[i], "--quit-after-ms") && *next)
			quit_after_ms = strtol(next, NULL, 10), i++;
		else if (!strcmp(arguments[i], "--name") && *next)
			name = next, i++;
		else
			return fprintf(stderr, "scx_fifo: what is %s?\n", arguments[i]), 2;
	}
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGINT);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	read_types();
	registered();
	free(btf);
	printf("%s: enabled\n", name);
	fflush(stdout);
	struct timespec wait = { quit_after_ms / 1000, quit_after_ms % 1000 * 1000000 };

	if ((quit_after_ms ? sigtimedwait(&end, NULL, &wait) : sigwaitinfo(&end, NULL)) < 0)
		return fprintf(stderr, "%s: has had enough\n", name), 3;
	printf("%s: asked to end\n", name);
	return 0;
}
