# SPDX-License-Identifier: BSD-3-Clause
# What the tests of the tools share.  Sets $info and the folder $tmp, which is removed at the end; no NEZHA_*
# of the user's is left in the environment.
set -u
info=$abs_top_builddir/nezha-info
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
for name in $(env | sed -n 's/^\(NEZHA_[A-Za-z0-9_]*\)=.*/\1/p'); do
	unset "$name"
done
LC_ALL=C
export LC_ALL

fail() { # fail WHAT
	echo "FAILED: $1"
	failed=1
}

# narrow FILE: no line is wider than a terminal
narrow() {
	awk 'length > 80 { print "wider than 80 columns: " $0; bad = 1 } END { exit bad }' "$1" || failed=1
}

# expect STATUS ARGUMENT...: runs nezha-info, compares its exit status with STATUS and its output (both
# streams) with standard input.
expect() {
	status=$1
	shift
	cat >"$tmp/want"
	"$info" "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	cat "$tmp/out" "$tmp/err" | sed 's/^  "version": "[0-9][^"]*"/  "version": "VERSION"/' >"$tmp/got"
	if [ $got -ne "$status" ] || ! diff -u "$tmp/want" "$tmp/got" >"$tmp/diff"; then
		echo "FAILED: nezha-info $* (status $got, wanted $status)"
		cat "$tmp/diff"
		failed=1
	fi
}

# the end of each test
finish() {
	[ $failed -eq 0 ] && echo "all as expected"
	exit $failed
}
