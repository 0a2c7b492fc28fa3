/* What QEMU 7.2 makes of the flags behind a cmpxchg16b, which sets the zero flag and leaves the others: prints in how
 * many of 1000 cases another flag is set than behind the comparison in front of it, with the zero flag. The flags of
 * before are those of popfq, in another block of code. */
#include <stdint.h>
#include <stdio.h>

#define ZERO 0x40ul

static uint64_t pair[2] __attribute__((aligned(16)));

int main(void)
{
	unsigned wrong = 0;

	for (uint64_t number = 0; number < 1000; number++) {
		uint64_t flags, expected, low = pair[0], high = pair[1], address = 0x00007ffff7d54b00ul + number * 8;
		uint64_t other = number & 1 ? 0 : address + number;

		__asm__ volatile("pushq $0x202\n popfq\n jmp 1f\n1: cmpq %[address], %[other]\n pushfq\n popq %[expected]\n"
				 : [expected] "=&r"(expected) : [address] "r"(address), [other] "r"(other) : "memory", "cc");
		__asm__ volatile("pushq $0x202\n popfq\n jmp 1f\n1: cmpq %[address], %[other]\n"
				 "cmpxchg16b %[pair]\n pushfq\n popq %[flags]\n"
				 : [flags] "=&r"(flags), "+a"(low), "+d"(high), [pair] "+m"(pair)
				 : "b"(number), "c"(number + 1), [address] "r"(address), [other] "r"(other)
				 : "memory", "cc");
		wrong += flags != (expected | ZERO);
	}
	printf("%u\n", wrong);
	return 0;
}
