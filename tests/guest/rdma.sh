# SPDX-License-Identifier: BSD-3-Clause
# rdma.sh - RDMA devices in the guest; sourced by bash scripts that run there.
#
#   rxe N      the device rxeN at 10.78.N.1, for all ranks: what they send one another stays in it
#   wire N     the devices rxeNa at 10.79.N.1 and rxeNb at 10.79.N.2, joined by the network devices wNa and wNb, so that
#              what befalls these (tc netem, link down) befalls the traffic of the RDMA devices
#   block N, unblock N
#              takes RoCE's packets, and only these, off the wire N, and lets them pass again: no link goes down
#
# They are all in the guest's first network namespace: rxe of Linux 6.1 knows no other.  Processes in other network
# namespaces can use them nevertheless.

# Has RoCE's packets of 4096 bytes.
rdma_mtu=4200

rxe() {
	ip link add "d$1" type dummy || return
	ip address add "10.78.$1.1/24" dev "d$1"
	ip link set "d$1" mtu $rdma_mtu up
	rdma link add "rxe$1" type rxe netdev "d$1"
}

# Both ends are local, so the kernel would never use the wire: local addresses are looked up last, except for what comes
# in from a wire, and each end has a route to the other one.
wire() {
	local a=w$1a b=w$1b subnet=10.79.$1 device
	ip rule | grep -q '^1000:.*lookup local' || { ip rule add pref 1000 lookup local && ip rule del pref 0; } || return
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	ip link add $a mtu $rdma_mtu type veth peer name $b mtu $rdma_mtu || return
	ip address add $subnet.1/24 dev $a && ip address add $subnet.2/24 dev $b || return
	for device in $a $b; do
		echo 0 >/proc/sys/net/ipv4/conf/$device/rp_filter
		echo 1 >/proc/sys/net/ipv4/conf/$device/accept_local
		echo 1 >/proc/sys/net/ipv4/conf/$device/arp_ignore
		ip rule add pref 100 iif $device lookup local
	done
	ip rule add pref 200 to $subnet.0/24 lookup $((500 + $1))
	wire_up "$1" || return
	rdma link add "rxe${1}a" type rxe netdev $a && rdma link add "rxe${1}b" type rxe netdev $b
}

# Routes and neighbours go with the link, so this brings it back after `wire_down`.
wire_up() {
	local a=w$1a b=w$1b subnet=10.79.$1
	ip link set $a up && ip link set $b up &&
		ip route replace $subnet.2 dev $a src $subnet.1 table $((500 + $1)) &&
		ip route replace $subnet.1 dev $b src $subnet.2 table $((500 + $1)) &&
		ip neighbour replace $subnet.2 lladdr "$(cat /sys/class/net/$b/address)" dev $a nud permanent &&
		ip neighbour replace $subnet.1 lladdr "$(cat /sys/class/net/$a/address)" dev $b nud permanent
}

wire_down() {
	ip link set "w$1a" down
}

# Where they arrive: of a packet that is dropped where it is sent rxe is told, and sends it again at once, for ever.
block() {
	local device
	for device in "w$1a" "w$1b"; do
		echo "qdisc add dev $device clsact"
		echo "filter add dev $device ingress protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff action drop"
	done | tc -batch -
}

unblock() {
	printf 'qdisc del dev %s clsact\n' "w$1a" "w$1b" | tc -batch -
}

# counter DEVICE NAME: e.g. sent_pkts, rcvd_pkts
counter() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}
