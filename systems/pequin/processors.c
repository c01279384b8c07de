/*
 * A library to preload into the Pequin artifact's programs, for machines with few processors and
 * for pods with several client processes.
 *
 * The server makes one thread for each processor that it sees, at most 8, and binds thread i to
 * processor i. With fewer than 3 processors a count underflows: it makes no thread, and answers
 * nothing. On such a machine the programs see 8 processors, and their threads are bound to none.
 * PROCESSORS, if it is set and not 0, is how many they see on any machine, likewise unbound.
 *
 * The programs keep statistics by processor, without locks: bound threads never share one. So an
 * unbound thread is told that it runs on the processor that it was to be bound to.
 *
 * Every program writes whole lines: the clients of a pod share its output, and half a line of one
 * would end in the line of another.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEWEST = 3, INSTEAD = 8, THREADS = 256 };

__attribute__((constructor)) static void write_lines(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static int real(void)
{
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "get_nprocs");

	return next();
}

/* pretended is how many processors the programs see in place of the machine's, or 0. */
static int pretended(void)
{
	static atomic_int known = -1;
	int n = atomic_load(&known);

	if (n < 0) {
		const char *text = getenv("PROCESSORS");

		n = text ? atoi(text) : 0;
		if (n <= 0)
			n = real() < FEWEST ? INSTEAD : 0;
		atomic_store(&known, n);
	}
	return n;
}

/* Where threads were to be bound to; threads are never forgotten, which is right for programs that end none. */
static struct { _Atomic pthread_t thread; int processor; } places[THREADS];
static atomic_int count;

static void place(pthread_t thread, int processor)
{
	int i = atomic_fetch_add(&count, 1);

	if (i >= THREADS)
		abort();
	places[i].processor = processor;
	atomic_store(&places[i].thread, thread);
}

/* std::thread::hardware_concurrency of libstdc++ is get_nprocs. */
int get_nprocs(void)
{
	int n = pretended();

	return n ? n : real();
}

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	int (*next)(pthread_t, size_t, const cpu_set_t *);

	if (pretended()) {
		for (int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET_S(i, size, set)) {
				place(thread, i);
				break;
			}
		return 0;
	}
	next = (int (*)(pthread_t, size_t, const cpu_set_t *))dlsym(RTLD_NEXT, "pthread_setaffinity_np");
	return next(thread, size, set);
}

int sched_getcpu(void)
{
	int (*next)(void);

	if (pretended()) {
		pthread_t self = pthread_self();
		int n = atomic_load(&count);

		for (int i = 0; i < n && i < THREADS; i++)
			if (atomic_load(&places[i].thread) == self)
				return places[i].processor;
		return 0;
	}
	next = (int (*)(void))dlsym(RTLD_NEXT, "sched_getcpu");
	return next();
}
