/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/verbs_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tuning/log.h"
#include "tuning/status.h"

#define LIBRARY "libibverbs.so.1"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct nezha_verbs_api loaded;
static bool is_loaded;
static const struct nezha_verbs_api *instead;

static const struct { const char *name; size_t at; } symbols[] = {
#define SYMBOL(field) { "ibv_" #field, offsetof(struct nezha_verbs_api, field) }
	SYMBOL(get_device_list), SYMBOL(free_device_list), SYMBOL(get_device_name), SYMBOL(open_device),
	SYMBOL(close_device), SYMBOL(query_port), SYMBOL(query_gid), SYMBOL(get_async_event), SYMBOL(ack_async_event),
	SYMBOL(alloc_pd), SYMBOL(dealloc_pd), SYMBOL(reg_mr), SYMBOL(dereg_mr), SYMBOL(create_comp_channel),
	SYMBOL(destroy_comp_channel), SYMBOL(create_cq), SYMBOL(destroy_cq), SYMBOL(get_cq_event),
	SYMBOL(ack_cq_events), SYMBOL(create_qp), SYMBOL(modify_qp), SYMBOL(destroy_qp), SYMBOL(wc_status_str),
#undef SYMBOL
};

/* These the header has as functions of its own, over pointers of the context. */
static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *out)
{
	return cq->context->ops.poll_cq(cq, max, out);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return qp->context->ops.post_send(qp, wr, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return qp->context->ops.post_recv(qp, wr, bad);
}

/* What the last failure was, for good. */
static const char *cause(void)
{
	static _Thread_local char text[256];

	snprintf(text, sizeof text, "%s", dlerror());
	return text;
}

int nezha_verbs_api_load(const char *file, struct nezha_verbs_api *out, const char **why)
{
	struct nezha_verbs_api api = {
		.poll_cq = poll_cq, .req_notify_cq = req_notify_cq, .post_send = post_send, .post_recv = post_recv,
	};
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL), *optional;

	if (!library) {
		*why = cause();
		return NEZHA_ERR_UNSUPPORTED;
	}
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (!symbol) {
			*why = cause();
			dlclose(library);
			return NEZHA_ERR_UNSUPPORTED;
		}
		memcpy((char *)&api + symbols[i].at, &symbol, sizeof symbol);
	}
	optional = dlsym(library, "_ibv_query_gid_ex");
	memcpy(&api.query_gid_ex, &optional, sizeof optional);
	*out = api;
	return NEZHA_OK;
}

static void load(void)
{
	const char *why;

	is_loaded = nezha_verbs_api_load(LIBRARY, &loaded, &why) == NEZHA_OK;
	if (!is_loaded)
		nezha_warn("verbs rails cannot be used on this host: %s (Debian: apt-get install libibverbs1 "
		           "ibverbs-providers)", why);
}

const struct nezha_verbs_api *nezha_verbs_api(void)
{
	if (instead)
		return instead;
	pthread_once(&once, load);
	return is_loaded ? &loaded : NULL;
}

void nezha_verbs_api_use(const struct nezha_verbs_api *api)
{
	instead = api;
}
