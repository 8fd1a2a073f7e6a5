/* SPDX-License-Identifier: BSD-3-Clause
 * A rank dies in a call or between two, and the others, whose error handler returns, get an error each instead of waiting for
 * ever: also those that are no neighbours of the dead one.  The survivors stay, and say so, until somebody ends the job: no one's end
 * is another one's cause.
 *   death kill|exit|abort in|between RANK [BYTES]      the launcher must let the others live
 * With RANK -1 nobody dies: somebody else cuts the rails when rank 0 says that it calls. */
#include <sys/time.h>

#include "tests/mpi/common.h"

#define CALLS_BEFORE 5
#define LIMIT 40          /* seconds: without an error in this time it hangs */

static const char *how;

static double now(void)
{
	struct timeval t;

	gettimeofday(&t, NULL);
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void die(int signal)
{
	(void)signal;
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "abort"))
		abort();
	_exit(1);
}

static void die_soon(bool in)
{
	const struct itimerval soon = { .it_value.tv_usec = 8000 };

	if (!in) {
		if (!strcmp(how, "exit"))
			exit(1);
		die(0);
	}
	signal(SIGALRM, die);
	setitimer(ITIMER_REAL, &soon, NULL);
}

/* Nobody dies while another one is still within the last call before: one's own part of it being done says nothing of the others'. */
static void wait_for_all(int victim)
{
	const char done = 1;
	char *all = world_rank == victim ? grab((size_t)world_size) : NULL;

	MPI_Gather(&done, 1, MPI_CHAR, all, 1, MPI_CHAR, victim, MPI_COMM_WORLD);
	free(all);
}

int main(int argc, char **argv)
{
	long bytes, victim;
	double begin_at;
	int *buffer, class = MPI_SUCCESS, rc = MPI_SUCCESS;
	char text[MPI_MAX_ERROR_STRING] = "";
	MPI_Comm comm;
	bool in;

	if (argc < 4)
		return 2;
	how = argv[1];
	in = !strcmp(argv[2], "in");
	victim = number(argv[3], "RANK", -1, 1000);
	bytes = argc > 4 ? number(argv[4], "BYTES", 4, 1 << 30) : 4 << 20;
	begin(&argc, &argv, MPI_THREAD_SINGLE);
	buffer = grab((size_t)bytes);
	memset(buffer, 0, (size_t)bytes);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	watch(60, "the calls before the death");
	for (int i = 0; i < CALLS_BEFORE; i++)
		if (MPI_Allreduce(MPI_IN_PLACE, buffer, (int)(bytes / 4), MPI_INT, MPI_BOR, comm) != MPI_SUCCESS)
			fail("a call before the death");
	watch(LIMIT, "the calls after the death");
	if (victim < 0 && world_rank == 0)
		printf("calls\n");
	if (victim >= 0)
		wait_for_all((int)victim);
	if (world_rank == victim)
		die_soon(in);
	begin_at = now();
	while (rc == MPI_SUCCESS)
		rc = MPI_Allreduce(MPI_IN_PLACE, buffer, (int)(bytes / 4), MPI_INT, MPI_BOR, comm);
	watch(LIMIT, "the end");
	MPI_Error_string(rc, text, &(int){ 0 });
	printf("rank %d: error after %.2f s: %s\n", world_rank, now() - begin_at, text);
	MPI_Error_class(rc, &class);
	MPI_Error_string(class, text, &(int){ 0 });
	if (!strstr(text, "Nezha failed"))
		fail("the error's class is \"%s\"", text);
	rc = MPI_Allreduce(MPI_IN_PLACE, buffer, (int)(bytes / 4), MPI_INT, MPI_BOR, comm);
	if (rc == MPI_SUCCESS)
		printf("rank %d: FAILED: the next call went well\n", world_rank);
	printf("rank %d: stays\n", world_rank);
	watch(2 * LIMIT, "the end of the job");
	for (;;)
		pause();
}
