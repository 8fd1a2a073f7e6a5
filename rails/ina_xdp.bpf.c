/* SPDX-License-Identifier: BSD-3-Clause
 * The aggregation as an XDP program, for the ports of a switch that runs Linux: contributions are folded before the kernel's
 * network stack sees them, the last one of a chunk becomes the result and goes out of all ports to the session's group.
 *
 * The same slots as ina_slots.h, but that contributions are folded as they come: nezha_xdp_folds allows no operation that
 * could tell.  Packets of unknown sessions, of other types, and those that want an answer in words (NEZHA_INA_AGAIN) pass to
 * the daemon. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "rails/ina_xdp.h"
#include "rails/ina_xdp_fold.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, uint64_t);
	__type(value, struct nezha_xdp_session);
} sessions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);          /* the daemon says how many */
	__type(key, uint32_t);
	__type(value, struct nezha_xdp_version);
} versions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, NEZHA_XDP_PORTS);
	__type(key, uint32_t);
	__type(value, uint32_t);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct nezha_xdp_counts);
} counts SEC(".maps");

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct nezha_ina_header header;
} __attribute__((packed));

enum outcome { TAKEN, COMPLETE, KEPT, TWICE, OUTSIDE, DISAGREE };

/* ---- reading ---- */

/* A contribution in one plain packet.  What it says of itself is copied to *header. */
static __always_inline bool read_frame(const struct frame *frame, const void *end, struct nezha_ina_header *header)
{
	if ((const void *)(frame + 1) > end || frame->eth.h_proto != bpf_htons(ETH_P_IP) || frame->ip.version != 4 ||
	    frame->ip.ihl != 5 || frame->ip.protocol != IPPROTO_UDP || frame->ip.frag_off & bpf_htons(0x3fff))
		return false;
	__builtin_memcpy(header, &frame->header, sizeof *header);
	return header->magic == NEZHA_INA_MAGIC && header->version == NEZHA_INA_VERSION && header->kind == NEZHA_INA_DATA &&
	       !(header->flags & ~NEZHA_INA_AGAIN) && !header->zero && nezha_xdp_folds(header->type, header->op) &&
	       bpf_ntohs(frame->udp.len) == sizeof frame->udp + sizeof *header + header->length &&
	       bpf_ntohs(frame->ip.tot_len) == sizeof frame->ip + bpf_ntohs(frame->udp.len);
}

/* Whether it is from a member of the session, from its address, and of an allowed size. */
static __always_inline bool is_members(const struct nezha_xdp_session *session, const struct frame *frame, const void *end,
                                       const struct nezha_ina_header *header)
{
	uint32_t size = header->type >= NEZHA_INT64 ? 8 : 4, rank = header->rank;
	const struct nezha_xdp_member *member;

	if (rank >= session->ranks || rank >= NEZHA_INA_RANKS_MAX)
		return false;
	member = &session->members[rank];
	return frame->ip.saddr == member->address && frame->udp.source == member->port &&
	       frame->ip.daddr == session->address && frame->udp.dest == session->port && header->length &&
	       header->length <= session->chunk && header->length % size == 0 &&
	       (const void *)(frame + 1) + header->length <= end;
}

/* ---- folding ---- */

/* The rule of the two versions: a newer chunk may begin when the one that is here is complete.  That all ranks have its result
 * follows from what they may send.  The slot's chunk in between may be the daemon's. */
static __always_inline bool may_begin(const struct nezha_xdp_version *version, uint32_t seq)
{
	return !version->used || (version->complete && (int32_t)(seq - version->header.seq) > 0);
}

static __always_inline enum outcome take_locked(struct nezha_xdp_version *version, const struct nezha_ina_header *header,
                                                uint32_t ranks, const void *payload, const void *end)
{
	uint64_t bit = (uint64_t)1 << (header->rank & 63);
	uint32_t word = header->rank >> 6 & 3;

	if (version->header.token != header->token)
		return OUTSIDE;
	if (!version->used || version->header.seq != header->seq) {
		if (!may_begin(version, header->seq))
			return OUTSIDE;
		version->used = 1;
		version->complete = 0;
		version->count = 0;
		version->header = *header;
		version->in[0] = version->in[1] = version->in[2] = version->in[3] = 0;
	} else if (!nezha_xdp_agrees(&version->header, header)) {
		return DISAGREE;
	}
	if (version->complete)
		return KEPT;
	if (version->in[word] & bit)
		return TWICE;
	version->in[word] |= bit;
	if (version->count++ == 0)
		copy_chunk(version->sum, payload, end, header->length);
	else
		fold_chunk(header->type, header->op, version->sum, payload, end, header->length);
	version->complete = version->count >= ranks;
	return version->complete ? COMPLETE : TAKEN;
}

/* ---- answering ---- */

#define PART 480                         /* bytes: helpers of older kernels sum up 512 at most */
_Static_assert(NEZHA_XDP_CHUNK == 3 * PART, "three parts are a chunk");

static __always_inline uint32_t checksum_payload(const uint64_t *sum, uint32_t length)
{
	uint32_t checksum = 0;

	for (uint32_t at = 0; at < NEZHA_XDP_CHUNK; at += PART) {
		uint32_t part = length - at;

		if (at >= length)
			break;
		/* The verifier must see the bound, which the compiler would rather derive from others. */
		__asm__ volatile("" : "+r"(part));
		if (part > PART)
			part = PART;
		checksum = (uint32_t)bpf_csum_diff(0, 0, (void *)sum + at, part, checksum);
	}
	return checksum;
}

static __always_inline uint16_t folded(uint32_t checksum)
{
	checksum = (checksum & 0xffff) + (checksum >> 16);
	checksum = (checksum & 0xffff) + (checksum >> 16);
	return (uint16_t)~checksum;
}

struct ends {
	uint32_t from, to;
	uint16_t from_port, to_port;
};

static __always_inline uint16_t checksum_udp(const struct ends *ends, uint16_t bytes, const struct nezha_ina_header *header,
                                             uint32_t payload)
{
	struct {
		uint32_t from, to;
		uint16_t protocol, bytes;        /* of the pseudo header (RFC 768) */
		struct udphdr udp;
		struct nezha_ina_header header;
	} __attribute__((packed, aligned(4))) all = {
		ends->from, ends->to, bpf_htons(IPPROTO_UDP), bytes, { ends->from_port, ends->to_port, bytes, 0 }, *header,
	};
	uint16_t checksum = folded((uint32_t)bpf_csum_diff(0, 0, (void *)&all, sizeof all, payload));

	return checksum ? checksum : 0xffff;
}

static __always_inline void write_ip(const struct ends *ends, uint16_t bytes, uint8_t ttl, void *out)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .tot_len = bytes, .frag_off = bpf_htons(0x4000), .ttl = ttl,
	                    .protocol = IPPROTO_UDP, .saddr = ends->from, .daddr = ends->to };

	ip.check = folded((uint32_t)bpf_csum_diff(0, 0, (void *)&ip, sizeof ip, 0));
	__builtin_memcpy(out, &ip, sizeof ip);
}

static __always_inline void write_macs(struct ethhdr *eth, bool to_all, uint32_t group)
{
	uint8_t sender[ETH_ALEN], *to = eth->h_dest;

	__builtin_memcpy(sender, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	if (!to_all) {
		__builtin_memcpy(to, sender, ETH_ALEN);
		return;
	}
	group = bpf_ntohl(group);                /* RFC 1112, 6.4 */
	to[0] = 0x01, to[1] = 0x00, to[2] = 0x5e;
	to[3] = group >> 16 & 0x7f, to[4] = group >> 8 & 0xff, to[5] = group & 0xff;
}

/* Makes the packet, a contribution to the complete version, its result: for all, or for its sender. */
static __always_inline int answer(struct xdp_md *ctx, const struct nezha_xdp_session *session,
                                  const struct nezha_xdp_version *version, struct nezha_ina_header *header, bool to_all)
{
	uint32_t length = header->length, checksum;
	struct ends ends = { .from = session->address, .from_port = session->port };
	struct frame *frame;

	if (length - 1 >= NEZHA_XDP_CHUNK || bpf_xdp_store_bytes(ctx, sizeof *frame, (void *)version->sum, length))
		return XDP_DROP;
	frame = (void *)(long)ctx->data;
	if ((void *)(frame + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	checksum = checksum_payload(version->sum, length);
	ends.to = to_all ? session->group : frame->ip.saddr;
	ends.to_port = to_all ? session->group_port : frame->udp.source;
	header->kind = NEZHA_INA_RESULT;
	header->flags = 0;
	header->rank = 0;
	write_macs(&frame->eth, to_all, session->group);
	write_ip(&ends, frame->ip.tot_len, to_all ? 1 : 64, (void *)frame + sizeof frame->eth);
	frame->udp.source = ends.from_port;
	frame->udp.dest = ends.to_port;
	frame->udp.check = checksum_udp(&ends, frame->udp.len, header, checksum);
	__builtin_memcpy(&frame->header, header, sizeof *header);
	/* Not XDP_TX: veth leaves such a packet lying at a peer without a program until another one comes. */
	return to_all ? (int)bpf_redirect_map(&ports, 0, BPF_F_BROADCAST) : (int)bpf_redirect(ctx->ingress_ifindex, 0);
}

/* ---- the programs ---- */

static __always_inline void count(struct nezha_xdp_counts *n, enum outcome outcome, uint32_t length)
{
	switch (outcome) {
	case COMPLETE:
		n->results++;
		/* fall through */
	case TAKEN:
		n->packets++;
		n->bytes += length;
		break;
	case KEPT:
	case TWICE:
		n->again++;
		break;
	case OUTSIDE:
		n->outside++;
		break;
	case DISAGREE:
		break;
	}
}

SEC("xdp")
int nezha_aggregate(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct frame *frame = (void *)(long)ctx->data;
	struct nezha_ina_header header;
	struct nezha_xdp_session *session;
	struct nezha_xdp_version *version;
	struct nezha_xdp_counts *n;
	uint32_t at = 0;
	enum outcome outcome;

	if (!read_frame(frame, end, &header))
		return XDP_PASS;
	session = bpf_map_lookup_elem(&sessions, &header.token);
	if (!session || !is_members(session, frame, end, &header))
		return XDP_PASS;
	n = bpf_map_lookup_elem(&counts, &at);
	at = session->base + (header.seq & (2 * session->window - 1));
	version = bpf_map_lookup_elem(&versions, &at);
	if (!version || !n)
		return XDP_PASS;
	bpf_spin_lock(&version->lock);
	outcome = take_locked(version, &header, session->ranks, frame + 1, end);
	bpf_spin_unlock(&version->lock);
	count(n, outcome, header.length);
	if (outcome == COMPLETE || outcome == KEPT)
		return answer(ctx, session, version, &header, outcome == COMPLETE);
	/* The daemon says who is missing, or what is wrong. */
	if (outcome == DISAGREE || (outcome != OUTSIDE && header.flags & NEZHA_INA_AGAIN)) {
		n->passed++;
		return XDP_PASS;
	}
	return XDP_DROP;
}

/* Sends what the daemon gives it out of all ports: whether the ranks get that decides whether a session is the program's. */
SEC("xdp")
int nezha_beacon(struct xdp_md *ctx)
{
	(void)ctx;
	return (int)bpf_redirect_map(&ports, 0, BPF_F_BROADCAST);
}

char _license[] SEC("license") = "Dual BSD/GPL";
