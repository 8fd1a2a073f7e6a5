# SPDX-License-Identifier: BSD-3-Clause
# job.sh - `lab run`: starts an MPI job on the nodes; sourced by `inside`.
#
# The launcher runs on the management node in a PID namespace of the job's own, and with it all that it starts
# through `agent`: when the job's first process ends (the launcher is done, its time is up, or `lab run` was
# killed), the kernel ends all the others, daemons too, and nothing else.

wrong() {
	say "$@"
	exit 2
}

assignment() { # OPTION NAME=VALUE
	[[ $2 =~ ^[A-Za-z_][A-Za-z_0-9]*= ]] || wrong "run: $1 '$2': NAME=VALUE is allowed"
}

above_zero() { # WHAT VALUE
	[[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || wrong "run: $1 '$2': a number above 0 is allowed"
}

# The libraries for ranks are small: built on first need, they live and end with the lab.
rank_library() { # NAME: of a source file beside this one; prints the library's path
	local library=$LAB_STATE/lib$1.so
	if [ ! -e "$library" ]; then
		"${CC:-cc}" -O2 -shared -fPIC -o "$library.$$" "$here/$1.c" -ldl >&2 || return 1
		mv "$library.$$" "$library"
	fi
	echo "$library"
}

host_list() { # SLOTS
	local node list=
	for ((node = 1; node <= LAB_NODES; node++)); do
		list+=,$LAB_NAME-n$node:$1
	done
	echo "${list#,}"
}

# given NAME...: whether the user's launcher options have one of these
given() {
	local option name
	for option in "${options[@]}"; do
		for name; do
			[ "$option" != "$name" ] || return 0
		done
	done
	return 1
}

# The lab's choices come as environment, so that an option that the user gives wins.
openmpi() {
	local e btl=tcp,self
	[ "$ppn" = 1 ] || btl+=,vader
	command=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
		OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$here/agent" OMPI_MCA_plm_rsh_no_tree_spawn=1
		OMPI_MCA_orte_tmpdir_base="$LAB_STATE/tmp/run.$$" OMPI_MCA_oob_tcp_if_include=10.77.200.0/24
		OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
		OMPI_MCA_mpi_yield_when_idle=1
		OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_pml=ob1 OMPI_MCA_btl=$btl
		OMPI_MCA_btl_tcp_if_include="$(subnets "")"
		"${own[@]}" "${OPENMPI_RUN:-mpirun.openmpi}")
	given --host -host -H --hostfile -hostfile || command+=(--host "$(host_list "$ppn")")
	given -np --np -n -c || command+=(-np "$ranks")
	for e in "${forall[@]}"; do
		command+=(-x "$e")
	done
	command+=("${options[@]}" "$@")
}

mpich() {
	local e devices
	devices=$(seq -s, -f 'e%g' 0 $((LAB_RAILS - 1)))
	command=(env UCX_TLS=tcp,self UCX_NET_DEVICES="$devices" "${own[@]}" "${MPICH_RUN:-mpirun.mpich}"
		-launcher rsh -launcher-exec "$here/agent" -iface em)
	given -hosts -host -f || command+=(-hosts "$(host_list "$ppn")")
	given -np -n || command+=(-np "$ranks")
	for e in "${forall[@]}"; do
		command+=(-genv "${e%%=*}" "${e#*=}")
	done
	command+=("${options[@]}" "$@")
}

# Adds to the value of LD_PRELOAD: what makes ranks polite comes first, but for a sanitizer, which insists on
# being the first itself; what helps MPI_Finalize comes last.
joined() { # VALUE
	local first=${1%%:*} rest=
	[[ $1 != *:* ]] || rest=:${1#*:}
	case $first in
	'') echo "$idle${idle:+${finalize:+:}}$finalize" ;;
	*lib[atu]*san*) echo "$first${idle:+:$idle}$rest${finalize:+:$finalize}" ;;
	*) echo "${idle:+$idle:}$1${finalize:+:$finalize}" ;;
	esac
}

# Puts the lab's libraries where the user has LD_PRELOAD: for all ranks, or in the launcher's environment.
preload() {
	local i
	[ -n "$idle$finalize" ] || return 0
	for i in "${!own[@]}"; do
		[[ ${own[i]} = LD_PRELOAD=* ]] || continue
		own[i]=LD_PRELOAD=$(joined "${own[i]#*=}")
		return
	done
	for i in "${!forall[@]}"; do
		[[ ${forall[i]} = LD_PRELOAD=* ]] || continue
		forall[i]=LD_PRELOAD=$(joined "${forall[i]#*=}")
		return
	done
	if [ -n "${LD_PRELOAD-}" ]; then
		own+=("LD_PRELOAD=$(joined "$LD_PRELOAD")")
	else
		forall+=("LD_PRELOAD=$(joined "")")
	fi
}

split_options() { # what follows the MPI's name; sets options and program
	options=()
	program=()
	case ${1-} in
	-*)
		while [ $# -gt 0 ] && [ "$1" != -- ]; do
			options+=("$1")
			shift
		done
		[ $# -gt 0 ] || wrong "run: launcher options must end with -- before the program"
		shift
		;;
	esac
	[ $# -gt 0 ] || wrong "run: no program given"
	program=("$@")
}

run() {
	local ranks= ppn=1 seconds=60 idle= finalize= option flavour
	local forall=() own=() options program command
	while getopts n:p:t:e:E:i option; do
		case $option in
		n) ranks=$OPTARG && above_zero -n "$ranks" ;;
		p) ppn=$OPTARG && above_zero -p "$ppn" ;;
		t) seconds=$OPTARG && above_zero -t "$seconds" ;;
		e) assignment -e "$OPTARG" && forall+=("$OPTARG") ;;
		E) assignment -E "$OPTARG" && own+=("$OPTARG") ;;
		i) idle=1 ;;
		*) exit 2 ;;
		esac
	done
	shift $((OPTIND - 1))
	flavour=${1-}
	case $flavour in
	openmpi | mpich) shift ;;
	*) wrong "run: MPI '$flavour': openmpi and mpich are allowed" ;;
	esac
	split_options "$@"
	: "${ranks:=$((LAB_NODES * ppn))}"
	[ "$ranks" -le $((LAB_NODES * ppn)) ] ||
		wrong "run: $ranks ranks on $LAB_NODES nodes with $ppn each: at most $((LAB_NODES * ppn));" \
			"-p allows more"
	if [ -n "$idle" ]; then
		idle=$(rank_library idle) || die "run -i: idle.c could not be built; it needs a C compiler"
	fi
	if [ "$flavour" = mpich ]; then
		finalize=$(rank_library finalize) ||
			say "warning: finalize.c could not be built: MPI_Finalize may hang"
	fi
	preload
	"$flavour" "${program[@]}"
	enter_node mgmt unshare --pid --fork --kill-child=KILL --mount-proc \
		bash "$here/job" "$seconds" "${command[@]}"
}
