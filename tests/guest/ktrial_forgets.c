// SPDX-License-Identifier: GPL-2.0
/*
 * A page cache that forgets which pages were used: folio_mark_accessed() does nothing for files of up to FORGETS_UP_TO
 * bytes. The errors of Linux 2.6.11 (small files) and 2.6.23 (all), planted anew. With FORGETS_UP_TO 0 it looks, and
 * changes nothing: the control.
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

static int forget(struct kprobe *probe, struct pt_regs *regs)
{
	struct folio *folio = (struct folio *)regs->di;
	struct address_space *mapping = READ_ONCE(folio->mapping);

	/* Not of a file: anonymous, or taken away meanwhile. */
	if (!mapping || ((unsigned long)mapping & 3) || !mapping->host)
		return 0;
	if (i_size_read(mapping->host) > FORGETS_UP_TO)
		return 0;
	regs->ip = (unsigned long)nothing;
	return 1;
}

static struct kprobe probe = {
	.symbol_name = "folio_mark_accessed",
	.pre_handler = forget,
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
