# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the tests in the guest share; sourced by tests/guest/*.test.
#
# Outside of a guest a test is run in one: `boot.test` runs all of `make check` in one boot and leaves their results, which
# the tests then only tell; a test that finds none boots a guest for itself.  What follows the sourcing runs in the
# guest.  There tests/mpi/lib.sh's functions (nezha, passed, on_rails, ...) and rdma.sh's devices are at hand;
# jobs have `ranks` ranks, each a node to Nezha (see seat), and MPI's own traffic is in shared memory.  With `guests=2` set
# before the sourcing there are two guests, with a rank on each.  One guest gets the devices rxe0 and rxe1,
# the wires 0 and 1, and t0 for TCP.
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
guest=$here
results=${abs_top_builddir:-$(dirname "$(dirname "$here")")}/tests/guest/results
guests=${guests:-1}

tell_result() { # NAME: of the boot for all
	local status
	[ -e "$results/$1.status" ] || return
	status=$(cat "$results/$1.status")
	cat "$results/$1.log"
	rm -f "$results/$1.status" "$results/$1.log"
	exit "$status"
}

if [ ! -e /run/guest/command ]; then
	tell_result "$(basename "$0" .test)"
	two=()
	[ "$guests" = 1 ] || two=(-2)
	exec "$here/guest" "${two[@]}" -t "${GUEST_SECONDS:-240}" bash "$(readlink -f "$0")"
fi

. "$(dirname "$guest")/mpi/lib.sh"
. "$guest/rdma.sh"
ranks=2
seat_devices=''
patience=60     # the guest's processors are interpreted, and may get a part of the host's only
# The default policy gives a rail nothing that a busy host makes look slow: where each must carry bytes, they take turns.
each_rail=(-e NEZHA_POLICY=slice)
make_work
if [ "$guests" = 1 ] && [ ! -e /sys/class/infiniband/rxe0 ]; then
	rxe 0 && rxe 1 && wire 0 && wire 1 && ip link add t0 type dummy && ip address add 10.77.0.1/24 dev t0 &&
		ip link set t0 up || { echo "FAILED: the devices cannot be made" && exit 1; }
fi

# Skips where Nezha was built without verbs.
need_verbs() {
	grep -q '"HAVE_VERBS_TRUE"\]=""' "$build/config.status" || skip "Nezha is built without verbs (libibverbs-dev is missing?)"
}

# mark_counters DEVICE...: from now on packets_since DEVICE counts what it sent
declare -A marked
mark_counters() {
	local device
	for device; do
		marked[$device]=$(counter "$device" sent_pkts)
	done
}
packets_since() {
	echo $(($(counter "$1" sent_pkts) - ${marked[$1]}))
}

# What MPI needs to start a job; the first lines of its command.
launcher() { # MPI RANKS
	case $1$guests in
	openmpi1)
		echo env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1 \
			OMPI_MCA_btl=vader,self OMPI_MCA_btl_base_warn_component_unused=0 \
			OMPI_MCA_btl_vader_single_copy_mechanism=none \
			OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none \
			OMPI_MCA_mpi_yield_when_idle=1 "${OPENMPI_RUN:-mpirun.openmpi}" -np "$2"
		;;
	openmpi2)
		echo env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1 \
			OMPI_MCA_btl=tcp,self OMPI_MCA_btl_base_warn_component_unused=0 \
			OMPI_MCA_btl_tcp_if_include=em OMPI_MCA_oob_tcp_if_include=em OMPI_MCA_plm=rsh \
			OMPI_MCA_plm_rsh_agent="$guest/agent" OMPI_MCA_hwloc_base_binding_policy=none \
			"${OPENMPI_RUN:-mpirun.openmpi}" --host guest1,guest2 -np "$2"
		;;
	mpich1) echo env UCX_TLS=posix,self "${MPICH_RUN:-mpirun.mpich}" -np "$2" ;;
	mpich2)
		echo env UCX_TLS=tcp,self UCX_NET_DEVICES=em "${MPICH_RUN:-mpirun.mpich}" -launcher rsh \
			-launcher-exec "$guest/agent" -iface em -hosts guest1,guest2 -np "$2"
		;;
	esac
}

# Like that of tests/mpi/lib.sh, in the guest instead of on the lab.
job() {
	local command settings=() option OPTIND=1 here seat=()
	mpi=$1
	shift
	while getopts n:t:e:E:i option; do
		case $option in
		n) ranks=$OPTARG ;;
		t) seconds=$OPTARG ;;
		e) settings+=("$OPTARG") ;;
		*) ;;
		esac
	done
	shift $((OPTIND - 1))
	read -ra command < <(launcher "$mpi" "$ranks")
	[ "$guests" = 2 ] || { seat=("$guest/seat") && settings+=("GUEST_SEAT_DEVICES=$seat_devices"); }
	for option in "${settings[@]}"; do
		if [ "$mpi" = openmpi ]; then command+=(-x "$option"); else command+=(-genv "${option%%=*}" "${option#*=}"); fi
	done
	local program=("$programs/$1.$mpi")
	[ -e "${program[0]}" ] || program=("$1")
	shift
	out=$work/out
	: >"$out"
	rm -f "$work/over"
	timeout -k 5 "$seconds" "${command[@]}" "${seat[@]}" "${program[@]}" "$@" >"$out" 2>&1 </dev/null &
	local pid=$!
	[ -z "${meanwhile-}" ] || { $meanwhile; touch "$work/over"; }
	wait_for_end $pid
	status=$?
}

sent_bytes() { # NETWORK DEVICE
	cat "/sys/class/net/$1/statistics/tx_bytes"
}

# first_calls_over NETWORK DEVICE...: like first_calls, until blocks of rank 0 go over each of them
first_calls_over() {
	local device before limit
	first_calls
	for device; do
		before=$(sent_bytes "$device") limit=$((SECONDS + patience))
		until [ $(($(sent_bytes "$device") - before)) -gt $((1 << 20)) ] || [ $SECONDS -ge $limit ] || ! kill -0 "$pid" 2>/dev/null; do
			sleep 0.05
		done
	done
	more_calls 2
}

# calls_while COMMAND WHAT: calls of 1 MiB over all rails until COMMAND has ended, which runs beside them; all must be right
calls_while() {
	meanwhile=$1
	nezha "$mpi" -e NEZHA_LOG=info "${each_rail[@]}" "$build/tests/bench/allreduce_bench.$mpi" -s 1M \
		-T $((seconds - 10)) -e "$work/over" -w 2 -c -l
	meanwhile=''
	right_calls "$2"
}
