/* SPDX-License-Identifier: BSD-3-Clause
 * Whether an aggregator answers, for tools. */
#ifndef NEZHA_RAILS_INA_ASK_H
#define NEZHA_RAILS_INA_ASK_H

#include "rails/ina_address.h"

/* Connects and waits for the aggregator's first word, `limit` seconds for either; *ms is how long that took.
 * NEZHA_ERR_SYSTEM: no connection, errno says why; NEZHA_ERR_TIMEOUT; NEZHA_ERR_PROTOCOL: what answers is no aggregator of
 * this version. */
int nezha_ina_ask(const struct nezha_ina_address *at, double limit, double *ms);

#endif
