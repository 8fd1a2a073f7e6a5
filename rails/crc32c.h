/* SPDX-License-Identifier: BSD-3-Clause
 * CRC32C: the Castagnoli polynomial as iSCSI has it (RFC 3720, 12.1).  It finds every error within 32 bits in a row, and all
 * but one of 2^32 others. */
#ifndef NEZHA_RAILS_CRC32C_H
#define NEZHA_RAILS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `length` bytes, by ISA-L where Nezha was built with it (the processor's instructions), else by tables. */
uint32_t nezha_crc32c(const void *data, size_t length);

/* The same by tables, on any machine: what tests compare with. */
uint32_t nezha_crc32c_tables(const void *data, size_t length);

/* What nezha_crc32c uses: "ISA-L" or "tables". */
const char *nezha_crc32c_by(void);

#endif
