/*
 * Takes the module `dummy` away that the guest was booted with, and has another one loaded, taken away and loaded
 * again: some of them come to lie where it was. ANOTHER is the path of another module's file.
 */
#include <err.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 5 };

extern const char another[], another_end[];
asm(".section .rodata\n"
    "another: .incbin \"" ANOTHER "\"\n"
    "another_end:\n"
    ".previous");

static void take_away(const char *name)
{
	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		err(1, "delete_module %s", name);
}

int main(void)
{
	take_away("dummy");
	for (int round = 0; round < ROUNDS; round++) {
		if (syscall(SYS_init_module, another, another_end - another, ""))
			err(1, "init_module");
		take_away("ifb");
	}
	return 0;
}
