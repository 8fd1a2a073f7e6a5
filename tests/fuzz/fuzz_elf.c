/* SPDX-License-Identifier: BSD-3-Clause
 * Any bytes as a program for nezha-info --check: refused, or judged by names that lie within the file. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tuning/elf.h"
#include "tuning/intercept.h"
#include "tuning/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nezha_elf elf;
	struct nezha_intercept verdict;
	char interpreter[64];

	if (nezha_script_interpreter(data, size, interpreter, sizeof interpreter))
		fuzz_assert(*interpreter && !strpbrk(interpreter, " \t\n"));
	if (nezha_elf_parse(data, size, &elf) != NEZHA_OK)
		return 0;
	for (size_t i = 0; i < elf.needed_count; i++)
		fuzz_assert((const uint8_t *)elf.needed[i] >= data &&
		            (const uint8_t *)elf.needed[i] + strlen(elf.needed[i]) < data + size);
	for (int privileged = 0; privileged <= 1; privileged++) {
		nezha_intercept_judge(&elf, privileged, &verdict);
		fuzz_assert(*verdict.why && !verdict.mpi == !verdict.library);
		fuzz_assert(!verdict.can ||
		            (elf.kind == NEZHA_ELF_DYNAMIC && !privileged && !elf.defines_mpi));
	}
	return 0;
}
