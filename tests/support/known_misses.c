/* Loops of which it is known what they miss, each marked as a region of many operations. Built static, -O2. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MARK(constant) __asm__ volatile(".byte 0x0f, 0x1f, 0x80; .long " #constant ::: "memory")

static unsigned char *memory;

/* Reads one byte of each `stride` up to `size`, in one loop without other accesses. */
static void stride(long size, long step)
{
	long at = 0;
	__asm__ volatile("1: movb (%1,%0), %%al; addq %3, %0; cmpq %2, %0; jb 1b"
			 : "+r"(at) : "r"(memory), "r"(size), "r"(step) : "rax", "cc", "memory");
}

/* Calls itself `depth` deep. */
__attribute__((noinline, noclone)) static void deep(long depth)
{
	if (depth > 1)
		deep(depth - 1);
	__asm__ volatile("" ::: "memory");
}

/* Branches by a bit of a generator (xorshift64, Marsaglia 2003), which goes on where it was: as a fair coin does. */
static void coin(long times)
{
	static unsigned long state = 88172645463325252UL;
	__asm__ volatile("1: movq %0, %%rax; shlq $13, %%rax; xorq %%rax, %0; movq %0, %%rax; shrq $7, %%rax; xorq %%rax, %0;"
			 "movq %0, %%rax; shlq $17, %%rax; xorq %%rax, %0; testb $64, %b0; jz 2f; nop; 2: decq %1; jnz 1b"
			 : "+r"(state), "+r"(times) :: "rax", "cc", "memory");
}

int main(int argc, char **argv)
{
	long first = argc > 2 ? atol(argv[2]) : 0, second = argc > 3 ? atol(argv[3]) : 0;
	memory = mmap(0, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(memory, 32 << 20, MADV_NOHUGEPAGE);
	memset(memory, 1, 32 << 20);
	for (int round = 0; round < 3; round++) {
		if (round == 1)
			MARK(0x4b540001);
		if (!strcmp(argv[1], "stride"))
			stride(first, second);
		else if (!strcmp(argv[1], "deep"))
			for (int time = 0; time < 1000; time++)
				deep(first);
		else
			coin(first);
		if (round)
			MARK(0x4b540003);
	}
	MARK(0x4b540002);
	return 0;
}
