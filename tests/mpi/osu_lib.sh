# SPDX-License-Identifier: BSD-3-Clause
# osu_lib.sh - what osu.test and osu_real.test ask of a benchmark with osu-patches' option; sourced after lib.sh.

# rows: the measured lines, without '#': SIZE NATIVE NEZHA RATIO [VALIDATION] RAILS
rows() {
	grep -E '^[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ ' "$out"
}

# said WHAT PATTERN: the last job ended well and printed a line with the pattern
said() {
	if [ "$status" = 0 ] && grep -Eq -e "$2" "$out"; then
		good "$1"
	else
		failure "$1 (status $status, wanted: $2)"
		return 1
	fi
}

# unsaid WHAT PATTERN
unsaid() {
	if grep -Eq -e "$2" "$out"; then
		failure "$1 (there is: $2)"
	else
		good "$1"
	fi
}

# compared WHAT SIZES RAILS_FROM [VALIDATION]: so many sizes; the ratio is that of the columns; from RAILS_FROM
# bytes on each rail of $rails carried bytes, together 2(N-1)/N of the size or a little more for each of $ranks
# ranks; below none did.  RAILS_FROM 0: none ever does.
compared() {
	local why
	if why=$(rows | awk -v sizes="$2" -v from="$3" -v validation="${4-}" -v ranks="$ranks" -v rails="$rails" '
		function bad(text) { print $0 ": " text; wrong = 1; exit 1 }
		BEGIN { count = gsub(/tcp:/, "", rails); split(rails, subnet, ",") }
		{
			if (NF != (validation != "") + 5) bad("fields")
			if ($2 <= 0 || $3 <= 0) bad("no time")
			if ($4 < $2 / $3 * 0.98 - 0.02 || $4 > $2 / $3 * 1.02 + 0.02) bad("ratio")
			if (validation != "" && $5 != validation) bad("validation")
			if (!from || $1 < from) { if ($NF != "-") bad("rails"); next }
			sum = 0
			if (split($NF, rail, ",") != count) bad("number of rails")
			for (i = 1; i <= count; i++) {
				if (split(rail[i], pair, "=") != 2 || !(index(rails, pair[1]))) bad("subnet")
				sum += pair[2]
			}
			need = 2 * (ranks - 1) / ranks * $1
			if (sum < need * 0.99 || sum > need * 1.25) bad("sent " sum ", needed " need)
		}
		END { if (!wrong && NR != sizes) print NR " sizes instead of " sizes; exit wrong || NR != sizes }'); then
		good "$1: $2 sizes, the columns and rails are right"
	else
		failure "$1: $why"
	fi
}
