// SPDX-License-Identifier: GPL-2.0
/* A data race: at each call of PLANTED_AT a counter of all CPUs is read, and written a little later, without a lock. */
#include <linux/kprobes.h>
#include <linux/module.h>

static unsigned long planted_counter;

static int planted_race(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned long seen = READ_ONCE(planted_counter);
	unsigned long left = PLANTED_LOOPS;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
	WARN_ONCE(READ_ONCE(planted_counter) != seen, "planted race: an update is lost");
	WRITE_ONCE(planted_counter, seen + 1);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = PLANTED_AT,
	.pre_handler = planted_race,
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
