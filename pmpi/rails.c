/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/rails.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/context.h"
#include "pmpi/native.h"
#include "pmpi/progress.h"
#include "rails/fingerprint.h"
#include "rails/nic.h"
#include "rails/team.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define NICS_MAX 256
#define PORTS_MAX 64
#define ENTRIES_MAX 64           /* of NEZHA_RAILS that are checked one by one */

struct selection {
	size_t count;
	struct nezha_rail_nic rails[NEZHA_RAILS_MAX];
};

static struct selection in_use;  /* what the engine was made with, if there is one; nezha_context.lock */

static void log_notes(const char *notes)
{
	for (size_t len; notes && *notes; notes += len + (notes[len] == '\n')) {
		len = strcspn(notes, "\n");
		nezha_info("%.*s", (int)len, notes);
	}
}

static int choose(const char *spec, const struct nezha_nic_set *set, struct selection *out)
{
	char *notes = NULL, *error = NULL;
	int status = nezha_nic_select(spec, set, out->rails, &out->count, &notes, &error);

	if (status != NEZHA_OK && error)
		nezha_error("%s", error);
	if (status == NEZHA_OK)
		log_notes(notes);
	free(notes);
	free(error);
	return status;
}

static void forget(struct nezha_nic_set *set)
{
	free((void *)set->nics);
	free((void *)set->ports);
	*set = (struct nezha_nic_set){ .nics = NULL };
}

/* What this host has, as far as the spec needs it. */
static int list(const char *spec, struct nezha_nic_set *out)
{
	struct nezha_nic *nics = malloc(NICS_MAX * sizeof(*nics));
	struct nezha_verbs_port *ports = NULL;
	int status = NEZHA_ERR_NOMEM;

	*out = (struct nezha_nic_set){ .nics = nics };
	if (nics)
		status = nezha_nic_list(nics, NICS_MAX, &out->nic_count);
	if (status == NEZHA_OK && nezha_nic_names_verbs(spec)) {
		out->ports = ports = malloc(PORTS_MAX * sizeof(*ports));
		if (ports)
			out->port_count = nezha_verbs_ports(NEZHA_VERBS_SYSFS, ports, PORTS_MAX);
		else
			status = NEZHA_ERR_NOMEM;
	}
	if (status != NEZHA_OK)
		forget(out);
	return status;
}

/* Which entries of the list, first the one of bit 0, this host has. */
static uint64_t entries_here(const char *spec, const struct nezha_nic_set *set)
{
	uint64_t here = 0;

	for (int bit = 0; *spec && bit < ENTRIES_MAX; bit++) {
		size_t len = strcspn(spec, ",");
		char *entry = strndup(spec, len), *notes = NULL, *error = NULL;
		struct nezha_ina_address aggregators[NEZHA_INA_MAX];
		struct selection selection = { .count = 0 };
		char device[NEZHA_SHARP_DEVICE];

		/* An aggregator is nobody's device, SHARP's library says itself what it misses, and "auto" and "fixed" are no
		 * entries to be missed. */
		if (entry && (nezha_nic_aggregators(entry, aggregators) || nezha_nic_sharp(entry, device) ||
		              !strcmp(entry, "auto") || !strcmp(entry, "fixed")))
			here |= (uint64_t)1 << bit;
		else if (entry && nezha_nic_select(entry, set, selection.rails, &selection.count,
		                              &notes, &error) == NEZHA_OK && selection.count)
			here |= (uint64_t)1 << bit;
		free(notes);
		free(error);
		free(entry);
		spec += len + (spec[len] == ',');
	}
	return here;
}

/* Entries that nobody has; rank 0 tells. */
static int check_entries(const char *spec, uint64_t anywhere, bool *told)
{
	int status = NEZHA_OK;

	for (int bit = 0; *spec && bit < ENTRIES_MAX; bit++) {
		size_t len = strcspn(spec, ",");

		if (!(anywhere >> bit & 1)) {
			*told = nezha_context.job.rank == 0;
			if (*told)
				nezha_error("NEZHA_RAILS=%s: no host of the job has %.*s "
				            "(nezha-info lists what a host has)",
				            nezha_context.job.settings.rails, (int)len, spec);
			status = NEZHA_ERR_INVALID;
		}
		spec += len + (spec[len] == ',');
	}
	return status;
}

/* All find out alike whether one of them has found an error; the lowest one tells it. */
static int agree_on_error(const char *spec, const struct nezha_nic_set *set, bool *told)
{
	struct selection selection;
	char *notes = NULL, *error = NULL;
	int first, mine = INT_MAX;

	if (nezha_nic_select(spec, set, selection.rails, &selection.count, &notes, &error))
		mine = nezha_context.job.rank;
	nezha_native_allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	*told = first == nezha_context.job.rank;
	if (*told)
		nezha_error("%s", error ? error : "no memory for the choice of rails");
	free(notes);
	free(error);
	return first == INT_MAX ? NEZHA_OK : NEZHA_ERR_INVALID;
}

int nezha_rails_check(bool *told)
{
	const char *spec = nezha_context.job.settings.rails;
	struct nezha_nic_set set;
	uint64_t here, anywhere;
	int status;

	*told = false;
	/* What was not asked for is not looked at before it is needed. */
	if (!strcmp(spec, "auto"))
		return NEZHA_OK;
	list(spec, &set);
	status = agree_on_error(spec, &set, told);
	if (status == NEZHA_OK) {
		here = entries_here(spec, &set);
		nezha_native_allreduce(&here, &anywhere, 1, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
		status = check_entries(spec, anywhere, told);
	}
	forget(&set);
	return status;
}

/* This host's rails; none if they cannot be found out. */
static void select_rails(struct selection *out)
{
	const char *spec = nezha_context.job.settings.rails;
	struct nezha_nic_set set;

	out->count = 0;
	errno = ENOMEM;
	if (list(spec, &set) != NEZHA_OK) {
		nezha_lack_note(&nezha_context.lack, "the host's rails cannot be listed", errno);
		return;
	}
	if (choose(spec, &set, out) != NEZHA_OK)
		out->count = 0;
	forget(&set);
}

void nezha_rails_describe(struct nezha_fingerprint *out)
{
	struct selection selection;

	/* What was learnt or measured was so with the engine's rails: that one of them has no carrier just now changes nothing. */
	pthread_mutex_lock(&nezha_context.lock);
	if (nezha_context.engine)
		selection = in_use;
	else
		select_rails(&selection);
	pthread_mutex_unlock(&nezha_context.lock);
	nezha_fingerprint_host(selection.rails, selection.count, out);
}

/* The first rank of its node in the job. */
static bool is_leader(const struct nezha_job *job)
{
	for (int i = 0; i < job->rank; i++)
		if (job->node[i] == job->node[job->rank])
			return false;
	return true;
}

static int create(struct nezha_engine **out)
{
	struct nezha_engine_config config = {
		.process = nezha_context.job.rank,
		.key = nezha_context.job.key,
		.policy = nezha_context.job.settings.policy,
		.verbs = nezha_context.job.settings.verbs,
		.lack = &nezha_context.lack,
		.crc = nezha_context.job.settings.check & NEZHA_CHECK_CRC,
		.trace = nezha_context.trace,
		.progress = nezha_progress,
	};

	/* Without rails there is still an engine: the ranks then agree that they have none. */
	select_rails(&in_use);
	config.rails = in_use.rails;
	config.rail_count = in_use.count;
	config.sharp.wanted = nezha_nic_sharp(nezha_context.job.settings.rails, config.sharp.device);
	config.sharp.leader = is_leader(&nezha_context.job);
	config.reproducible = nezha_context.job.settings.reproducible;
	config.aggregator_count = nezha_nic_aggregators(nezha_context.job.settings.rails, config.aggregators);
	/* What is rounded on purpose differs from the library's result by more than another order makes. */
	for (uint32_t i = 0; nezha_context.job.settings.check & NEZHA_CHECK_NATIVE && i < config.aggregator_count; i++)
		config.aggregators[i].fixed = false;
	if (config.crc && config.aggregator_count && nezha_context.job.rank == 0)
		nezha_warn("NEZHA_CHECK=crc does not cover what goes through an aggregator: that has UDP's checksum");
	return nezha_engine_create(&config, out);
}

int nezha_rails_engine(struct nezha_engine **out)
{
	int status = NEZHA_OK;

	pthread_mutex_lock(&nezha_context.lock);
	if (!nezha_context.engine)
		status = create(&nezha_context.engine);
	*out = nezha_context.engine;
	pthread_mutex_unlock(&nezha_context.lock);
	return status;
}

void nezha_rails_end(void)
{
	struct nezha_engine *engine;

	/* Another thread may be reading the counters: once it lets go of the lock it sees none. */
	pthread_mutex_lock(&nezha_context.lock);
	engine = nezha_context.engine;
	nezha_context.engine = NULL;
	pthread_mutex_unlock(&nezha_context.lock);
	nezha_engine_destroy(engine);
}
