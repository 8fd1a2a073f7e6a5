/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_share.h"

#include <string.h>

#include "tuning/bytes.h"

#define PAUSE_FIRST 64           /* calls until the slower way is tried again; doubles each time */
#define PAUSE_MOST 4096
#define TRIES 4                  /* with it before going without is tried: the first two share by a guess */
#define CLEARLY 0.97             /* the links alone must need so much less */

void nezha_ina_share_init(struct nezha_ina_share *share, int ranks, int rails)
{
	memset(share, 0, sizeof *share);
	share->ranks = ranks;
	share->rails = rails;
}

static unsigned class_of(const struct nezha_grid *grid)
{
	unsigned class = nezha_bytes_class(grid->bytes);

	return class < NEZHA_INA_CLASSES ? class : NEZHA_INA_CLASSES - 1;
}

/* The costs of the class, or of the nearest that has any, or as if all rails were alike. */
static void costs(const struct nezha_ina_share *share, unsigned class, double *ina, double *links)
{
	for (unsigned apart = 0; apart < NEZHA_INA_CLASSES; apart++)
		for (int side = -1; side <= 1; side += 2) {
			unsigned k = class + (unsigned)side * apart;

			if (k < NEZHA_INA_CLASSES && share->classes[k].ina > 0 && share->classes[k].links > 0) {
				*ina = share->classes[k].ina;
				*links = share->classes[k].links;
				return;
			}
		}
	*ina = 1;
	*links = 2.0 * (share->ranks - 1) / share->ranks / share->rails;
}

/* Whether the aggregator is left out of this call. */
static bool goes_without(const struct nezha_ina_class *class)
{
	bool without;

	if (class->tried_with < TRIES)
		return false;
	if (!class->tried_without)
		return true;
	without = class->without > 0 && class->with > 0 && class->without < CLEARLY * class->with;
	return class->calls >= class->retry_at ? !without : without;
}

uint32_t nezha_ina_share_choose(const struct nezha_ina_share *share, const struct nezha_grid *grid)
{
	double ina, links, part;
	uint32_t blocks;

	if (goes_without(&share->classes[class_of(grid)]))
		return 0;
	if (!share->rails)
		return grid->blocks;
	costs(share, class_of(grid), &ina, &links);
	part = links / (ina + links);
	blocks = (uint32_t)(part * grid->blocks + 0.5);
	/* Each side keeps one block, where there are enough: else it could not be measured again. */
	if (grid->blocks > 1 && blocks == grid->blocks)
		blocks--;
	return blocks ? blocks : 1;
}

void nezha_ina_share_count(struct nezha_ina_share *share, const struct nezha_grid *grid, uint32_t shared)
{
	struct nezha_ina_class *class = &share->classes[class_of(grid)];

	if (shared)
		class->tried_with++;
	else
		class->tried_without++;
	if (!class->pause) {
		class->pause = PAUSE_FIRST;
		class->retry_at = PAUSE_FIRST;
	} else if (class->calls >= class->retry_at) {
		class->pause = class->pause < PAUSE_MOST ? 2 * class->pause : PAUSE_MOST;
		class->retry_at = class->calls + class->pause;
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

void nezha_ina_share_learn(struct nezha_ina_share *share, const struct nezha_grid *grid, uint32_t shared, uint64_t ina,
                           uint64_t links)
{
	struct nezha_ina_class *class = &share->classes[class_of(grid)];
	uint64_t bytes = shared < grid->blocks ? nezha_grid_offset(grid, shared) : grid->bytes, rest = grid->bytes - bytes;
	uint64_t all = !shared ? links : !rest || ina > links ? ina : links;

	if ((shared && !ina) || (rest && !links))
		return;
	improve(shared ? &class->with : &class->without, (double)all / (double)grid->bytes);
	if (shared && rest) {
		follow(&class->ina, (double)ina / (double)bytes);
		follow(&class->links, (double)links / (double)rest);
	}
}
