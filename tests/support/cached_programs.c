/* Programs with other ways to use caches, for two simulators to be compared: cached_programs NAME. Built static, -O2.
 * Each goes over its memory many times: what the kernel does when it is touched first is soon nothing of the whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 131072, SIDE = 128 }; /* 512 KiB; three matrices of 128 KiB */
static unsigned state = 2463534242u, words[WORDS], next[WORDS];
static double a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];

/* xorshift32 (Marsaglia 2003). */
static unsigned drawn(void)
{
	state ^= state << 13, state ^= state >> 17, state ^= state << 5;
	return state;
}

static void fill(void)
{
	for (int at = 0; at < WORDS; at++)
		words[at] = drawn();
}

static unsigned matrix(void)
{
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			a[row][column] = row, b[row][column] = column;
	for (int row = 0; row < SIDE; row++)
		for (int column = 0; column < SIDE; column++)
			for (int k = 0; k < SIDE; k++)
				c[row][column] += a[row][k] * b[k][column];
	return (unsigned)c[3][5];
}

/* Heapsort: the C library's qsort would take memory of its own. */
static void sink(int root, int end)
{
	for (int child; (child = 2 * root + 1) < end; root = child) {
		if (child + 1 < end && words[child] < words[child + 1])
			child++;
		if (words[root] >= words[child])
			return;
		unsigned kept = words[root];
		words[root] = words[child], words[child] = kept;
	}
}

static unsigned heap(void)
{
	fill();
	for (int root = WORDS / 2; root--;)
		sink(root, WORDS);
	for (int end = WORDS; --end;) {
		unsigned last = words[end];
		words[end] = words[0], words[0] = last;
		sink(0, end);
	}
	return words[7];
}

/* A walk along one cycle through all words (Sattolo 1986). */
static unsigned chase(void)
{
	unsigned at = 0;
	for (unsigned one = 0; one < WORDS; one++)
		next[one] = one;
	for (unsigned one = WORDS - 1; one; one--) {
		unsigned other = drawn() % one, kept = next[one];
		next[one] = next[other], next[other] = kept;
	}
	for (int step = 0; step < 600000; step++)
		at = next[at];
	return at;
}

static unsigned hash(void)
{
	for (int step = 0; step < 400000; step++)
		words[drawn() * 2654435761u >> 15]++;
	return words[11];
}

static unsigned copies(void)
{
	for (int again = 0; again < 20; again++)
		for (int at = 0; at < WORDS; at++)
			next[at] = words[at] + again;
	return next[13];
}

/* The kernel's clearing of pages comes before. */
static void touch(void *memory, unsigned size)
{
	for (unsigned at = 0; at < size; at += 4096)
		((volatile char *)memory)[at] = 0;
}

int main(int argc, char **argv)
{
	const struct { const char *name; unsigned (*run)(void); } programs[] = {
		{"matrix", matrix}, {"heap", heap}, {"chase", chase}, {"hash", hash}, {"copies", copies},
	};
	touch(words, sizeof words), touch(next, sizeof next);
	touch(a, sizeof a), touch(b, sizeof b), touch(c, sizeof c);
	for (unsigned one = 0; argc == 2 && one < sizeof programs / sizeof *programs; one++)
		if (!strcmp(programs[one].name, argv[1]))
			return programs[one].run() == 12345; /* so that the work is not taken out */
	fprintf(stderr, "usage: cached_programs matrix|heap|chase|hash|copies\n");
	return 2;
}
