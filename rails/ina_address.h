/* SPDX-License-Identifier: BSD-3-Clause
 * Where an aggregator is, as users write it: ADDRESS[:PORT]. */
#ifndef NEZHA_RAILS_INA_ADDRESS_H
#define NEZHA_RAILS_INA_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define NEZHA_INA_MAX 4            /* of one job */

struct nezha_ina_address {
	struct in_addr address;    /* network byte order */
	uint16_t port;             /* host byte order; NEZHA_INA_PORT if none was given */
	bool fixed;                /* floats go there as fixed point (fixed.h): not of the text */
};

/* NEZHA_OK, or NEZHA_ERR_INVALID with a static text in *wrong: what is allowed, to stand behind "\"TEXT\" ". */
int nezha_ina_address_parse(const char *text, struct nezha_ina_address *out, const char **wrong);

/* A control connection, at both of its ends: it does not wait to send, and a host that vanishes without a word is noticed after
 * 5 + 3 * 3 s. */
void nezha_ina_keep_alive(int fd);

#endif
