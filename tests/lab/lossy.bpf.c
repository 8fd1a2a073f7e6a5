/* SPDX-License-Identifier: BSD-3-Clause
 * A bad link for tc: loses UDP packets (runs of them, where the kernel has not cut these yet); the section tells how many.
 *
 *     tc qdisc add dev e0 clsact
 *     tc filter add dev e0 ingress bpf direct-action object-file lossy.bpf.o section loss1 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define PROTOCOL (ETH_HLEN + 9)          /* where an IPv4 header has it; ARP and IPv6 have other numbers there */

static __always_inline int lose(struct __sk_buff *packet, __u32 percent)
{
	__u8 protocol = 0;

	bpf_skb_load_bytes(packet, PROTOCOL, &protocol, 1);
	return protocol == IPPROTO_UDP && bpf_get_prandom_u32() % 100 < percent ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("loss1")
int lose_1(struct __sk_buff *packet)
{
	return lose(packet, 1);
}

SEC("loss5")
int lose_5(struct __sk_buff *packet)
{
	return lose(packet, 5);
}

char _license[] SEC("license") = "Dual BSD/GPL";
