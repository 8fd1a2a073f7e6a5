/* SPDX-License-Identifier: BSD-3-Clause
 * Point to point and with a time limit, since a rank without the preload takes no part: a collective
 * would hang.  Only when all have answered does rank 0 broadcast. */
#include "pmpi/announce.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmpi/job_files.h"
#include "pmpi/missing.h"
#include "pmpi/patience.h"
#include "rails/host.h"
#include "tuning/log.h"
#include "tuning/status.h"

/* No program's messages come before the end of MPI_Init; the tag is for those who look. */
#define TAG 32743
#define MAGIC 0x4e455a48u

/* How much longer than rank 0 the others wait, so that it is rank 0 who tells what is wrong; the ranks
 * one after the other, so that one of them does where rank 0 itself has no Nezha. */
#define GRACE 2.0
#define STAGGER 0.1
#define STAGGERED_MAX 100

struct announcement {
	uint32_t magic, protocol;
	uint64_t host;
	char hostname[64];
};

struct verdict {
	uint32_t magic, protocol;
	uint64_t job;              /* bytes of the job that is broadcast next */
};

static struct announcement introduce(void)
{
	struct announcement self;

	memset(&self, 0, sizeof(self));
	self.magic = MAGIC;
	self.protocol = NEZHA_PROTOCOL;
	self.host = nezha_host_identity(self.hostname, sizeof(self.hostname));
	return self;
}

static int check_announcements(const struct announcement *all, int ranks)
{
	for (int i = 0; i < ranks; i++) {
		if (all[i].magic == MAGIC && all[i].protocol == NEZHA_PROTOCOL)
			continue;
		nezha_error("rank %d on host %.*s has another version of Nezha (protocol %u, here %u): "
		            "install the same one", i, (int)sizeof(all[i].hostname), all[i].hostname,
		            all[i].protocol, NEZHA_PROTOCOL);
		return NEZHA_ERR_PROTOCOL;
	}
	return NEZHA_OK;
}

/* The ranks whose requests are still open said nothing. */
static void tell_missing(const struct announcement *all, const MPI_Request *requests, int ranks, double limit)
{
	const char **hosts = calloc((size_t)ranks, sizeof(*hosts));

	if (!hosts) {
		nezha_error("not all ranks have Nezha; no memory to say which");
		return;
	}
	for (int i = 0; i < ranks; i++)
		if (i == 0 || requests[i - 1] == MPI_REQUEST_NULL)
			hosts[i] = all[i].hostname;
	nezha_missing_tell(hosts, ranks, limit);
	free(hosts);
}

/* Rank 0: everyone's announcement, or a message that tells who is missing. */
static int collect(const struct nezha_job *job, struct announcement *all, MPI_Request *requests)
{
	double limit = job->settings.open_timeout;

	for (int i = 1; i < job->ranks; i++)
		PMPI_Irecv(&all[i], sizeof(all[i]), MPI_BYTE, i, TAG, MPI_COMM_WORLD, &requests[i - 1]);
	if (nezha_patience_wait(requests, job->ranks - 1, limit) == NEZHA_OK)
		return check_announcements(all, job->ranks);
	tell_missing(all, requests, job->ranks, limit);
	return NEZHA_ERR_TIMEOUT;
}

static int answer(const struct nezha_job *job, MPI_Request *requests, size_t len)
{
	struct verdict verdict = { .magic = MAGIC, .protocol = NEZHA_PROTOCOL, .job = len };
	double limit = job->settings.open_timeout;

	for (int i = 1; i < job->ranks; i++)
		PMPI_Isend(&verdict, sizeof(verdict), MPI_BYTE, i, TAG, MPI_COMM_WORLD, &requests[i - 1]);
	if (nezha_patience_wait(requests, job->ranks - 1, limit) == NEZHA_OK)
		return NEZHA_OK;
	nezha_error("not all ranks took rank 0's answer within %g s; if the start is only slow, NEZHA_OPEN_TIMEOUT=SECONDS (0.1 to 3600) gives it time", limit);
	return NEZHA_ERR_TIMEOUT;
}

/* MPI counts are ints; a job of that size would be wrong anyway. */
static int broadcast(void *bytes, uint64_t len)
{
	if (len > INT32_MAX || PMPI_Bcast(bytes, (int)len, MPI_BYTE, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
		return NEZHA_ERR_SYSTEM;
	return NEZHA_OK;
}

static int place(struct nezha_job *job, const struct announcement *all)
{
	uint64_t *hosts = malloc((size_t)job->ranks * sizeof(*hosts));
	int status;

	if (!hosts)
		return NEZHA_ERR_NOMEM;
	for (int i = 0; i < job->ranks; i++)
		hosts[i] = all[i].host;
	status = nezha_job_place(job, hosts);
	free(hosts);
	return status;
}

static int lead(struct nezha_job *job)
{
	struct announcement *all = calloc((size_t)job->ranks, sizeof(*all));
	MPI_Request *requests = malloc((size_t)job->ranks * sizeof(*requests));
	void *bytes = NULL;
	size_t len = 0;
	int status = NEZHA_ERR_NOMEM;

	if (!all || !requests)
		goto done;
	status = nezha_job_read(job);
	if (status != NEZHA_OK)
		goto done;
	all[0] = introduce();
	status = collect(job, all, requests);
	if (status == NEZHA_OK)
		status = place(job, all);
	if (status == NEZHA_OK)
		status = nezha_job_pack(job, &bytes, &len);
	if (status == NEZHA_OK)
		status = nezha_job_fix_files(&job->settings);
	if (status == NEZHA_OK)
		status = answer(job, requests, len);
	if (status == NEZHA_OK)
		status = broadcast(bytes, len);
done:
	if (status == NEZHA_ERR_NOMEM)
		nezha_error("no memory for the start of %d ranks", job->ranks);
	free(bytes);
	free(requests);
	free(all);
	return status;
}

static int take_job(struct nezha_job *job, const struct verdict *verdict)
{
	void *bytes;
	int status;

	if (verdict->magic != MAGIC || verdict->protocol != NEZHA_PROTOCOL || verdict->job > INT32_MAX) {
		nezha_error("rank 0's answer makes no sense to this version of Nezha: install the same one");
		return NEZHA_ERR_PROTOCOL;
	}
	bytes = malloc(verdict->job);
	if (!bytes)
		return NEZHA_ERR_NOMEM;
	status = broadcast(bytes, verdict->job);
	if (status == NEZHA_OK)
		status = nezha_job_unpack(job, bytes, verdict->job);
	if (status != NEZHA_OK)
		nezha_error("what rank 0 tells about the job makes no sense to this version of Nezha");
	free(bytes);
	return status;
}

static int follow(struct nezha_job *job)
{
	struct announcement self = introduce();
	struct verdict verdict = { 0 };
	MPI_Request requests[2];
	double limit;
	int status = nezha_job_guess(job);

	if (status != NEZHA_OK)
		return status;
	limit = job->settings.open_timeout + GRACE +
	        STAGGER * (job->rank < STAGGERED_MAX ? job->rank : STAGGERED_MAX);
	PMPI_Irecv(&verdict, sizeof(verdict), MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[0]);
	PMPI_Isend(&self, sizeof(self), MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[1]);
	status = nezha_patience_wait(requests, 2, limit);
	if (status != NEZHA_OK) {
		nezha_missing_tell_leader(job->rank, job->ranks, self.hostname, limit);
		return status;
	}
	return take_job(job, &verdict);
}

int nezha_announce(struct nezha_job *job)
{
	MPI_Comm parent;

	PMPI_Comm_rank(MPI_COMM_WORLD, &job->rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &job->ranks);
	job->spawned = PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL;
	return job->rank == 0 ? lead(job) : follow(job);
}
