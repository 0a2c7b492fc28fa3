/* What QEMU 7.2 makes of the flags behind a cmpxchg16b: prints in how many of 1000 cases bits are set that no
 * instruction here sets. The flags are those of popfq; a comparison with an address stands between. */
#include <stdint.h>
#include <stdio.h>

#define KNOWN 0xad7ul /* carry, bit 1, parity, adjust, zero, sign, interrupts, overflow */

static uint64_t pair[2] __attribute__((aligned(16)));

int main(void)
{
	unsigned wrong = 0;

	for (uint64_t number = 0; number < 1000; number++) {
		uint64_t flags, low = pair[0], high = pair[1], address = 0x00007ffff7d54b00ul + number * 8, other = 0;

		__asm__ volatile("pushq $0x202\n popfq\n jmp 1f\n1: cmpq %[address], %[other]\n"
				 "cmpxchg16b %[pair]\n pushfq\n popq %[flags]\n"
				 : [flags] "=&r"(flags), "+a"(low), "+d"(high), [pair] "+m"(pair)
				 : "b"(number), "c"(number + 1), [address] "r"(address), [other] "r"(other)
				 : "memory", "cc");
		wrong += (flags & ~KNOWN) != 0;
	}
	printf("%u\n", wrong);
	return 0;
}
