/* SPDX-License-Identifier: BSD-3-Clause
 * Which sessions the XDP program serves beside the daemon, and what the daemon does with packets that it leaves.
 *
 * A session is the program's, too, if all its ranks have heard beacons that went the way of the program's results, and if
 * no rank is known whose packets reach the daemon past the program: by a device on which it is not, or in fragments. */
#include <netinet/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails/aggd_shun.h"
#include "rails/aggd_state.h"
#include "rails/aggd_xdp.h"
#include "rails/clock.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define BEACONS (350 * NEZHA_MSEC) /* so long the program's are tried, and then others: ranks listen for 600 ms */
#define MEMORY_PART 8            /* of the daemon's memory, for the program's chunks */

struct aggd_offload {
	struct aggd_xdp *xdp;
	struct aggd_shun shun;                   /* ranks there are not seen by the program */
};

static int attach_all(struct aggd_xdp *xdp, const char *devices)
{
	int rc = NEZHA_OK;

	while (rc == NEZHA_OK && *devices) {
		size_t length = strcspn(devices, ",");
		char device[AGGD_DEVICE_BYTES];

		snprintf(device, sizeof device, "%.*s", (int)length, devices);
		rc = aggd_xdp_attach(xdp, device);
		devices += length + (devices[length] == ',');
	}
	return rc;
}

int aggd_offload_create(struct nezha_aggd *aggd)
{
	struct aggd_offload *offload = calloc(1, sizeof *offload);
	uint64_t memory = aggd->config.memory / MEMORY_PART;
	int rc;

	if (!offload)
		return NEZHA_ERR_NOMEM;
	rc = aggd_xdp_create(memory, &offload->xdp);
	if (rc == NEZHA_OK)
		rc = attach_all(offload->xdp, aggd->config.devices);
	if (rc != NEZHA_OK) {
		aggd_offload_destroy(offload);
		return rc;
	}
	aggd->budget.limit -= memory;
	aggd->offload = offload;
	nezha_info("the XDP program is on %s", aggd->config.devices);
	return NEZHA_OK;
}

void aggd_offload_destroy(struct aggd_offload *offload)
{
	if (offload)
		aggd_xdp_destroy(offload->xdp);
	free(offload);
}

/* ---- sessions ---- */

static void release(struct nezha_aggd *aggd, struct aggd_session *session)
{
	struct nezha_xdp_session *kernel = session->kernel;

	if (!kernel)
		return;
	aggd_xdp_release(aggd->offload->xdp, kernel->window, kernel->base);
	free(kernel);
	session->kernel = NULL;
}

void aggd_offload_reserve(struct nezha_aggd *aggd, struct aggd_session *session)
{
	struct nezha_xdp_session *kernel;

	if (!aggd->offload || !session->group.sin_port)
		return;
	for (int r = 0; r < session->ranks; r++)
		if (aggd_shun_has(&aggd->offload->shun, session->members[r].address.sin_addr, nezha_now()))
			return;
	kernel = calloc(1, sizeof *kernel);
	if (!kernel)
		return;
	kernel->window = session->window;
	if (!aggd_xdp_reserve(aggd->offload->xdp, kernel->window, &kernel->base)) {
		free(kernel);
		return;
	}
	kernel->ranks = (uint32_t)session->ranks;
	kernel->chunk = session->chunk;
	kernel->address = aggd->config.address.s_addr;
	kernel->group = session->group.sin_addr.s_addr;
	kernel->port = htons(nezha_aggd_port(aggd));
	kernel->group_port = session->group.sin_port;
	for (int r = 0; r < session->ranks; r++)
		kernel->members[r] = (struct nezha_xdp_member){ .address = session->members[r].address.sin_addr.s_addr,
		                                                .port = session->members[r].address.sin_port };
	session->kernel = kernel;
}

void aggd_offload_settle(struct nezha_aggd *aggd, struct aggd_session *session)
{
	if (session->kernel && session->grouped)
		session->offloaded = aggd_xdp_open(aggd->offload->xdp, session->token, session->kernel);
	/* What they have heard was the program's: whether they hear us nobody knows. */
	if (session->kernel && !session->offloaded)
		session->grouped = false;
	if (!session->offloaded)
		release(aggd, session);
}

void aggd_offload_forget(struct nezha_aggd *aggd, struct aggd_session *session)
{
	if (session->offloaded)
		aggd_xdp_close(aggd->offload->xdp, session->token);
	session->offloaded = false;
	release(aggd, session);
}

/* ---- beacons ---- */

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct udphdr udp;
	struct nezha_ina_header header;
} __attribute__((packed));

static uint16_t checksum_ip(const struct iphdr *ip)
{
	uint16_t words[sizeof *ip / 2];
	uint32_t sum = 0;

	memcpy(words, ip, sizeof *ip);
	for (size_t i = 0; i < sizeof *ip / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

/* The sender's MAC is a made-up one (locally administered); UDP goes without a checksum. */
static void make_beacon(const struct nezha_xdp_session *kernel, uint64_t token, struct frame *out)
{
	uint32_t group = ntohl(kernel->group), from = ntohl(kernel->address);
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 1, .protocol = IPPROTO_UDP, .saddr = kernel->address,
	                    .daddr = kernel->group, .tot_len = htons(sizeof *out - sizeof out->eth) };

	ip.check = checksum_ip(&ip);
	*out = (struct frame){
		.eth = { .ether_type = htons(ETHERTYPE_IP),
		         .ether_dhost = { 0x01, 0x00, 0x5e, group >> 16 & 0x7f, group >> 8 & 0xff, group & 0xff },
		         .ether_shost = { 0x02, 0x4e, from >> 24, from >> 16 & 0xff, from >> 8 & 0xff, from & 0xff } },
		.ip = ip,
		.udp = { .source = kernel->port, .dest = kernel->group_port,
		         .len = htons(sizeof out->udp + sizeof out->header) },
		.header = { .magic = NEZHA_INA_MAGIC, .version = NEZHA_INA_VERSION, .kind = NEZHA_INA_BEACON,
		            .token = token },
	};
}

bool aggd_offload_beacon(struct nezha_aggd *aggd, struct aggd_session *session)
{
	struct frame frame;

	if (!session->kernel)
		return false;
	make_beacon(session->kernel, session->token, &frame);
	if (!session->beacons)
		session->beacons = nezha_now();
	if (nezha_now() - session->beacons < BEACONS && aggd_xdp_send(aggd->offload->xdp, &frame, sizeof frame))
		return true;
	/* Who has heard a beacon of the program has not shown that others come, too. */
	session->unlike = session->answered > 0;
	nezha_info("a session of %d ranks goes without XDP: not all of them hear it", session->ranks);
	release(aggd, session);
	return false;
}

/* ---- packets that the program has left to us, or has not seen ---- */

static void came_past(struct nezha_aggd *aggd, struct aggd_session *session, int rank)
{
	char why[NEZHA_INA_TEXT_BYTES];

	if (!aggd_shun_add(&aggd->offload->shun, session->members[rank].address.sin_addr, nezha_now()))
		nezha_warn("packets of over %d addresses came past the XDP program: nobody goes by it for now", AGGD_SHUN_MOST);
	snprintf(why, sizeof why, "packets of rank %d come past the XDP program", rank);
	aggd_session_end(aggd, session, why);
}

static void missing(const struct nezha_xdp_version *version, int ranks, struct nezha_ina_missing *out)
{
	memset(out, 0, sizeof *out);
	for (int r = 0; r < ranks; r++)
		if (!(version->in[r / 64] >> r % 64 & 1))
			out->bits[r / 8] |= (uint8_t)(1u << r % 8);
}

/* The program has folded what it leaves to us, unless the ranks disagree; so anything else has come past it. */
void aggd_offload_passed(struct nezha_aggd *aggd, struct aggd_session *session, const struct nezha_ina_header *header)
{
	struct nezha_xdp_version version;
	struct nezha_ina_missing who;
	char why[64];

	if (header->length > session->chunk) {
		aggd->stats.outside++;
		return;
	}
	if (!aggd_xdp_look(aggd->offload->xdp, session->kernel, header->seq, &version)) {
		aggd_session_end(aggd, session, "the XDP program's memory cannot be read");
		return;
	}
	if (version.used && (int32_t)(header->seq - version.header.seq) < 0)
		return;                  /* it has moved on meanwhile */
	if (version.used && version.header.seq == header->seq && !nezha_xdp_agrees(&version.header, header)) {
		snprintf(why, sizeof why, "the ranks have different ideas of call %u", header->call);
		aggd_session_end(aggd, session, why);
		return;
	}
	missing(&version, session->ranks, &who);
	if (!version.used || version.header.seq != header->seq || !(header->flags & NEZHA_INA_AGAIN) ||
	    nezha_ina_missing_has(&who, header->rank))
		came_past(aggd, session, header->rank);
	else if (!version.complete)
		aggd_answer_alive(session, header, &who);
}

void aggd_offload_count(const struct nezha_aggd *aggd, struct nezha_aggd_stats *stats)
{
	struct nezha_xdp_counts n;

	if (!aggd->offload)
		return;
	aggd_xdp_count(aggd->offload->xdp, &n);
	stats->packets += stats->xdp_packets = n.packets;
	stats->results += stats->xdp_results = n.results;
	stats->again += stats->xdp_again = n.again;
	stats->bytes += n.bytes;
	stats->outside += n.outside;
	stats->xdp_passed = n.passed;
}
