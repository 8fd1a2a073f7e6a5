/* SPDX-License-Identifier: BSD-3-Clause
 * What programs do with processes and signals while Nezha has connections and threads: reductions must stay right, and children must
 * neither hold nor disturb what is their parent's.
 *   life signals      storms of SIGPROF and SIGALRM, with handlers that restart system calls and ones that do not
 *   life fork         children that end by exit, that run on, that exec, by fork, system and popen, between calls and in their midst
 *   life finalize     MPI_Finalize while another thread is in a call that nobody else enters */
#include <dirent.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/mpi/common.h"

#define COUNT 200000

static long caught[2];

static void reduce(MPI_Comm comm, int calls)
{
	static __thread int buffer[COUNT];
	int size, rank;

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &rank);
	for (int k = 0; k < calls; k++) {
		for (int i = 0; i < COUNT; i++)
			buffer[i] = rank * 3 + i % 7 + k;
		MPI_Allreduce(MPI_IN_PLACE, buffer, COUNT, MPI_INT, MPI_SUM, comm);
		for (int i = 0; i < COUNT; i++)
			if (buffer[i] != size * (i % 7 + k) + 3 * size * (size - 1) / 2) {
				fail("call %d: element %d is %d", k, i, buffer[i]);
				return;
			}
	}
}

/* ---- signals ---- */

static void catch(int signal)
{
	caught[signal == SIGALRM]++;
}

static void storm(int flags)
{
	struct sigaction action = { .sa_handler = catch, .sa_flags = flags };
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };

	alarm(0);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	reduce(MPI_COMM_WORLD, 40);
	setitimer(ITIMER_REAL, &never, NULL);
	setitimer(ITIMER_PROF, &never, NULL);
	signal(SIGALRM, expire);
	if (caught[0] < 5 || caught[1] < 20)
		fail("only %ld and %ld signals came", caught[0], caught[1]);
	caught[0] = caught[1] = 0;
}

/* ---- fork ---- */

/* What of the parent's Nezha a child has: sockets bound to a rail's address, 10.77.0.0/16 without the control network. */
static int rail_sockets(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;

	while (dir && (entry = readdir(dir))) {
		struct { unsigned short family, port; unsigned char address[12]; } name = { 0 };
		socklen_t length = sizeof name;

		if (!getsockname(atoi(entry->d_name), (struct sockaddr *)&name, &length) && name.family == AF_INET &&
		    name.address[0] == 10 && name.address[1] == 77 && name.address[2] != 200)
			count++;
	}
	if (dir)
		closedir(dir);
	return count;
}


static void await(pid_t child, const char *what)
{
	int status = 0;

	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status))
		fail("%s: pid %d, status %x", what, (int)child, status);
}

/* A child that ends in good order, with all that exit() runs, and one that goes on for a while with memory and descriptors. */
static void fork_once(void)
{
	pid_t child = fork();

	if (!child) {
		int held = rail_sockets();

		if (held)
			fprintf(stderr, "rank %d: FAILED: a child holds %d sockets of its parent's rails\n", world_rank, held);
		exit(held ? 1 : 0);
	}
	await(child, "a child that exits");
}

/* What a program has that is started: this one tells by its status. */
static void exec_once(void)
{
	char command[100];
	int held, status;
	FILE *pipe;

	snprintf(command, sizeof command, "/proc/%d/exe held", (int)getpid());
	status = system(command);
	held = WIFEXITED(status) ? WEXITSTATUS(status) : 100;
	if (held)
		fail("a program that was started holds %d sockets of the rails", held);
	pipe = popen("echo answer", "r");
	if (!pipe || fgetc(pipe) != 'a' || pclose(pipe))
		fail("popen");
}

static atomic_bool over;

static void *fork_all_the_time(void *argument)
{
	(void)argument;
	for (int i = 0; !over && i < 300; i++) {
		fork_once();
		if (i % 10 == 0)
			exec_once();
	}
	return NULL;
}

static void forks(void)
{
	pthread_t thread;
	pid_t child;

	reduce(MPI_COMM_WORLD, 3);
	for (int i = 0; i < 3; i++) {
		fork_once();
		exec_once();
		reduce(MPI_COMM_WORLD, 2);
	}
	/* One stays while the parent goes on, frees memory and calls; it is ended, not asked. */
	child = fork();
	if (!child) {
		for (int i = 0; i < 1000; i++)
			free(malloc((size_t)i * 1000));
		pause();
		_exit(0);
	}
	if (pthread_create(&thread, NULL, fork_all_the_time, NULL)) {
		fail("no thread");
		return;
	}
	reduce(MPI_COMM_WORLD, 60);
	over = true;
	pthread_join(thread, NULL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	reduce(MPI_COMM_WORLD, 3);
}

/* ---- the end in the midst of a call ---- */

static atomic_bool in_a_call;

static void *reduce_alone(void *argument)
{
	static int buffer[COUNT];
	MPI_Comm *comm = argument;
	int rc;

	in_a_call = true;
	rc = MPI_Allreduce(MPI_IN_PLACE, buffer, COUNT, MPI_INT, MPI_SUM, *comm);

	printf("rank %d: the call ended with %s\n", world_rank, rc == MPI_SUCCESS ? "success" : "an error");
	return NULL;
}

static int end_in_a_call(void)
{
	static MPI_Comm comm;
	pthread_t thread;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	reduce(comm, 5);
	if (world_rank == 0 && pthread_create(&thread, NULL, reduce_alone, &comm))
		return 2;
	while (world_rank == 0 && !in_a_call)
		usleep(1000);
	usleep(200000);
	watch(40, "MPI_Finalize while a call is in progress");
	MPI_Finalize();
	if (world_rank == 0)
		pthread_join(thread, NULL);
	printf("rank %d: ended\n", world_rank);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "held"))
		return rail_sockets();
	begin(&argc, &argv, MPI_THREAD_MULTIPLE);
	watch(60, what);
	if (!strcmp(what, "signals")) {
		reduce(MPI_COMM_WORLD, 3);
		storm(SA_RESTART);
		storm(0);
	} else if (!strcmp(what, "fork")) {
		forks();
	} else if (!strcmp(what, "finalize")) {
		return end_in_a_call();
	} else {
		return 2;
	}
	return finish("life");
}
