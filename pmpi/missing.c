/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/missing.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/pmi.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define TOLD_MAX 6
#define ADVICE "LD_PRELOAD must reach every rank (Open MPI: mpirun -x LD_PRELOAD) and " \
	"libnezha_pmpi.so exist on every host; if the start is only slow, NEZHA_OPEN_TIMEOUT=SECONDS (0.1 to 3600) gives it time"

/* What is needed of PMIx's interface (pmix_common.h), whose library Open MPI has loaded already. */
#define PMIX_NSPACE_BYTES 256
#define PMIX_STRING_TYPE 3

struct pmix_process {
	char nspace[PMIX_NSPACE_BYTES];
	uint32_t rank;
};

struct pmix_value {
	uint16_t type;
	union {
		char *string;
		uint64_t widest[4];
	} data;
};

typedef int pmix_get_fn(const struct pmix_process *process, const char *key, const void *info, size_t infos,
                        struct pmix_value **value);

/* The host that Open MPI's launcher put the rank on.  The value's memory is left behind: the process ends. */
static const char *ask_pmix(int rank)
{
	const char *nspace = getenv("PMIX_NAMESPACE");
	struct pmix_process process = { .rank = (uint32_t)rank };
	struct pmix_value *value = NULL;
	void *library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
	pmix_get_fn *get = library ? (pmix_get_fn *)dlsym(library, "PMIx_Get") : NULL;

	if (!get || !nspace || strlen(nspace) >= sizeof(process.nspace))
		return NULL;
	strcpy(process.nspace, nspace);
	if (get(&process, "pmix.hname", NULL, 0, &value) || !value || value->type != PMIX_STRING_TYPE)
		return NULL;
	return value->data.string;
}

/* What is known of where the ranks are. */
struct map {
	int ranks;
	const char *const *hosts;  /* NULL for the ranks that did not tell */
	int *node;                 /* places in the launcher's list of hosts; NULL: not told */
};

static void open_map(struct map *map)
{
	map->node = malloc((size_t)map->ranks * sizeof(*map->node));
	if (map->node && nezha_pmi_nodes(map->node, map->ranks) != NEZHA_OK) {
		free(map->node);
		map->node = NULL;
	}
}

/* By the launcher's word, or that of a rank on the same node. */
static const char *find_host(const struct map *map, int rank)
{
	const char *host = ask_pmix(rank);

	for (int i = 0; map->node && i < map->ranks && !host; i++)
		if (map->node[i] == map->node[rank])
			host = map->hosts[i];
	return host;
}

/* "rank 3 on host node3" */
static void describe(const struct map *map, int rank, char *out, size_t len)
{
	static const char unknown[] = "on a host that the launcher does not tell";
	const char *host = find_host(map, rank);

	if (host)
		snprintf(out, len, "rank %d on host %s", rank, host);
	else if (map->node)
		snprintf(out, len, "rank %d (%s, number %d of its list)", rank, unknown, map->node[rank] + 1);
	else
		snprintf(out, len, "rank %d (%s)", rank, unknown);
}

void nezha_missing_tell(const char *const *hosts, int ranks, double seconds)
{
	struct map map = { .ranks = ranks, .hosts = hosts };
	char list[800] = "", one[160], more[64] = "";
	int missing = 0;

	open_map(&map);
	for (int i = 1; i < ranks; i++) {
		if (hosts[i] || ++missing > TOLD_MAX)
			continue;
		describe(&map, i, one, sizeof(one));
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", *list ? ", " : "", one);
	}
	if (missing > TOLD_MAX)
		snprintf(more, sizeof(more), " and %d more", missing - TOLD_MAX);
	nezha_error("no Nezha on %s%s: no word within %g s. " ADVICE, list, more, seconds);
	free(map.node);
}

void nezha_missing_tell_leader(int rank, int ranks, const char *host, double seconds)
{
	const char **hosts = calloc((size_t)ranks, sizeof(*hosts));
	struct map map = { .ranks = ranks, .hosts = hosts };
	char one[160];

	if (hosts) {
		hosts[rank] = host;
		open_map(&map);
	}
	describe(&map, 0, one, sizeof(one));
	nezha_error("no Nezha on %s: no word within %g s. " ADVICE, one, seconds);
	free(map.node);
	free(hosts);
}
