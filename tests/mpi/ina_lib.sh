# SPDX-License-Identifier: BSD-3-Clause
# ina_lib.sh - what the tests with aggregators share; sourced after lib.sh.
#
#   need_aggd                     skips where nezha-aggd is not built
#   start_on RAIL [ARGUMENTS...]  starts one on the switch of a rail;  spec_of RAIL: how NEZHA_RAILS names it
#   send_to RAIL SIGNAL           sends it a signal
#   digest                        what results said of the bits
#   ina_bytes [DEVICE]            what rank 0 has sent to the aggregator, by the last report
#   used, unused WHAT [DEVICE]    whether that is anything
#   lost_and_back WHAT            by the last report rank 0 lost it and had it back
#   right_calls WHAT                all calls of the last job, of the bench, were right
#   lose_and_return LOSE RETURN   in the midst of calls (of NEZHA_LOG=info) does what loses an aggregator, then what gives it back

need_aggd() {
	aggd=${NEZHA_TEST_AGGD:-$build/nezha-aggd}
	[ -x "$aggd" ] || skip "nezha-aggd is not built ($aggd)"
}

start_on() {
	local rail=$1
	shift
	"$lab" aggd -d "$labname" "$rail" start "$aggd" "$@" || failure "nezha-aggd does not start on rail $rail"
}

spec_of() {
	"$lab" aggd -d "$labname" "$1" spec
}

send_to() {
	"$lab" aggd -d "$labname" "$1" signal "$2" 2>/dev/null
}

digest() {
	grep -o 'digest-floats [0-9a-f]*' "$out"
}

ina_sum() { # FIELD [DEVICE]: of the last report
	"$python" -c 'import json, sys
print(sum(r[sys.argv[2]] for r in json.load(open(sys.argv[1]))["rails"] if r["device"] == sys.argv[3]))' "$report" "$1" "${2:-ina}"
}

ina_bytes() {
	ina_sum bytes "${1:-ina}"
}

used() {
	local n
	n=$(ina_bytes "${2:-ina}")
	if [ "${n:-0}" -gt 0 ]; then good "$1: $n bytes went to ${2:-the aggregator}"; else failure "$1: ${2:-it} was not used"; fi
}

unused() {
	local n
	n=$(ina_bytes "${2:-ina}")
	if [ "${n:-1}" = 0 ]; then good "$1: ${2:-it} was not used"; else failure "$1: ${n:-?} bytes went to ${2:-it}"; fi
}

# Of the aggregator alone: what cuts a node off from it may cost a path of the rail, too.
lost_and_back() {
	local failures returns
	failures=$(ina_sum failures) returns=$(ina_sum returns)
	if [ "${failures:-0}" -gt 0 ] && [ "${returns:-0}" -gt 0 ]; then
		good "$1: the report tells of its failure and return"
	else
		failure "$1: the report has ${failures:-no} failures and ${returns:-no} returns of it"
	fi
}

lose_and_return() {
	local again
	first_calls
	$1
	said "$by_first the session with aggregator .* is lost"
	more_calls 5
	again=$(($(lines_of "$by_first aggregator .* has all .* ranks") + 1))
	$2
	said "$by_first aggregator .* has all .* ranks" $again
	more_calls 5
}
