/* SPDX-License-Identifier: BSD-3-Clause
 * The setting NEZHA_VERBS: how verbs rails make their connections. */
#ifndef NEZHA_TUNING_VERBS_OPTIONS_H
#define NEZHA_TUNING_VERBS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#define NEZHA_VERBS_ALLOWED \
	"a list of gid=0..255, mtu=256|512|1024|2048|4096, sl=0..15, retry=1..6, timeout=8..20 and memory=8..65536 (MiB)"
#define NEZHA_VERBS_TEXT 96     /* bytes that the text of any options fits into */

struct nezha_verbs_options {
	int gid;            /* index of the GID, -1: the one that verbs_port.h finds */
	uint32_t mtu;       /* bytes at most, 0: what both ports have */
	uint32_t sl;        /* service level of InfiniBand */
	uint32_t retry;     /* how often the HCA sends again before the path is lost; 7 would be "for ever" on some */
	uint32_t timeout;   /* it does so after 4.096 us * 2^timeout; HCAs may take up to four times that */
	uint32_t memory;    /* MiB that a process may have registered */
};

/* Reads "gid=3,mtu=4096" ("": defaults).  NEZHA_ERR_INVALID for anything else; *out is then as it was. */
int nezha_verbs_options_parse(const char *text, struct nezha_verbs_options *out);

/* Prints them so that _parse reads the same; len >= NEZHA_VERBS_TEXT. */
void nezha_verbs_options_print(const struct nezha_verbs_options *options, char *buf, size_t len);

#endif
