// SPDX-License-Identifier: GPL-2.0
/* One lock for all CPUs around a hot path: held for PLANTED_LOOPS times two instructions at each call of PLANTED_AT. */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/spinlock.h>

static DEFINE_RAW_SPINLOCK(planted_lock);

static int planted_global_lock(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned long left = PLANTED_LOOPS;

	raw_spin_lock(&planted_lock);
	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
	raw_spin_unlock(&planted_lock);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = PLANTED_AT,
	.pre_handler = planted_global_lock,
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
