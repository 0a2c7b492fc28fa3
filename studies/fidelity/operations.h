/* What the two halves of the program share: operations that are measured, and changes that are made around them. */
#pragma once
#include <stdbool.h>

struct operation {
	const char *name;
	void (*prepare)(void);
	void (*run)(long times);
	long times; /* of a batch: half a millisecond or so */
};

extern const struct operation file_operations[], memory_operations[], socket_operations[];

/* Of the change: its name without its number, and the number (1 where there is none). */
bool change_is(const char *name);
long change_number(void);
void read_change(const char *text);

/* Before an operation's own preparation, and after it. */
void change_surroundings(void);
void change_process(void);

void need(bool holds, const char *what);
long checked(long result, const char *what);
long size_of_copies(void);
void filter_socket(int socket);
void start_uring(void);
long uring_read(int file, void *buffer, unsigned length);
int other_namespace(void); /* of networks: -1 without veth */
void feed(const char *const arguments[], const char *text);

#define PLACE "/tmp/ktrial-operations"
