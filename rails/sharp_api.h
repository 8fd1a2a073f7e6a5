/* SPDX-License-Identifier: BSD-3-Clause
 * What of NVIDIA's libsharp_coll is called, by declarations of our own: the library is loaded when a job names the rail
 * `sharp`, and nothing is linked.  Layouts and numbers are those of its version 3 interface on 64-bit machines; that the
 * library has the same is checked as far as it tells (the size of its default configuration). */
#ifndef NEZHA_RAILS_SHARP_API_H
#define NEZHA_RAILS_SHARP_API_H

#include <stddef.h>
#include <stdint.h>

#include "tuning/types.h"

#define NEZHA_SHARP_NONE (-1)     /* of a type or operation: SHARP has no such, or it is not used */
#define NEZHA_SHARP_EAGER_GROUPS 2u  /* config.flags: takes what a group needs when it is made, not in its first call */

struct nezha_sharp_config {
	const char *devices;          /* "mlx5_0:1"; NULL: it chooses */
	int32_t polls, timeout_ms;
	uint32_t flags;
	int32_t reserved[3];
};

/* Calls that it makes on all ranks of the group, outside SHARP; 0: well. */
struct nezha_sharp_outside {
	int (*bcast)(void *context, void *buffer, int bytes, int root);
	int (*barrier)(void *context);
	int (*gather)(void *context, int root, void *from, void *to, int bytes);
};

struct nezha_sharp_init {
	uint64_t job;
	int32_t rank, ranks;
	int (*progress)(void);
	int32_t channel;
	struct nezha_sharp_config config;
	struct nezha_sharp_outside outside;
	int32_t local_rank, threads;
	void *context;
	int32_t reserved[4];
};

struct nezha_sharp_group {
	int32_t rank, ranks;
	void *context;
	const uint32_t *world_ranks;
	int32_t reserved[2];
};

/* It writes into this; room is left for versions that write more. */
struct nezha_sharp_caps {
	int32_t version;
	uint64_t unused[2];
	uint64_t types, tag_types, operations, features;  /* bit k: number k is supported */
	uint64_t more[64];
};

struct nezha_sharp_buffer {
	int32_t kind, memory;         /* 0, 0: contiguous, the host's */
	int32_t reserved[2];
	void *at;
	size_t bytes;
	void *registration;
};

struct nezha_sharp_reduce {
	int32_t root;
	struct nezha_sharp_buffer from, to;
	int32_t type;
	size_t elements;
	int32_t operation, tag_type, mode, batch;
	size_t offset;
	int32_t reserved[2];
};

/* Functions return 0, or a negative error that `text` names; `test` whether the request is done. */
struct nezha_sharp_api {
	const struct nezha_sharp_config *defaults;
	int (*init)(struct nezha_sharp_init *with, void **context);
	int (*end)(void *context);
	int (*caps)(void *context, struct nezha_sharp_caps *out);
	int (*progress)(void *context);
	int (*group_init)(void *context, struct nezha_sharp_group *with, void **group);
	int (*group_end)(void *group);
	int (*register_memory)(void *context, void *at, size_t bytes, void **registration);
	int (*release_memory)(void *context, void *registration);
	int (*allreduce)(void *group, struct nezha_sharp_reduce *what, void **request);
	int (*test)(void *request);
	int (*release)(void *request);
	const char *(*text)(int error);
};

/* The library, loaded once in the process and never unloaded.  NULL: *why says why not (a static or lasting text). */
const struct nezha_sharp_api *nezha_sharp_load(const char **why);

/* Its numbers of a type and an operation, NEZHA_SHARP_NONE: none.  PROD and the logical operations are not used. */
int nezha_sharp_type(enum nezha_type type);
int nezha_sharp_operation(enum nezha_op op);

#endif
