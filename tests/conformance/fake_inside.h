/* SPDX-License-Identifier: BSD-3-Clause
 * What the parts of the provider of fake_verbs.h know of one another: the device and its faults (fake_verbs.c), completion queues
 * (fake_cq.c), queue pairs (fake_qp.c). */
#ifndef NEZHA_TESTS_FAKE_INSIDE_H
#define NEZHA_TESTS_FAKE_INSIDE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/conformance/fake_verbs.h"

#define FAKE_QUEUE 128          /* entries of any queue */

/* Of all that the provider knows. */
extern pthread_mutex_t fake_lock;

/* Whether the fault happens this time; the device has failed.  The lock is held. */
bool fake_happens(enum fake_fault fault);
bool fake_is_dead(const struct ibv_context *context);

/* Ends the process: what the rail did, or the machine refused, no device would bear. */
_Noreturn void fake_bug(const char *what);

/* Zeroed memory that counts as an object, and its end (0). */
void *fake_make(size_t bytes);
int fake_unmake(void *object);

/* Puts a completion into the queue, and makes an event if that is armed.  The lock is held. */
void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc);

/* For the table of verbs. */
struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *context);
int fake_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *fake_create_cq(struct ibv_context *context, int entries, void *cq_context, struct ibv_comp_channel *channel,
                              int vector);
int fake_destroy_cq(struct ibv_cq *cq);
int fake_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void fake_ack_cq_events(struct ibv_cq *cq, unsigned count);
int fake_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *out);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int fake_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int fake_destroy_qp(struct ibv_qp *qp);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
