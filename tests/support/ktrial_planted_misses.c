// SPDX-License-Identifier: GPL-2.0
/* Two costs whenever the function PLANTED_AT is called: planted_work executes the more instructions, planted_misses
 * takes the longer, by what PLANTED_KIND says. */
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/module.h>

enum { THRASH_A_SET = 1, INVALIDATE_PAGES = 2, MISPREDICT = 3 };
enum { WORK = 2000, ORDER = 9, APART = 64 << 10, LINES = 32, ROUNDS = 2, PAGES = 20, COINS = 200 };
static char *memory; /* 2 MiB, contiguous */

noinline static void planted_work(void)
{
	unsigned long left = WORK;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left));
}

/* Lines 64 KiB apart are in one set of the first level, and in one of the second level. */
static void thrash(void)
{
	int round, line;

	for (round = 0; round < ROUNDS; round++)
		for (line = 0; line < LINES; line++)
			(void)*(volatile char *)(memory + line * APART);
}

static void invalidate(void)
{
	int page;

	for (page = 0; page < PAGES; page++)
		asm volatile("invlpg (%0)" : : "r"(memory + page * PAGE_SIZE) : "memory");
}

/* Branches by a bit of a generator (xorshift64, Marsaglia 2003), which goes on where it was. */
static void mispredict(void)
{
	static unsigned long state = 88172645463325252UL;
	unsigned long times = COINS;

	asm volatile("1: movq %0, %%rax; shlq $13, %%rax; xorq %%rax, %0; movq %0, %%rax; shrq $7, %%rax; xorq %%rax, %0;"
		     "movq %0, %%rax; shlq $17, %%rax; xorq %%rax, %0; testb $64, %b0; jz 2f; nop; 2: decq %1; jnz 1b"
		     : "+r"(state), "+r"(times) : : "rax", "cc", "memory");
}

noinline static void planted_misses(void)
{
	if (PLANTED_KIND == THRASH_A_SET)
		thrash();
	else if (PLANTED_KIND == INVALIDATE_PAGES)
		invalidate();
	else
		mispredict();
}

static int planted(struct kprobe *probe, struct pt_regs *regs)
{
	planted_work();
	planted_misses();
	return 0;
}

static struct kprobe probe = {
	.symbol_name = PLANTED_AT,
	.pre_handler = planted,
};

static int __init plant(void)
{
	memory = (char *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, ORDER);
	return memory ? register_kprobe(&probe) : -ENOMEM;
}

static void __exit uproot(void)
{
	unregister_kprobe(&probe);
	free_pages((unsigned long)memory, ORDER);
}

module_init(plant);
module_exit(uproot);
MODULE_LICENSE("GPL");
