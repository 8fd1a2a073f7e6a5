/* SPDX-License-Identifier: BSD-3-Clause
 * While several blocks are about to be sent, paths may keep small ones until they know what goes with them
 * (nezha_rail_ops.flush).  The engine's lock is held from the begin to the end, which come in pairs and may be nested. */
#ifndef NEZHA_RAILS_GATHER_H
#define NEZHA_RAILS_GATHER_H

struct nezha_engine;
struct nezha_path;

void nezha_gather_begin(struct nezha_engine *engine);

/* All that was kept meanwhile goes. */
void nezha_gather_end(struct nezha_engine *engine);

/* The path was given what there was: without a begin it keeps nothing.  The path may be lost on return. */
void nezha_gather_given(struct nezha_path *path);

#endif
