// SPDX-License-Identifier: GPL-2.0
/* A cost of known size: PLANTED_LOOPS times two instructions, whenever the function PLANTED_AT is called. */
#include <linux/kprobes.h>
#include <linux/module.h>

static int planted_cost(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned long left = PLANTED_LOOPS;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
	return 0;
}

static struct kprobe probe = {
	.symbol_name = PLANTED_AT,
	.pre_handler = planted_cost,
};

static int __init plant(void)
{
	return register_kprobe(&probe);
}

static void __exit uproot(void)
{
	unregister_kprobe(&probe);
}

module_init(plant);
module_exit(uproot);
MODULE_LICENSE("GPL");
