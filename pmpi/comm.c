/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/comm.h"

#include <stdlib.h>

#include "pmpi/context.h"
#include "pmpi/failure.h"
#include "pmpi/helper.h"
#include "pmpi/learned.h"
#include "pmpi/passes.h"
#include "pmpi/scale.h"
#include "rails/hierarchy.h"
#include "tuning/report.h"
#include "tuning/status.h"

#define RESERVE (256u << 10)    /* bytes: a struct nezha_comm, nezha_scale_find for 10,000 ranks, and room for the MPI library */

struct nezha_team *nezha_comm_ring(const struct nezha_comm *comm)
{
	return comm->hierarchy ? nezha_hierarchy_ring(comm->hierarchy) : comm->team;
}

static void close_rails(struct nezha_comm *comm)
{
	nezha_helper_destroy(comm->helper);
	comm->helper = NULL;
	nezha_hierarchy_destroy(comm->hierarchy);
	comm->hierarchy = NULL;
	nezha_team_destroy(comm->team);
	comm->team = NULL;
}

void nezha_comm_retire(struct nezha_comm *comm, enum nezha_reason reason)
{
	nezha_passes_forget();
	close_rails(comm);
	comm->reason = reason;
}

void nezha_comm_enable(struct nezha_comm *comm, bool enable)
{
	comm->refused = !enable;
	if (enable && comm->reason == NEZHA_REASON_DISABLED)
		comm->reason = NEZHA_REASON_RULE;
	else if (!enable && !comm->holds && nezha_comm_is_open(comm))
		nezha_comm_retire(comm, NEZHA_REASON_DISABLED);
}

static void destroy(struct nezha_comm *comm)
{
	pthread_mutex_lock(&nezha_context.lock);
	LIST_REMOVE(comm, entry);
	nezha_learned_take(comm);
	pthread_mutex_unlock(&nezha_context.lock);
	close_rails(comm);
	nezha_report_close(nezha_context.report, comm->report);
	free(comm->model);
	free(comm);
}

void nezha_comm_hold(struct nezha_comm *comm)
{
	comm->holds++;
}

void nezha_comm_release(struct nezha_comm *comm)
{
	if (--comm->holds || nezha_context.hands_off)
		return;
	if (comm->gone)
		destroy(comm);
	else if (comm->refused && nezha_comm_is_open(comm))
		nezha_comm_retire(comm, NEZHA_REASON_DISABLED);
}

/* The attribute's delete callback: the communicator is freed. */
static int delete_comm(MPI_Comm handle, int keyval, void *value, void *extra)
{
	struct nezha_comm *comm = value;

	(void)handle, (void)keyval, (void)extra;
	if (nezha_context.hands_off)
		return MPI_SUCCESS;
	nezha_passes_forget();
	comm->gone = true;
	if (!comm->holds)
		destroy(comm);
	return MPI_SUCCESS;
}

/* A rank that cannot even tell whether the others go to the rails would leave them waiting: for that much, memory is kept back. */
static void keep_reserve(void)
{
	pthread_mutex_lock(&nezha_context.lock);
	if (!nezha_context.reserve)
		nezha_context.reserve = malloc(RESERVE);
	pthread_mutex_unlock(&nezha_context.lock);
}

static bool use_reserve(void)
{
	void *reserve;

	pthread_mutex_lock(&nezha_context.lock);
	reserve = nezha_context.reserve;
	nezha_context.reserve = NULL;
	pthread_mutex_unlock(&nezha_context.lock);
	free(reserve);
	return reserve != NULL;
}

int nezha_comm_begin(void)
{
	keep_reserve();
	return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_comm, &nezha_context.keyval, NULL);
}

/* How far the communicator is one for the rails, as all of its ranks find alike.  *status: NEZHA_ERR_NOMEM if this one cannot. */
static int examine(MPI_Comm handle, struct nezha_comm *comm, int *status)
{
	int inter = 0, error;

	comm->reason = NEZHA_REASON_COMM;
	*status = NEZHA_OK;
	error = PMPI_Comm_test_inter(handle, &inter);
	if (error != MPI_SUCCESS || inter)
		return error;
	*status = nezha_scale_find(handle, &comm->scale);
	if (*status == NEZHA_OK && comm->scale.ranks >= 2)
		comm->reason = NEZHA_REASON_RULE;
	return MPI_SUCCESS;
}

static int make(MPI_Comm handle, struct nezha_comm **out)
{
	int status = NEZHA_ERR_NOMEM, error = MPI_SUCCESS;

	*out = calloc(1, sizeof(**out));
	if (*out)
		error = examine(handle, *out, &status);
	if (error == MPI_SUCCESS && status != NEZHA_ERR_NOMEM)
		return MPI_SUCCESS;
	free(*out);
	*out = NULL;
	if (error != MPI_SUCCESS)
		return error;
	return use_reserve() ? make(handle, out) : nezha_failure(NEZHA_ERR_NOMEM);
}

static void open_report(MPI_Comm handle, struct nezha_comm *comm)
{
	char name[MPI_MAX_OBJECT_NAME + 1] = "";
	int len;

	if (!nezha_context.report || PMPI_Comm_get_name(handle, name, &len) != MPI_SUCCESS)
		return;
	comm->report = nezha_report_open(nezha_context.report, name, comm->scale.ranks, comm->scale.nodes);
}

static int create(MPI_Comm handle, struct nezha_comm **out)
{
	struct nezha_comm *comm;
	int error;

	keep_reserve();
	error = make(handle, &comm);
	if (error != MPI_SUCCESS)
		return error;
	/* The list first: once the attribute is set, it is delete_comm that takes it out. */
	pthread_mutex_lock(&nezha_context.lock);
	LIST_INSERT_HEAD(&nezha_context.comms, comm, entry);
	pthread_mutex_unlock(&nezha_context.lock);
	error = PMPI_Comm_set_attr(handle, nezha_context.keyval, comm);
	keep_reserve();
	if (error == MPI_SUCCESS) {
		open_report(handle, comm);
		*out = comm;
		return MPI_SUCCESS;
	}
	pthread_mutex_lock(&nezha_context.lock);
	LIST_REMOVE(comm, entry);
	pthread_mutex_unlock(&nezha_context.lock);
	free(comm);
	return error;
}

int nezha_comm_find(MPI_Comm handle, struct nezha_comm **out)
{
	void *value = NULL;
	int found = 0;
	int error = PMPI_Comm_get_attr(handle, nezha_context.keyval, &value, &found);

	if (error != MPI_SUCCESS)
		return error;
	if (!found)
		return create(handle, out);
	*out = value;
	return MPI_SUCCESS;
}

void nezha_comm_give_up(struct nezha_comm *comm)
{
	if (comm->hierarchy)
		nezha_hierarchy_give_up(comm->hierarchy);
	else if (comm->team)
		nezha_team_give_up(comm->team);
}

void nezha_comm_give_up_all(void)
{
	struct nezha_comm *comm;

	pthread_mutex_lock(&nezha_context.lock);
	LIST_FOREACH(comm, &nezha_context.comms, entry)
		nezha_comm_give_up(comm);
	pthread_mutex_unlock(&nezha_context.lock);
}

void nezha_comm_end(void)
{
	struct nezha_comm *comm;

	use_reserve();
	pthread_mutex_lock(&nezha_context.lock);
	LIST_FOREACH(comm, &nezha_context.comms, entry) {
		nezha_comm_retire(comm, NEZHA_REASON_STATE);
		nezha_report_close(nezha_context.report, comm->report);
		comm->report = NULL;
	}
	pthread_mutex_unlock(&nezha_context.lock);
}
