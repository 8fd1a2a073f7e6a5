# SPDX-License-Identifier: BSD-3-Clause
"""Whether a difference may be chance."""
import math


def by_chance(all_after, late_after, all_before, late_before):
    """How likely so many late calls or more are among those after, if all are late alike (Fisher's exact test, one-sided)."""
    late, calls = late_after + late_before, all_after + all_before
    most = min(late, all_after)
    ways = sum(math.comb(all_after, k) * math.comb(all_before, late - k) for k in range(late_after, most + 1))
    return ways / math.comb(calls, late)
