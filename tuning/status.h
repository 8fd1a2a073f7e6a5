/* SPDX-License-Identifier: BSD-3-Clause
 * What every function of Nezha that can fail returns: NEZHA_OK, NEZHA_INPROGRESS or a
 * negative NEZHA_ERR_*.  Who detects an error logs it (log.h); callers stay silent.  Outputs
 * are set only on success. */
#ifndef NEZHA_TUNING_STATUS_H
#define NEZHA_TUNING_STATUS_H

enum nezha_status {
	NEZHA_OK = 0,
	NEZHA_INPROGRESS = 1,      /* not finished, no error: come again */
	NEZHA_ERR_INVALID = -1,    /* a value that is not allowed */
	NEZHA_ERR_NOMEM = -2,
	NEZHA_ERR_SYSTEM = -3,     /* a system call failed; errno was logged */
	NEZHA_ERR_TIMEOUT = -4,
	NEZHA_ERR_UNREACHABLE = -5,/* no rail leads there */
	NEZHA_ERR_CLOSED = -6,     /* the other end is gone */
	NEZHA_ERR_PROTOCOL = -7,   /* bytes from the network that make no sense */
	NEZHA_ERR_UNSUPPORTED = -8,
	NEZHA_ERR_DISAGREE = -9,   /* ranks that must hold the same do not */
	NEZHA_ERR_WRONG = -10,     /* a result is not what it must be */
};

#endif
