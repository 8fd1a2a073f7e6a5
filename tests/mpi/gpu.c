/* SPDX-License-Identifier: BSD-3-Clause
 * Nothing but the name that the linker gives it, that of a GPU's library. */
int nezha_test_gpu;
