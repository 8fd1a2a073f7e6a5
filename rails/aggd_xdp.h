/* SPDX-License-Identifier: BSD-3-Clause
 * The XDP program in the kernel: loading, attaching, its maps.  What the daemon does with it is aggd_offload.c.  One thread.
 *
 * The program is attached by a link that the kernel takes away with the process, however that ends, so that no port is left with a
 * program that nobody serves. */
#ifndef NEZHA_RAILS_AGGD_XDP_H
#define NEZHA_RAILS_AGGD_XDP_H

#include <netinet/in.h>
#include <stdint.h>

#include "rails/ina_xdp.h"

struct aggd_xdp;

/* The compiled program (ina_xdp.bpf.o); the file with it is made while Nezha is built. */
extern const unsigned char nezha_xdp_object[];
extern const size_t nezha_xdp_object_size;

/* How this was built, for --version: "with libbpf 1.1", "not built in". */
const char *aggd_xdp_about(void);

/* Bytes of kernel memory for each chunk in flight: a session takes 2 * window of them. */
#define AGGD_XDP_VERSION_BYTES sizeof(struct nezha_xdp_version)

/* Loads the program, with memory for `memory` bytes of chunks.  NEZHA_ERR_UNSUPPORTED: not built in;
 * NEZHA_ERR_SYSTEM, NEZHA_ERR_NOMEM; one line is logged. */
int aggd_xdp_create(uint64_t memory, struct aggd_xdp **out);
void aggd_xdp_destroy(struct aggd_xdp *xdp);     /* detaches, too; NULL is allowed */

/* Attaches it to a device, in the driver; results go out of it, too.  NEZHA_ERR_SYSTEM; one line is logged. */
int aggd_xdp_attach(struct aggd_xdp *xdp, const char *device);

/* Versions for a session; false: too few are left. */
bool aggd_xdp_reserve(struct aggd_xdp *xdp, uint32_t window, uint32_t *base);
void aggd_xdp_release(struct aggd_xdp *xdp, uint32_t window, uint32_t base);

/* From now on the program serves the session, whose base is reserved; false: it does not. */
bool aggd_xdp_open(struct aggd_xdp *xdp, uint64_t token, const struct nezha_xdp_session *session);
void aggd_xdp_close(struct aggd_xdp *xdp, uint64_t token);

/* The version that is for chunk `seq`; false: it cannot be read. */
bool aggd_xdp_look(struct aggd_xdp *xdp, const struct nezha_xdp_session *session, uint32_t seq,
                   struct nezha_xdp_version *out);

/* Sends the frame out of all devices, by the way of the results.  false: it cannot be done. */
bool aggd_xdp_send(struct aggd_xdp *xdp, const void *frame, uint32_t size);

/* All that the program has counted. */
void aggd_xdp_count(const struct aggd_xdp *xdp, struct nezha_xdp_counts *out);

/* Descriptor of the program (tests run it without a device). */
int aggd_xdp_program(const struct aggd_xdp *xdp);

#endif
