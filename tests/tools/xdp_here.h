/* SPDX-License-Identifier: BSD-3-Clause
 * Whether XDP programs can be loaded where this runs: if so, one of ours that cannot be is at fault, and its test must not pass for
 * skipped. */
#ifndef NEZHA_TESTS_XDP_HERE_H
#define NEZHA_TESTS_XDP_HERE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <unistd.h>

/* A program that does nothing is let in; and the kernel is one that nezha-aggd asks for (Linux 5.18), by the youngest of the functions that
 * ours calls. */
static inline bool xdp_is_here(void)
{
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "pass", "GPL", pass, sizeof pass / sizeof *pass, NULL);

	if (fd < 0)
		return false;
	close(fd);
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_xdp_store_bytes, NULL) == 1;
}

#endif
