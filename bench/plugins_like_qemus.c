/*
 * Plugins like QEMU's own, beside which `make bench BENCH=plugin` measures ktrial's. Debian ships none of them.
 *
 * KIND 0: tests/plugin/empty.c: blocks are seen as they are translated, and nothing is done.
 * KIND 1: tests/plugin/insn.c with inline=on: translated code adds 1 for each instruction.
 * KIND 2: contrib/plugins/hotblocks.c: for each block that is executed a function is called, which counts it.
 *         (QEMU's looks the block up under a lock at each call; here the call is given the place of its count.)
 *
 * What is declared here is in QEMU's include/qemu/qemu-plugin.h, of API version 1 (QEMU 4.2 to 8.2).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef uint64_t Id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

extern void qemu_plugin_register_vcpu_tb_trans_cb(Id, void (*)(Id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int, void *, uint64_t);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);

enum { ADD_U64 = 0, NO_REGISTERS = 0 };

int qemu_plugin_version = 1;

static uint64_t instructions;

static void count_block(unsigned cpu, void *count)
{
	(void)cpu;
	++*(uint64_t *)count;
}

static void translated(Id id, struct qemu_plugin_tb *block)
{
	(void)id;
	if (KIND == 1)
		for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
			qemu_plugin_register_vcpu_insn_exec_inline(qemu_plugin_tb_get_insn(block, i), ADD_U64,
								   &instructions, 1);
	if (KIND == 2)
		qemu_plugin_register_vcpu_tb_exec_cb(block, count_block, NO_REGISTERS, calloc(1, 8));
}

int qemu_plugin_install(Id id, const void *info, int argc, char **argv)
{
	(void)info, (void)argc, (void)argv;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
