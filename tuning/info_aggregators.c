/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rails/ina_ask.h"
#include "rails/nic.h"
#include "tuning/info.h"
#include "tuning/status.h"

#define LIMIT 1.0    /* s */

static void print_state(int status, double ms, char *text, size_t len)
{
	switch (status) {
	case NEZHA_OK:
		snprintf(text, len, "answers within %.1f ms", ms);
		break;
	case NEZHA_ERR_TIMEOUT:
		snprintf(text, len, "no answer within %g s", LIMIT);
		break;
	case NEZHA_ERR_PROTOCOL:
		snprintf(text, len, "what answers is no nezha-aggd of this version");
		break;
	default:
		snprintf(text, len, "%s", strerror(errno));
	}
}

static void show(const struct nezha_ina_address *at, json_t *list)
{
	char dotted[INET_ADDRSTRLEN], address[32], state[80];
	double ms = 0;
	int status = nezha_ina_ask(at, LIMIT, &ms);

	print_state(status, ms, state, sizeof state);
	snprintf(address, sizeof address, "%s:%u", inet_ntop(AF_INET, &at->address, dotted, sizeof dotted), at->port);
	if (list)
		json_array_append_new(list, json_pack("{s:s, s:b, s:s}", "address", address, "answers",
		                                      status == NEZHA_OK, "state", state));
	else
		printf("  %-22s %s\n", address, state);
}

void nezha_info_aggregators(const char *spec, json_t *json)
{
	struct nezha_ina_address aggregators[NEZHA_INA_MAX];
	json_t *list = json ? json_array() : NULL;
	uint32_t count = nezha_nic_aggregators(spec, aggregators);

	if (count && !json)
		printf("Aggregators of NEZHA_RAILS, asked from this host\n");
	for (uint32_t i = 0; i < count; i++)
		show(&aggregators[i], list);
	if (json)
		json_object_set_new(json, "aggregators", list);
}
