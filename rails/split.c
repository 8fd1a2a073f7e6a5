/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/split.h"

#include <string.h>

#include "tuning/bytes.h"
#include "tuning/pause.h"

#define SIDES (NEZHA_COLLECTIVES_MAX + 1)   /* the members, then the links */
#define PAUSE_FIRST 64           /* calls until another set is tried again; doubles each time */
#define PAUSE_MOST 4096
#define TRIES_OTHER 2            /* of another set: the first one may share by a guess */
#define CLEARLY 0.97             /* a set must need so much less than one with more in it */

void nezha_split_init(struct nezha_split *split, int ranks, uint32_t rails, const uint32_t *occupied, int members)
{
	memset(split, 0, sizeof *split);
	split->ranks = ranks;
	split->members = members;
	split->rails = rails;
	memcpy(split->occupied, occupied, (size_t)members * sizeof *occupied);
}

/* How many rails the links have to themselves beside a set. */
static int rails_beside(const struct nezha_split *split, uint32_t set)
{
	uint32_t rails = split->rails;

	for (int i = 0; i < split->members; i++)
		if (set >> i & 1)
			rails &= ~split->occupied[i];
	return __builtin_popcount(rails);
}

int nezha_split_free_rails(const struct nezha_split *split)
{
	return rails_beside(split, (1u << split->members) - 1);
}

static unsigned class_of(const struct nezha_grid *grid)
{
	unsigned class = nezha_bytes_class(grid->bytes);

	return class < NEZHA_SPLIT_CLASSES ? class : NEZHA_SPLIT_CLASSES - 1;
}

/* ---- what a side costs ---- */

/* The class, or the nearest to it, in which all of the set's sides are known; NULL: there is none. */
static const struct nezha_split_class *known(const struct nezha_split *split, unsigned class, uint32_t set)
{
	for (unsigned apart = 0; apart < NEZHA_SPLIT_CLASSES; apart++)
		for (int sign = -1; sign <= 1; sign += 2) {
			unsigned k = class + (unsigned)sign * apart;
			const struct nezha_split_class *there = &split->classes[k < NEZHA_SPLIT_CLASSES ? k : class];
			bool all = there->links[set] > 0 || !rails_beside(split, set);

			for (int i = 0; i < split->members; i++)
				all = all && (!(set >> i & 1) || there->cost[i] > 0);
			if (all)
				return there;
		}
	return NULL;
}

/* The cost of each of a set's sides that has a rail; 0 for the others.  Where not all were measured together: what is known of
 * the class, members as the mean of those that are known, or all rails as if they were alike. */
static void costs(const struct nezha_split *split, unsigned class, uint32_t set, double out[SIDES])
{
	const struct nezha_split_class *found = known(split, class, set), *here = found ? found : &split->classes[class];
	int rails = rails_beside(split, set), all = rails_beside(split, 0), count = 0;
	double sum = 0, unit;

	for (int i = 0; i < split->members; i++)
		if (here->cost[i] > 0) {
			sum += here->cost[i];
			count++;
		}
	unit = count ? sum / count : 1;
	memset(out, 0, SIDES * sizeof *out);
	for (int i = 0; i < split->members; i++)
		if (set >> i & 1)
			out[i] = here->cost[i] > 0 ? here->cost[i] : unit;
	if (!rails)
		return;
	if (here->links[set] > 0)
		out[SIDES - 1] = here->links[set];
	else if (here->whole[0] > 0)
		out[SIDES - 1] = here->whole[0] * all / rails;
	else
		out[SIDES - 1] = unit * 2.0 * (split->ranks - 1) / split->ranks / rails;
}

/* What a byte of the whole call would cost, all sides ending together. */
static double expected(const struct nezha_split *split, unsigned class, uint32_t set)
{
	double cost[SIDES], rate = 0;

	costs(split, class, set, cost);
	for (int i = 0; i < SIDES; i++)
		rate += cost[i] > 0 ? 1 / cost[i] : 0;
	return 1 / rate;
}

/* ---- which set ---- */

/* The fastest of the sets that were tried, of those in `present`; of sets that are near each other the one with more in it. */
static uint32_t best_of(const struct nezha_split_class *class, uint32_t present)
{
	uint32_t best = present;

	for (uint32_t set = present; set-- > 0;)
		if (!(set & ~present) && class->whole[set] > 0 && class->whole[best] > 0 &&
		    class->whole[set] < CLEARLY * class->whole[best])
			best = set;
	return best;
}

/* Another set than `best` to be tried: the how-manyth, of those with one member more or less, and of none at all. */
static uint32_t neighbour(const struct nezha_split *split, uint32_t present, uint32_t best, uint32_t turn)
{
	uint32_t set = present;

	for (int i = 0; i <= split->members; i++, turn++) {
		uint32_t k = turn % ((uint32_t)split->members + 1);

		set = k == (uint32_t)split->members ? 0 : best ^ 1u << k;
		if (!(set & ~present) && set != best)
			return set;
	}
	return set;
}

/* A set that was not tried often enough yet, and would be faster as far as one can tell; `best` if there is none. */
static uint32_t untried(const struct nezha_split *split, unsigned k, uint32_t present, uint32_t best)
{
	const struct nezha_split_class *class = &split->classes[k];

	if (!class->tried[0])
		return 0;
	for (int i = 0; i < split->members; i++) {
		uint32_t set = best ^ 1u << i;

		if (!(set & ~present) && set && class->tried[set] < TRIES_OTHER &&
		    expected(split, k, set) < CLEARLY * class->whole[best])
			return set;
	}
	return best;
}

static uint32_t choose_set(const struct nezha_split *split, unsigned k, uint32_t present)
{
	const struct nezha_split_class *class = &split->classes[k];
	uint32_t best;

	if (!present || class->tried[present] < NEZHA_SPLIT_TRIES)
		return present;
	best = best_of(class, present);
	if (class->calls >= class->retry_at)
		return neighbour(split, present, best, class->turn);
	return untried(split, k, present, best);
}

/* ---- how many blocks ---- */

static int largest(const uint32_t blocks[SIDES])
{
	int most = 0;

	for (int i = 1; i < SIDES; i++)
		if (blocks[i] > blocks[most])
			most = i;
	return most;
}

/* Each side keeps one block: else it could not be measured again.  Where there are too few it is the links that have none. */
static void leave_none_out(const double cost[SIDES], uint32_t blocks[SIDES])
{
	for (int i = 0; i < SIDES; i++) {
		int from = largest(blocks);

		if (!(cost[i] > 0) || blocks[i])
			continue;
		if (blocks[from] == 1)
			from = SIDES - 1;
		if (from != i && blocks[from]) {
			blocks[from]--;
			blocks[i]++;
		}
	}
}

/* Blocks in proportion to the rates, rounded so that all together are right. */
static void water_fill(const double cost[SIDES], uint32_t all, uint32_t blocks[SIDES])
{
	double rate = 0, upto = 0;
	uint32_t given = 0;

	for (int i = 0; i < SIDES; i++)
		rate += cost[i] > 0 ? 1 / cost[i] : 0;
	for (int i = 0; i < SIDES; i++) {
		uint32_t until;

		upto += cost[i] > 0 ? 1 / cost[i] : 0;
		until = (uint32_t)(upto / rate * all + 0.5);
		blocks[i] = (until < all ? until : all) - given;
		given += blocks[i];
	}
	leave_none_out(cost, blocks);
}

/* So many of them, where the vector has no block for each. */
static uint32_t first_members(uint32_t present, uint32_t most)
{
	uint32_t set = 0;

	for (int i = 0; i < NEZHA_COLLECTIVES_MAX; i++)
		if (present >> i & 1 && (uint32_t)__builtin_popcount(set) < most)
			set |= 1u << i;
	return set;
}

void nezha_split_choose(const struct nezha_split *split, const struct nezha_grid *grid, uint32_t present,
                        struct nezha_parts *parts)
{
	unsigned k = class_of(grid);
	uint32_t set, blocks[SIDES];
	double cost[SIDES];

	set = choose_set(split, k, first_members(present, grid->blocks));
	memset(parts, 0, sizeof *parts);
	if (!set)
		return;
	costs(split, k, set, cost);
	water_fill(cost, grid->blocks, blocks);
	memcpy(parts->blocks, blocks, sizeof parts->blocks);
}

/* ---- learning ---- */

/* What it cost stays as the first guess of its share. */
void nezha_split_renew(struct nezha_split *split, int i)
{
	for (int k = 0; k < NEZHA_SPLIT_CLASSES; k++)
		for (uint32_t set = 0; set < NEZHA_SPLIT_SETS; set++)
			if (set >> i & 1) {
				split->classes[k].whole[set] = 0;
				split->classes[k].tried[set] = 0;
			}
}

static uint32_t set_of(const struct nezha_parts *parts)
{
	uint32_t set = 0;

	for (int i = 0; i < NEZHA_COLLECTIVES_MAX; i++)
		set |= (parts->blocks[i] > 0 ? 1u : 0u) << i;
	return set;
}

void nezha_split_count(struct nezha_split *split, const struct nezha_grid *grid, const struct nezha_parts *parts)
{
	struct nezha_split_class *class = &split->classes[class_of(grid)];

	class->tried[set_of(parts)]++;
	if (!class->pause) {
		class->pause = PAUSE_FIRST;
		class->retry_at = PAUSE_FIRST;
	} else if (class->calls >= class->retry_at) {
		class->pause = (uint32_t)nezha_pause_longer(class->pause, PAUSE_FIRST, PAUSE_MOST);
		class->retry_at = class->calls + class->pause;
		class->turn++;
	}
	class->calls++;
}

/* Follows quickly what is far off, slowly what is near. */
static void follow(double *mean, double sample)
{
	bool far = sample > 1.5 * *mean || sample < *mean / 1.5;

	*mean = *mean <= 0 ? sample : far ? (*mean + sample) / 2 : (3 * *mean + sample) / 4;
}

/* What a way can do, once its shares are right. */
static void improve(double *cost, double sample)
{
	*cost = *cost <= 0 ? sample : sample < *cost ? (*cost + 3 * sample) / 4 : (3 * *cost + sample) / 4;
}

/* Bytes of blocks [first, first + count). */
static uint64_t bytes_of(const struct nezha_grid *grid, uint32_t first, uint32_t count)
{
	uint32_t end = first + count;

	return count ? (end < grid->blocks ? nezha_grid_offset(grid, end) : grid->bytes) - nezha_grid_offset(grid, first) : 0;
}

void nezha_split_learn(struct nezha_split *split, const struct nezha_grid *grid, const struct nezha_parts *parts,
                       const uint64_t took[NEZHA_COLLECTIVES_MAX], uint64_t links)
{
	struct nezha_split_class *class = &split->classes[class_of(grid)];
	uint32_t set = set_of(parts), first = 0, rest = grid->blocks;
	uint64_t all = 0;
	double cost[NEZHA_COLLECTIVES_MAX] = { 0 };

	for (int i = 0; i < NEZHA_COLLECTIVES_MAX; i++) {
		if (!(set >> i & 1))
			continue;
		if (!took[i])
			return;
		cost[i] = (double)took[i] / (double)bytes_of(grid, first, parts->blocks[i]);
		all = took[i] > all ? took[i] : all;
		first += parts->blocks[i];
	}
	rest -= first;
	if (rest && !links)
		return;
	all = rest && links > all ? links : all;
	improve(&class->whole[set], (double)all / (double)grid->bytes);
	for (int i = 0; i < NEZHA_COLLECTIVES_MAX; i++)
		if (set >> i & 1)
			follow(&class->cost[i], cost[i]);
	if (set && rest)
		follow(&class->links[set], (double)links / (double)bytes_of(grid, first, rest));
}
