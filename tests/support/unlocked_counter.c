/* Four threads add to one counter without a lock: `whole` by one instruction, `block` by a load, an addition and a store in
 * one block of instructions, `split` with a branch between, which ends the block. Prints what is in the counter. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 4
#define ADDITIONS 20000

static volatile long counter;
static const char *way;

static void *add(void *unused)
{
	for (int i = 0; i < ADDITIONS; i++) {
		if (!strcmp(way, "whole"))
			__asm__ volatile("incq %0" : "+m"(counter));
		else if (!strcmp(way, "block"))
			__asm__ volatile("movq %0, %%rax; addq $1, %%rax; movq %%rax, %0" : "+m"(counter) : : "rax");
		else
			__asm__ volatile("movq %0, %%rax; jmp 1f; 1: addq $1, %%rax; movq %%rax, %0"
					 : "+m"(counter) : : "rax");
	}
	return unused;
}

int main(int count, char **words)
{
	pthread_t threads[THREADS];

	way = count > 1 ? words[1] : "whole";
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, add, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", counter);
	return 0;
}
