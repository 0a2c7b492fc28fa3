// SPDX-License-Identifier: GPL-2.0
/*
 * A page cache that forgets which pages were used: folio_mark_accessed() does nothing for files of up to FORGETS_UP_TO
 * bytes. The errors of Linux 2.6.11 (small files) and 2.6.23 (all), planted anew. Linux 2.6 did not see that a page was
 * read again soon after it had been evicted, and nothing saved such pages; workingset_refault(), which is there since
 * 3.15, does nothing for files of up to REFAULTS_UP_TO bytes. With 0 both look, and change nothing: the control.
 */
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pagemap.h>

static noinline void nothing(void)
{
	asm volatile("");
}

static int forget(struct pt_regs *regs, loff_t largest)
{
	struct folio *folio = (struct folio *)regs->di;
	struct address_space *mapping = READ_ONCE(folio->mapping);

	/* Not of a file: anonymous, or taken away meanwhile. */
	if (!mapping || ((unsigned long)mapping & 3) || !mapping->host)
		return 0;
	if (i_size_read(mapping->host) > largest)
		return 0;
	regs->ip = (unsigned long)nothing;
	return 1;
}

static int mark(struct kprobe *probe, struct pt_regs *regs)
{
	return forget(regs, FORGETS_UP_TO);
}

static int refault(struct kprobe *probe, struct pt_regs *regs)
{
	return forget(regs, REFAULTS_UP_TO);
}

/* A probe without one is made a jump, after which the changed instruction pointer means nothing (kprobes.rst). */
static void keep_trap(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe marking = {
	.symbol_name = "folio_mark_accessed",
	.pre_handler = mark,
	.post_handler = keep_trap,
};

static struct kprobe refaulting = {
	.symbol_name = "workingset_refault",
	.pre_handler = refault,
	.post_handler = keep_trap,
};

static struct kprobe *probes[] = { &marking, &refaulting };

static int __init plant(void)
{
	return register_kprobes(probes, ARRAY_SIZE(probes));
}

static void __exit uproot(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}

module_init(plant);
module_exit(uproot);
MODULE_LICENSE("GPL");
