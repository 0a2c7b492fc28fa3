#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

int main(void)
{
	enum { PAGES = 64 };
	char *memory = mmap(0, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) return 1;
	for (int i = 0; i < PAGES; i++) memory[i * 4096] = 1;
	for (int i = 0; i < 500; i++) {
		if (mprotect(memory, PAGES * 4096, PROT_READ)) return 1;
		if (mprotect(memory, PAGES * 4096, PROT_READ | PROT_WRITE)) return 1;
	}
	puts("done");
	return 0;
}
