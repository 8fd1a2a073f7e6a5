# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the MPI tests' drivers share; sourced by bash scripts.
#
#   need_lab [LAB OPTIONS]        raises a lab of this test, or skips; it goes away with the script, even a killed one, or the next
#   mpis                          prints those of "openmpi mpich" that are here
#   job MPI [LAB RUN OPTIONS] PROGRAM ARGUMENTS...
#                                 runs tests/mpi/PROGRAM.MPI on the lab without Nezha
#   nezha MPI [LAB RUN OPTIONS] PROGRAM ARGUMENTS...
#                                 the same with Nezha preloaded and the lab's rails named; what it learns decides
#                                 nothing, so that calls go to the rails however fast these are
#   learning MPI ...              the same as users have it: it learns
#   learns LEAST WHAT MPI ...     the same, up to three times, until LEAST of its calls are WHAT (count_calls): what a job
#                                 learns hangs on a few calls, and the host may hold up any.  The file $table, if that is
#                                 set, is before each as it was before all
#   passed WHAT                   the last job said "...: passed" and ended well, else a failure
#   on_rails WHAT, on_all_rails WHAT, off_rails WHAT
#                                 by its report: calls of the last job went to the rails, over each of them,
#                                 none did
#   told WHAT ends|goes-on PATTERN...
#                                 the last job, of plain, ended at its start or went on, and one line of Nezha's,
#                                 only one, has the patterns
#   right_calls WHAT              every call of the last job, of allreduce_bench -c -l, was right
#   lost_and_regained WHAT        its report tells of a path that was lost and one that came back
#   verdict                       prints the sum and ends the script
# Variables that they heed: `before` and `after` (libraries in LD_PRELOAD around Nezha), `seconds` (a job's
# time limit), and `control` (1: MPI's own traffic on the control network, so that cut rails hit Nezha alone;
# rail: on rail 0),
# `placement` (options of the launcher that place ranks),
# `meanwhile` (a command to run while the job does).  Such a command waits for what it has caused, and not for so long:
#   first_calls, more_calls NUMBER    until allreduce_bench -l has made some calls, some more
#   said PATTERN [MORE]               until the job (of NEZHA_LOG=info) has a line of that, or MORE lines of it, counted by lines_of
#   await_loss RAIL, await_return RAIL    until rank 0 has told that this rail's path is lost, is back, and some calls were made since
# `patience` is the limit for each, in seconds;
# and when it has come to its end, so do the calls of allreduce_bench "${until_over[@]}".
# The last job's output is $out, its report $report, its status $status.
set -u
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
src=${abs_top_srcdir:-$(dirname "$(dirname "$here")")}
build=${abs_top_builddir:-$src}
lab=$src/tests/lab/lab
preload=${NEZHA_TEST_PRELOAD:-$build/.libs/libnezha_pmpi.so}
programs=${NEZHA_TEST_PROGRAMS:-$build/tests/mpi}
python=${PYTHON3:-python3}
seconds=60 patience=30
before="" after="" control="" status=0
failed=0 checked=0

# What has failed before stays a failure.
skip() {
	echo "skipped: $*"
	[ "$failed" = 0 ] || verdict
	exit 77
}

failure() {
	failed=$((failed + 1))
	echo "FAILED: $*"
	[ -z "${out-}" ] || tail -n 25 "$out" | cut -c-200 | sed 's/^/    | /'
}

good() {
	checked=$((checked + 1))
	echo "ok: $*"
}

verdict() {
	echo "$checked checks passed, $failed failed"
	[ "$failed" = 0 ] && [ "$checked" -gt 0 ]
	exit
}

mpis() {
	local mpi
	for mpi in ${NEZHA_TEST_MPIS:-openmpi mpich}; do
		[ ! -x "$programs/plain.$mpi" ] || echo "$mpi"
	done
}

clear_up() {
	[ -z "${labname-}" ] || "$lab" down -d "$labname" >/dev/null 2>&1
	[ -z "${work-}" ] || rm -rf "$work"
}

make_work() {
	[ -e "$preload" ] || skip "the preload is not built ($preload)"
	[ -n "$(mpis)" ] || skip "no MPI test program is built in $programs"
	[ -n "${work-}" ] || work=$(mktemp -d) || exit 1
	until_over=(-T 50 -e "$work/over")
	trap clear_up EXIT
	trap 'exit 1' INT TERM HUP
}

need_lab() {
	local said
	make_work
	[ -z "${labname-}" ] || "$lab" down -d "$labname"
	labname=t$$
	said=$("$lab" up -d "$labname" -w $$ "$@" 2>&1)
	case $? in
	0) ;;
	77) skip "no lab here: $said" ;;
	*) echo "$said" && labname= && exit 1 ;;
	esac
	rails=$("$lab" rails-spec -d "$labname")
}

# below PID: the processes that it has started, and theirs
below() {
	local child
	for child in $(ps -o pid= --ppid "$1"); do
		echo "$child"
		below "$child"
	done
}

# threads_of PID: how many threads of a job that does not end wait where
threads_of() {
	echo "it has not ended:"
	ps -L -o comm=,stat=,wchan:24= -p "$(below "$1" | paste -sd,)" | sort | uniq -c
}

# wait_for_end PID: ends a job whose verdict is out but which stays in MPI_Finalize.  MPICH 4.0.2 does that by
# itself, without Nezha too, when ranks outnumber cores; under Open MPI it counts as a failure (status 124).
wait_for_end() {
	local pid=$1 limit=$((SECONDS + seconds + 10)) said=
	while kill -0 "$pid" 2>/dev/null; do
		if [ -z "$said" ] && grep -Eq "$ending" "$out"; then
			said=$((SECONDS + 10))
		fi
		if [ "$SECONDS" -ge "${said:-$limit}" ]; then
			threads_of "$pid" >>"$out"
			kill "$pid" 2>/dev/null
			wait "$pid" 2>/dev/null
			[ -n "$said" ] && [ "$mpi" = mpich ] || return 124
			echo "note: MPICH stayed in MPI_Finalize"
			return 0
		fi
		sleep 0.1
	done
	wait "$pid"
}
ending='^[a-z]+: (passed|[0-9]+ failures)$|^done$'

# own_network MPI: what tells its launcher where MPI's own traffic goes (`control`)
own_network() {
	case $control$1 in
	1openmpi) echo --mca btl_tcp_if_include 10.77.200.0/24 ;;
	1mpich) echo -genv UCX_NET_DEVICES em ;;
	railopenmpi) echo --mca btl_tcp_if_include 10.77.0.0/24 ;;
	railmpich) echo -genv UCX_NET_DEVICES e0 ;;
	esac
}

job() {
	local options=() launch=() option OPTIND=1
	mpi=$1
	shift
	while getopts n:p:t:e:E:i option; do
		case $option in
		i) options+=(-i) ;;
		t) seconds=$OPTARG ;;
		*) options+=("-$option" "$OPTARG") ;;
		esac
	done
	shift $((OPTIND - 1))
	local program=("$programs/$1.$mpi")
	[ -e "${program[0]}" ] || program=("$1")
	shift
	read -ra launch <<<"$(own_network "$mpi")"
	[ ${#launch[@]} = 0 ] || launch+=(--)
	# shellcheck disable=SC2086
	[ -z "${placement-}" ] || launch=($placement ${launch[@]+"${launch[@]}"})
	[ -z "${placement-}" ] || [ "${launch[-1]}" = -- ] || launch+=(--)
	out=$work/out
	: >"$out"
	rm -f "$work/over"
	"$lab" run -d "$labname" -i -t "$seconds" "${options[@]}" "$mpi" "${launch[@]}" \
		"${program[@]}" "$@" >"$out" 2>&1 &
	local pid=$!
	[ -z "${meanwhile-}" ] || { $meanwhile; touch "$work/over"; }
	wait_for_end $pid
	status=$?
}

learning() {
	local mpi=$1
	shift
	report=$work/report.json
	rm -f "$report"
	job "$mpi" -e "LD_PRELOAD=${before:+$before:}$preload${after:+:$after}" \
		-e "NEZHA_RAILS=$rails" -e "NEZHA_REPORT=$report" "$@"
}

learns() {
	local least=$1 what calls attempt
	read -ra what <<<"$2"
	shift 2
	rm -f "$work/table.before"
	[ ! -e "${table-}" ] || cp "$table" "$work/table.before"
	for attempt in 1 2 3; do
		if [ -e "$work/table.before" ]; then
			cp "$work/table.before" "$table"
		elif [ -n "${table-}" ]; then
			rm -f "$table"
		fi
		learning "$@"
		calls=$(count_calls "${what[@]}")
		[ "${calls:-0}" -lt "$least" ] || break
		echo "note: ${calls:-no} calls are ${what[*]}, at least $least were expected"
	done
}

nezha() {
	local mpi=$1
	shift
	learning "$mpi" -e NEZHA_REPRODUCIBLE=1 "$@"
}

passed() {
	if [ "$status" = 0 ] && grep -q ': passed$' "$out"; then
		good "$1"
	else
		failure "$1 (status $status)"
		return 1
	fi
}

# count_calls rails|mix|native [REASON]|used|part RAIL|failures|returns|wrong: a number from the last report
count_calls() {
	"$python" "$here/report.py" "$report" "$@"
}

on_rails() {
	local n
	if n=$(count_calls rails) && [ "$n" -gt 0 ]; then
		good "$1: $n calls went to the rails"
	else
		failure "$1: no call went to the rails (${n:-no report})"
		return 1
	fi
}

on_all_rails() {
	local used wanted=${rails//[^,]/}
	wanted=$((${#wanted} + 1))
	on_rails "$1" || return
	if used=$(count_calls used) && [ "$used" = "$wanted" ]; then
		good "$1: $used of $wanted rails carried bytes"
	else
		failure "$1: ${used:-?} of $wanted rails carried bytes"
		return 1
	fi
}

off_rails() {
	local n
	if n=$(count_calls rails) && [ "$n" = 0 ]; then
		good "$1: no call went to the rails"
	else
		failure "$1: ${n:-unknown} calls went to the rails"
		return 1
	fi
}

told() {
	local what=$1 ends=$2 pattern lines
	shift 2
	lines=$(grep -i nezha "$out")
	for pattern; do
		lines=$(grep -e "$pattern" <<<"$lines")
	done
	if [ "$ends" = ends ] && [ "$status" = 0 ]; then
		failure "$what: the job went on"
	elif [ "$ends" = goes-on ] && ! { [ "$status" = 0 ] && grep -q '^plain: passed' "$out"; }; then
		failure "$what: the job did not go on (status $status)"
	elif [ "$status" = 124 ]; then
		failure "$what: the job hung"
	elif [ "$(grep -c . <<<"$lines")" != 1 ]; then
		failure "$what: $(grep -c . <<<"$lines") lines have: $*"
	else
		good "$what: $(cut -c-150 <<<"$lines")"
	fi
}

lines_of() {
	grep -c -e "$1" "$out"
}

said() {
	local limit=$((SECONDS + patience))
	until [ "$(lines_of "$1")" -ge "${2:-1}" ] || [ $SECONDS -ge $limit ] || ! kill -0 "$pid" 2>/dev/null; do
		sleep 0.05
	done
}

first_calls() {
	said '^call' 5
}

more_calls() {
	said '^call' $(($(lines_of '^call') + $1))
}

by_first='nezha\[[^]]*:0\] info:'     # who writes the report

await_loss() {
	said "$by_first rail $1 to rank .* is lost at"
	more_calls 5
}

await_return() {
	said "$by_first rail $1 to rank .* is back at"
	more_calls 5
}

# A rail, or a node's link to it at the switch, is cut and given back, in the midst of calls: those over the other rails, and those over
# it again.
cut_and_return() { # RAIL [NODE]
	local order=(rail -d "$labname" "$1") down=down up=up
	[ -z "${2-}" ] || order=(link -d "$labname" "$2" "$1") down=switch-down up=switch-up
	first_calls
	"$lab" "${order[@]}" $down
	await_loss "e$1"
	"$lab" "${order[@]}" $up
	await_return "e$1"
}

right_calls() {
	local calls wrong
	calls=$(grep -c '^call' "$out")
	wrong=$(awk '$1 == "call" && $NF > 0' "$out" | wc -l)
	if [ "$status" != 0 ] || ! grep -q '^done$' "$out"; then
		failure "$1: status $status after $calls calls"
	elif [ "$wrong" != 0 ]; then
		failure "$1: $wrong of $calls calls gave wrong results"
	else
		good "$1: $calls calls, all right"
	fi
}

lost_and_regained() {
	local failures returns
	failures=$(count_calls failures) returns=$(count_calls returns)
	if [ "${failures:-0}" -gt 0 ] && [ "${returns:-0}" -gt 0 ]; then
		good "$1: the report tells of the failure and the return"
	else
		failure "$1: the report has ${failures:-no} failures and ${returns:-no} returns"
	fi
}
