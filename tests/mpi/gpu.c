/* SPDX-License-Identifier: BSD-3-Clause
 * Nothing: what matters is the name of the file that the linker makes of it, that of a GPU's library. */
int nezha_test_gpu;
