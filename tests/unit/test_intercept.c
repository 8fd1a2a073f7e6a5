/* SPDX-License-Identifier: BSD-3-Clause
 * ELF files made up here: what they are, which MPI they need, and whether they can be intercepted. */
#include "tests/unit/unit.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/elf.h"
#include "tuning/intercept.h"
#include "tuning/status.h"

#define BASE 0x400000u
#define ROOM 4096

/* What a file is made of; lists end with NULL. */
struct recipe {
	uint16_t type;
	bool loader, no_dynamic, no_sections;
	const char *needed[4], *imports[4], *defines[4];
};

struct image {
	unsigned char bytes[ROOM];
	size_t len;
	/* where things lie, for tests that damage them */
	size_t segments, dynamic, strings, symbols, sections;
};

static size_t append(struct image *image, const void *data, size_t size)
{
	size_t at = image->len;

	assert_true(size <= ROOM - at);
	memcpy(image->bytes + at, data, size);
	image->len += size;
	return at;
}

static size_t append_names(struct image *image, const char *const *names, size_t *offsets)
{
	size_t n;

	for (n = 0; names[n]; n++)
		offsets[n] = append(image, names[n], strlen(names[n]) + 1) - image->strings;
	return n;
}

static void append_symbol(struct image *image, size_t name, uint16_t section)
{
	ElfW(Sym) symbol = { .st_name = (uint32_t)name, .st_shndx = section, .st_value = section ? BASE : 0 };

	append(image, &symbol, sizeof symbol);
}

static void append_dynamic(struct image *image, int64_t tag, uint64_t value)
{
	ElfW(Dyn) entry = { .d_tag = tag, .d_un.d_val = value };

	append(image, &entry, sizeof entry);
}

/* As a file of this machine: taken from this very program. */
static void identify(ElfW(Ehdr) *header)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	ElfW(Ehdr) self;

	assert_non_null(f);
	assert_int_equal(fread(&self, sizeof self, 1, f), 1);
	fclose(f);
	memcpy(header->e_ident, self.e_ident, EI_NIDENT);
	header->e_machine = self.e_machine;
}

static void build(const struct recipe *recipe, struct image *image)
{
	ElfW(Ehdr) header = { .e_type = recipe->type,
		              .e_version = EV_CURRENT,
		              .e_phentsize = sizeof(ElfW(Phdr)),
		              .e_shentsize = sizeof(ElfW(Shdr)) };
	ElfW(Phdr) load = { .p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = ROOM };
	ElfW(Phdr) interp = { .p_type = PT_INTERP }, dynamic = { .p_type = PT_DYNAMIC };
	ElfW(Shdr) section = { .sh_type = SHT_NULL };
	size_t needed[4], imports[4], defines[4], needed_count, import_count, define_count, strings_size;

	*image = (struct image){ .len = sizeof header };
	image->strings = append(image, "", 1);
	needed_count = append_names(image, recipe->needed, needed);
	import_count = append_names(image, recipe->imports, imports);
	define_count = append_names(image, recipe->defines, defines);
	strings_size = image->len - image->strings;
	image->symbols = image->len;
	append_symbol(image, 0, 0);
	for (size_t i = 0; i < import_count; i++)
		append_symbol(image, imports[i], SHN_UNDEF);
	for (size_t i = 0; i < define_count; i++)
		append_symbol(image, defines[i], 1);
	image->dynamic = image->len;
	append_dynamic(image, DT_STRTAB, BASE + image->strings);
	append_dynamic(image, DT_STRSZ, strings_size);
	for (size_t i = 0; i < needed_count; i++)
		append_dynamic(image, DT_NEEDED, needed[i]);
	append_dynamic(image, DT_NULL, 0);
	dynamic.p_offset = image->dynamic;
	dynamic.p_filesz = image->len - image->dynamic;
	image->segments = append(image, &load, sizeof load);
	header.e_phnum = 1;
	if (recipe->loader) {
		append(image, &interp, sizeof interp);
		header.e_phnum++;
	}
	if (!recipe->no_dynamic) {
		append(image, &dynamic, sizeof dynamic);
		header.e_phnum++;
	}
	image->sections = append(image, &section, sizeof section);
	section = (ElfW(Shdr)){ .sh_type = SHT_STRTAB, .sh_offset = image->strings, .sh_size = strings_size };
	append(image, &section, sizeof section);
	section = (ElfW(Shdr)){ .sh_type = SHT_DYNSYM, .sh_offset = image->symbols, .sh_link = 1,
	                        .sh_size = (1 + import_count + define_count) * sizeof(ElfW(Sym)) };
	append(image, &section, sizeof section);
	header.e_phoff = image->segments;
	header.e_shoff = recipe->no_sections ? 0 : image->sections;
	header.e_shnum = recipe->no_sections ? 0 : 3;
	identify(&header);
	memcpy(image->bytes, &header, sizeof header);
}

/* The file in a buffer of exactly its size, so that a sanitizer sees a byte read too far. */
static int parse(const struct image *image, struct nezha_elf *out, unsigned char **copy)
{
	*copy = malloc(image->len ? image->len : 1);
	assert_non_null(*copy);
	memcpy(*copy, image->bytes, image->len);
	return nezha_elf_parse(*copy, image->len, out);
}

static void judge(const struct recipe *recipe, bool privileged, bool can, const char *mpi, const char *why)
{
	struct image image;
	struct nezha_elf elf;
	struct nezha_intercept verdict;
	unsigned char *copy;

	build(recipe, &image);
	assert_int_equal(parse(&image, &elf, &copy), NEZHA_OK);
	nezha_intercept_judge(&elf, privileged, &verdict);
	assert_int_equal(verdict.can, can);
	assert_non_null(strstr(verdict.why, why));
	if (mpi)
		assert_string_equal(verdict.mpi, mpi);
	else
		assert_null(verdict.mpi);
	free(copy);
}

static void which_mpi(void **state)
{
	static const struct {
		const char *library, *mpi;
	} cases[] = {
		{ "libmpich.so.12", "MPICH" },
		{ "libmpi.so.12", "MPICH" },
		{ "libmpifort.so.12", "MPICH" },
		{ "libmpichfort.so.12", "MPICH" },
		{ "libmpi.so.40", "Open MPI" },
		{ "libmpi_mpifh.so.40", "Open MPI" },
		{ "libmpi_usempif08.so.40", "Open MPI" },
		{ "libmpi.so", "MPI" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct recipe recipe = { .type = ET_EXEC,
			                 .loader = true,
			                 .needed = { "libc.so.6", cases[i].library } };

		judge(&recipe, false, true, cases[i].mpi, cases[i].library);
	}
}

static void programs_that_can(void **state)
{
	struct recipe plain = { .type = ET_DYN, .loader = true, .needed = { "libc.so.6", "libmpicalc.so" } };
	struct recipe bare = { .type = ET_DYN, .loader = true, .no_dynamic = true, .no_sections = true };
	struct recipe tool = { .type = ET_EXEC, .loader = true, .needed = { "libmpi.so.40" },
	                       .imports = { "PMPI_Allreduce" }, .defines = { "MPI_Allreduce" } };

	(void)state;
	judge(&tool, false, true, "Open MPI", "libmpi.so.40");
	judge(&plain, false, true, NULL, "does not link an MPI library itself");
	judge(&bare, false, true, NULL, "does not link an MPI library itself");
}

static void programs_that_cannot(void **state)
{
	struct recipe fixed = { .type = ET_EXEC, .no_dynamic = true };
	struct recipe pie = { .type = ET_DYN };
	struct recipe library = { .type = ET_DYN, .needed = { "libc.so.6" } };
	struct recipe object = { .type = ET_REL };
	struct recipe mpi = { .type = ET_EXEC, .loader = true, .needed = { "libmpi.so.40" } };
	struct recipe inside = { .type = ET_EXEC, .loader = true, .needed = { "libc.so.6" },
	                         .defines = { "main", "PMPI_Allreduce" } };
	struct recipe standard = { .type = ET_EXEC, .loader = true, .needed = { "libc.so.6", "libmpi_abi.so.0" } };

	(void)state;
	judge(&standard, false, false, "MPI", "libmpi_abi.so.0, the ABI of MPI 5");
	judge(&fixed, false, false, NULL, "statically linked");
	judge(&pie, false, false, NULL, "statically linked");
	judge(&library, false, false, NULL, "a shared library");
	judge(&object, false, false, NULL, "an object file");
	judge(&mpi, true, false, "Open MPI", "more rights than its caller");
	judge(&inside, false, false, NULL, "linked into it statically");
}

static void calls_are_seen(void **state)
{
	static const struct {
		const char *import;
		bool calls;
	} cases[] = {
		{ "MPI_Allreduce", true }, { "mpi_allreduce_", true }, { "mpi_allreduce_f08_", true },
		{ "MPI_Iallreduce", false }, { "MPI_Allreduce_", false }, { "printf", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct recipe recipe = { .type = ET_EXEC,
			                 .loader = true,
			                 .imports = { "malloc", cases[i].import } };
		struct image image;
		struct nezha_elf elf;
		unsigned char *copy;

		build(&recipe, &image);
		assert_int_equal(parse(&image, &elf, &copy), NEZHA_OK);
		assert_true(elf.symbols_known && !elf.defines_mpi);
		assert_int_equal(elf.calls_allreduce, cases[i].calls);
		free(copy);
	}
}

static void other_files_are_told(void **state)
{
	struct recipe recipe = { .type = ET_EXEC, .loader = true };
	struct image image;
	struct nezha_elf elf;
	static const size_t marks[] = { EI_CLASS, EI_DATA, offsetof(ElfW(Ehdr), e_machine) };

	(void)state;
	assert_int_equal(nezha_elf_parse("", 0, &elf), NEZHA_OK);
	assert_int_equal(elf.kind, NEZHA_ELF_NONE);
	assert_int_equal(nezha_elf_parse("#!/bin/sh\n exit 0 # long enough", 30, &elf), NEZHA_OK);
	assert_int_equal(elf.kind, NEZHA_ELF_NONE);
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		build(&recipe, &image);
		image.bytes[marks[i]] ^= 3;
		assert_int_equal(nezha_elf_parse(image.bytes, image.len, &elf), NEZHA_OK);
		assert_int_equal(elf.kind, NEZHA_ELF_FOREIGN);
	}
}

/* Every shorter file is refused or has less in it, and no byte behind its end is read. */
static void cut_files(void **state)
{
	struct recipe recipe = { .type = ET_EXEC, .loader = true, .needed = { "libmpi.so.40" },
	                         .imports = { "MPI_Allreduce" } };
	struct image image;
	struct nezha_elf elf;
	unsigned char *copy;

	(void)state;
	build(&recipe, &image);
	assert_int_equal(parse(&image, &elf, &copy), NEZHA_OK);
	assert_true(elf.kind == NEZHA_ELF_DYNAMIC && elf.needed_count == 1);
	free(copy);
	while (image.len-- > 1) {
		int status = parse(&image, &elf, &copy);

		assert_true(status == NEZHA_ERR_INVALID ||
		            (image.len < EI_NIDENT && elf.kind == NEZHA_ELF_NONE));
		free(copy);
	}
}

static void damaged_files_are_refused(void **state)
{
	struct recipe recipe = { .type = ET_EXEC, .loader = true, .needed = { "libmpi.so.40" },
	                         .imports = { "MPI_Allreduce" } };
	struct image image;
	size_t at[6];

	(void)state;
	build(&recipe, &image);
	at[0] = offsetof(ElfW(Ehdr), e_phoff) + 7;
	at[1] = offsetof(ElfW(Ehdr), e_shoff) + 7;
	at[2] = offsetof(ElfW(Ehdr), e_phentsize);
	at[3] = offsetof(ElfW(Ehdr), e_shentsize);
	at[4] = image.dynamic + offsetof(ElfW(Dyn), d_un) + 7; /* address of the names */
	at[5] = image.dynamic + 2 * sizeof(ElfW(Dyn)) + offsetof(ElfW(Dyn), d_un) + 1;  /* a library's name */
	for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
		struct nezha_elf elf;
		unsigned char *copy;

		build(&recipe, &image);
		image.bytes[at[i]] ^= 0x7f;
		assert_int_equal(parse(&image, &elf, &copy), NEZHA_ERR_INVALID);
		free(copy);
	}
}

static void this_program(void **state)
{
	FILE *f = fopen("/proc/self/exe", "rb");
	struct nezha_elf elf;
	unsigned char *bytes = NULL;
	size_t len = 0, n;

	(void)state;
	assert_non_null(f);
	do {
		bytes = realloc(bytes, len + 65536);
		assert_non_null(bytes);
		n = fread(bytes + len, 1, 65536, f);
		len += n;
	} while (n);
	fclose(f);
	assert_int_equal(nezha_elf_parse(bytes, len, &elf), NEZHA_OK);
	assert_int_equal(elf.kind, NEZHA_ELF_DYNAMIC);
	assert_true(elf.needed_count > 0 && !elf.defines_mpi);
	free(bytes);
}

static void interpreters(void **state)
{
	static const struct {
		const char *text, *interpreter;
	} cases[] = {
		{ "#!/bin/sh\n", "/bin/sh" },
		{ "#! /usr/bin/env python3\n", "/usr/bin/env" },
		{ "#!\t/bin/a\tb\n", "/bin/a" },
		{ "#!/bin/sh", NULL },
		{ "#!\n", NULL },
		{ "#!", NULL },
		{ "# !/bin/sh\n", NULL },
		{ "", NULL },
		{ "#!/a-name-longer-than-there-is-room\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char name[16] = "?";
		bool is = nezha_script_interpreter(cases[i].text, strlen(cases[i].text), name, sizeof name);

		assert_int_equal(is, cases[i].interpreter != NULL);
		assert_string_equal(name, is ? cases[i].interpreter : "?");
	}
	assert_false(nezha_script_interpreter("#!/bin/s\0h\n", 11, (char[16]){ 0 }, 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_mpi),
		cmocka_unit_test(programs_that_can),
		cmocka_unit_test(programs_that_cannot),
		cmocka_unit_test(calls_are_seen),
		cmocka_unit_test(other_files_are_told),
		cmocka_unit_test(cut_files),
		cmocka_unit_test(damaged_files_are_refused),
		cmocka_unit_test(this_program),
		cmocka_unit_test(interpreters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
