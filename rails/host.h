/* SPDX-License-Identifier: BSD-3-Clause
 * Which host is this? */
#ifndef NEZHA_RAILS_HOST_H
#define NEZHA_RAILS_HOST_H

#include <stddef.h>
#include <stdint.h>

/* A number that two processes share if and only if they run on the same host: a hash of the kernel's boot id and the
 * host name (containers of one machine with names of their own count as hosts of their own).  `name` gets the
 * host name, cut to `size`. */
uint64_t nezha_host_identity(char *name, size_t size);

#endif
