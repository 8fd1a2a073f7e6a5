/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/gather.h"

#include "rails/engine.h"
#include "rails/link.h"

static void flush(struct nezha_path *path)
{
	if (path->up && path->ops->flush && path->ops->flush(path) < 0)
		nezha_link_path_fail(path, "sending failed");
}

void nezha_gather_begin(struct nezha_engine *engine)
{
	engine->gathering++;
}

void nezha_gather_end(struct nezha_engine *engine)
{
	struct nezha_link *link;

	if (--engine->gathering || !engine->kept)
		return;
	engine->kept = false;
	LIST_FOREACH(link, &engine->links, entry)
		for (uint32_t r = 0; r < engine->card.rail_count; r++)
			flush(&link->paths[r]);
}

void nezha_gather_given(struct nezha_path *path)
{
	struct nezha_engine *engine = path->link->engine;

	if (!engine->gathering)
		flush(path);
	else
		engine->kept = engine->kept || (path->up && path->ops->flush);
}
