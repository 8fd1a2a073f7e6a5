/* SPDX-License-Identifier: BSD-3-Clause
 * libibverbs as a table of functions: the library is loaded when a verbs rail is first opened, never linked, and tests
 * put a provider of their own behind the same table.  The functions are those of libibverbs without "ibv_". */
#ifndef NEZHA_RAILS_VERBS_API_H
#define NEZHA_RAILS_VERBS_API_H

#include <infiniband/verbs.h>

/* Macros there.  (The function query_port fills the first part of the struct only, which has all that is used.) */
#undef ibv_query_port
#undef ibv_reg_mr

struct nezha_verbs_api {
	struct ibv_device **(*get_device_list)(int *count);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *out);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *out,
	                    uint32_t flags, size_t entry_bytes);   /* may be NULL: rdma-core before version 32 */
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *out);
	void (*ack_async_event)(struct ibv_async_event *event);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *at, size_t length, int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int entries, void *cq_context,
	                            struct ibv_comp_channel *channel, int vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned count);
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*destroy_qp)(struct ibv_qp *qp);
	const char *(*wc_status_str)(enum ibv_wc_status status);
	/* What the provider does by itself, without a system call. */
	int (*poll_cq)(struct ibv_cq *cq, int max, struct ibv_wc *out);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
};

/* Loads libibverbs, once for the process.  NULL: it cannot be (warned of the first time, with the cause). */
const struct nezha_verbs_api *nezha_verbs_api(void);

/* The library that `file` names instead of libibverbs.so.1; for tests.  *why gets the cause on failure (a text of the thread, until the next one). */
int nezha_verbs_api_load(const char *file, struct nezha_verbs_api *out, const char **why);

/* Puts `api` in the place of the loaded one; NULL: back to that.  For tests, before any engine is made. */
void nezha_verbs_api_use(const struct nezha_verbs_api *api);

#endif
