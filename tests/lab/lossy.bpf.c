/* SPDX-License-Identifier: BSD-3-Clause
 * Bad links for tc (runs of packets count as one, where the kernel has not cut these yet).  As an action:
 *
 *     tc qdisc add dev e0 clsact
 *     tc filter add dev e0 ingress bpf direct-action object-file lossy.bpf.o section loss1
 *
 * loss1, loss5    lose so many per cent of the UDP packets
 * lose            loses 2 % of the TCP packets
 * corrupt         changes a byte of the payload in 2 % of the TCP packets, without a new checksum
 *
 * As a classifier of an HTB qdisc 1: (lab spoil):
 *
 * reorder         sends 5 % of the TCP packets through the class 1:20, which is slower than the others' */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define PAYLOAD (ETH_HLEN + 52)          /* after the headers of IPv4 and TCP with time stamps */
#define SLOW_CLASS 0x10020               /* 1:20 */
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

static __always_inline int is_tcp(struct __sk_buff *packet)
{
	__u8 protocol = 0;

	bpf_skb_load_bytes(packet, PROTOCOL, &protocol, 1);
	return protocol == IPPROTO_TCP;
}

SEC("lose")
int lose_tcp(struct __sk_buff *packet)
{
	return is_tcp(packet) && bpf_get_prandom_u32() % 100 < 2 ? TC_ACT_SHOT : TC_ACT_OK;
}

SEC("corrupt")
int corrupt_tcp(struct __sk_buff *packet)
{
	__u32 at = PAYLOAD + bpf_get_prandom_u32() % 512;
	__u8 byte = 0;

	if (!is_tcp(packet) || bpf_get_prandom_u32() % 100 >= 2 || at >= packet->len)
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(packet, at, &byte, 1))
		return TC_ACT_OK;
	byte ^= 1 << bpf_get_prandom_u32() % 8;
	bpf_skb_store_bytes(packet, at, &byte, 1, 0);
	return TC_ACT_OK;
}

SEC("reorder")
int reorder_tcp(struct __sk_buff *packet)
{
	return is_tcp(packet) && bpf_get_prandom_u32() % 100 < 5 ? SLOW_CLASS : 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
