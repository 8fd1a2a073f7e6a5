# SPDX-License-Identifier: BSD-3-Clause
# net.sh - names, addresses and shaping of the lab's network; sourced by what runs inside a lab.
#
# The switch is the lab's outer network namespace: a bridge brR for each rail R and brm for the control
# network, with one port swRnK (swmnK) for each node K.  The other end of a port is eR (em) in the node. Needs
# LAB_STATE, LAB_NODES, LAB_RAILS, LAB_BURST, LAB_CC and LAB_MTU (from $LAB_STATE/conf).

say() {
	echo "lab: $*" >&2
}

die() {
	say "$@"
	exit 1
}

rail_address() { # RAIL NODE
	echo "10.77.$1.$2"
}

subnets() {
	local r list=
	for ((r = 0; r < LAB_RAILS; r++)); do
		list+=,$1$(rail_address "$r" 0)/24
	done
	echo "${list#,}"
}

# The pid (in the lab) of the process that holds the namespaces of NODE, which is a number or mgmt.
node_pid() {
	local pid
	read -r pid <"$LAB_STATE/node.$1" || die "no pid for node $1"
	[ -d "$LAB_STATE/proc/$pid/ns" ] ||
		die "node $1 is gone: something ended its keeper; raise the lab anew"
	echo "$pid"
}

on_node() { # NODE COMMAND...: in its network only
	local pid
	pid=$(node_pid "$1") || exit 1
	shift
	nsenter --net="$LAB_STATE/proc/$pid/ns/net" -- "$@"
}

bits() { # RATE: in bit/s
	local number=${1%[kmg]bit}
	case $1 in
	*kbit) echo $((number * 1000)) ;;
	*mbit) echo $((number * 1000000)) ;;
	*gbit) echo $((number * 1000000000)) ;;
	*) echo 0 ;;
	esac
}

# shape DEVICE OLD NEW: prints the tc commands that change the egress rate of DEVICE from OLD to NEW (0:
# unshaped, the state of a new device), without a loss of what is queued.  The queue is drop-tail and holds 8
# ms at line rate, 256 KiB at least, like that of a shallow switch.
shape() {
	local device=$1 old=$2 new=$3 limit verb=change
	if [ "$new" = 0 ]; then
		[ "$old" = 0 ] || echo "qdisc del dev $device root"
		return
	fi
	limit=$(($(bits "$new") / 1000))
	[ $limit -ge 262144 ] || limit=262144
	if [ "$old" = 0 ]; then
		echo "qdisc add dev $device root handle 1: htb default 10"
		verb=add
	fi
	echo "class $verb dev $device parent 1: classid 1:10 htb rate $new ceil $new" \
		"burst $LAB_BURST cburst $LAB_BURST quantum 60000"
	echo "qdisc $verb dev $device parent 1:10 handle 10: bfifo limit $limit"
}

# A packet that exceeds the burst would pass whole: senders must not build larger ones.
gso_size() { # RATE
	if [ "$1" != 0 ] && [ "$LAB_BURST" -lt 65536 ]; then
		echo "$LAB_BURST"
	else
		echo 65536
	fi
}

# set_rate NODE RAIL NEW: both ends of the rail's link, so that what the node sends and what it gets is
# bounded.
set_rate() {
	local node=$1 rail=$2 new=$3 old size file=$LAB_STATE/rate.$1.$2
	read -r old <"$file" || die "no rate for rail $rail of node $node"
	size=$(gso_size "$new")
	ip link set dev "sw${rail}n$node" gso_max_size "$size" &&
		on_node "$node" ip link set dev "e$rail" gso_max_size "$size" &&
		shape "sw${rail}n$node" "$old" "$new" | tc -batch - &&
		shape "e$rail" "$old" "$new" | on_node "$node" tc -batch - &&
		echo "$new" >"$file"
}

# The congestion control is chosen by route: a network namespace may not choose one as its default that the
# host does not allow to all, while a route may name any that the kernel has, and nothing of the host changes.
route_lines() { # NODE RAIL: an ip batch
	echo "route replace $(rail_address "$2" 0)/24 dev e$2 proto kernel scope link" \
		"src $(rail_address "$2" "$1") congctl $LAB_CC"
}

# in_order DEVICE RAIL: of each flow that DEVICE gets one processor passes on all, whichever sent it, so that no packet overtakes
# another.  A switch keeps them in order, while two processors that pass on what comes over a veth device do not: TCP takes it for
# losses.  Which one, the kernel chooses by flow; where there are rails enough, a rail's are one processor's: with few flows that is
# more even.  Needs the device's network in /sys; an ordinary user may not do it.
in_order() {
	local processors mask
	processors=$(getconf _NPROCESSORS_ONLN)
	[ "$processors" -le 32 ] || processors=32 # a mask of more has another form
	mask=$(((1 << processors) - 1))
	[ "$LAB_RAILS" -lt "$processors" ] || mask=$((1 << $2 % processors))
	printf '%x' $mask 2>/dev/null >"/sys/class/net/$1/queues/rx-0/rps_cpus"
}
