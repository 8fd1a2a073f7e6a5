/* SPDX-License-Identifier: BSD-3-Clause */
#include "tuning/elf.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "tuning/status.h"

#define SYMBOLS_MAX (1u << 24)   /* of one table */

struct file {
	const unsigned char *bytes;
	size_t len;
	ElfW(Ehdr) header;
};

/* Copies `size` bytes at `offset`: nothing in a file is aligned for sure. */
static bool get(const struct file *file, uint64_t offset, void *to, size_t size)
{
	if (offset > file->len || size > file->len - offset)
		return false;
	memcpy(to, file->bytes + offset, size);
	return true;
}

/* The text at `offset` that ends before `end`; NULL if it does not. */
static const char *text_at(const struct file *file, uint64_t offset, uint64_t end)
{
	size_t room;

	if (end > file->len)
		end = file->len;
	if (offset >= end)
		return NULL;
	room = (size_t)(end - offset);
	if (room > NEZHA_ELF_NAME_MAX)
		room = NEZHA_ELF_NAME_MAX;
	return memchr(file->bytes + offset, '\0', room) ? (const char *)file->bytes + offset : NULL;
}

static bool segment(const struct file *file, size_t index, ElfW(Phdr) *out)
{
	return get(file, file->header.e_phoff + (uint64_t)index * sizeof *out, out, sizeof *out);
}

static bool section(const struct file *file, size_t index, ElfW(Shdr) *out)
{
	return get(file, file->header.e_shoff + (uint64_t)index * sizeof *out, out, sizeof *out);
}

/* Where in the file the byte lies that is loaded at `address`. */
static bool offset_of(const struct file *file, uint64_t address, uint64_t *offset)
{
	ElfW(Phdr) load;

	for (size_t i = 0; i < file->header.e_phnum; i++) {
		if (!segment(file, i, &load))
			return false;
		if (load.p_type == PT_LOAD && address >= load.p_vaddr &&
		    address - load.p_vaddr < load.p_filesz) {
			*offset = load.p_offset + (address - load.p_vaddr);
			return *offset >= load.p_offset;
		}
	}
	return false;
}

/* ---- the dynamic section: which libraries are needed ---- */

static bool dynamic_entry(const struct file *file, const ElfW(Phdr) *dynamic, size_t index, ElfW(Dyn) *out)
{
	return (index + 1) * sizeof *out <= dynamic->p_filesz &&
	       get(file, dynamic->p_offset + index * sizeof *out, out, sizeof *out) && out->d_tag != DT_NULL;
}

static int read_needed(const struct file *file, const ElfW(Phdr) *dynamic, struct nezha_elf *out)
{
	uint64_t table = 0, size = 0, offset = 0;
	bool found;
	ElfW(Dyn) entry;

	for (size_t i = 0; dynamic_entry(file, dynamic, i, &entry); i++) {
		if (entry.d_tag == DT_STRTAB)
			table = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRSZ)
			size = entry.d_un.d_val;
	}
	found = size <= file->len && offset_of(file, table, &offset);
	for (size_t i = 0; dynamic_entry(file, dynamic, i, &entry); i++) {
		const char *name;

		if (entry.d_tag != DT_NEEDED)
			continue;
		if (!found)
			return NEZHA_ERR_INVALID;
		name = NULL;
		if (entry.d_un.d_val < size)
			name = text_at(file, offset + entry.d_un.d_val, offset + size);
		if (!name)
			return NEZHA_ERR_INVALID;
		if (out->needed_count < NEZHA_ELF_NEEDED_MAX)
			out->needed[out->needed_count++] = name;
	}
	return NEZHA_OK;
}

/* ---- the symbols: MPI_Allreduce called or contained ---- */

static bool is_allreduce(const char *name)
{
	static const char *const names[] = { "MPI_Allreduce",       "PMPI_Allreduce", "MPI_Allreduce_c",
		                             "PMPI_Allreduce_c",    "mpi_allreduce_", "mpi_allreduce__",
		                             "MPI_ALLREDUCE",       "mpi_allreduce",  "mpi_allreduce_f08_",
		                             "mpi_allreduce_f08ts_" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int read_symbols(const struct file *file, const ElfW(Shdr) *symbols, struct nezha_elf *out)
{
	uint64_t count = symbols->sh_size / sizeof(ElfW(Sym));
	ElfW(Shdr) names;

	if (!section(file, symbols->sh_link, &names) || symbols->sh_link >= file->header.e_shnum ||
	    count > SYMBOLS_MAX || names.sh_offset > file->len || names.sh_size > file->len - names.sh_offset)
		return NEZHA_ERR_INVALID;
	out->symbols_known = true;
	for (uint64_t i = 0; i < count; i++) {
		ElfW(Sym) symbol;
		const char *name;

		if (!get(file, symbols->sh_offset + i * sizeof symbol, &symbol, sizeof symbol))
			return NEZHA_ERR_INVALID;
		name = text_at(file, names.sh_offset + symbol.st_name, names.sh_offset + names.sh_size);
		if (!name || !is_allreduce(name))
			continue;
		out->calls_allreduce = true;
		/* The PLT entry of an imported function may have an address, but no section.  A tool that is linked in
		 * defines MPI_Allreduce, and calls PMPI_Allreduce, which is intercepted: only an MPI library defines that. */
		if (symbol.st_shndx != SHN_UNDEF && !strncmp(name, "PMPI_Allreduce", strlen("PMPI_Allreduce")))
			out->defines_mpi = true;
	}
	return NEZHA_OK;
}

/* A file has one table of each kind; more of them could cost any time. */
static int read_table(const struct file *file, uint32_t type, struct nezha_elf *out)
{
	for (size_t i = 0; i < file->header.e_shnum; i++) {
		ElfW(Shdr) header;

		if (!section(file, i, &header))
			return NEZHA_ERR_INVALID;
		if (header.sh_type == type)
			return read_symbols(file, &header, out);
	}
	return NEZHA_OK;
}

static int read_all_symbols(const struct file *file, struct nezha_elf *out)
{
	int status = read_table(file, SHT_DYNSYM, out);

	return status == NEZHA_OK ? read_table(file, SHT_SYMTAB, out) : status;
}

/* ---- the file ---- */

static bool is_native(const ElfW(Ehdr) *header)
{
	static const uint16_t one = 1;
	const unsigned char data = *(const unsigned char *)&one ? ELFDATA2LSB : ELFDATA2MSB;
#if defined __x86_64__
	const unsigned machine = EM_X86_64;
#elif defined __aarch64__
	const unsigned machine = EM_AARCH64;
#elif defined __powerpc64__
	const unsigned machine = EM_PPC64;
#elif defined __riscv
	const unsigned machine = EM_RISCV;
#elif defined __s390x__
	const unsigned machine = EM_S390;
#else
	const unsigned machine = header->e_machine;
#endif

	return header->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
	       header->e_ident[EI_DATA] == data && header->e_machine == machine;
}

static int read_segments(const struct file *file, struct nezha_elf *out)
{
	bool loader = false, dynamic = false;
	int status = NEZHA_OK;

	if (file->header.e_phnum && file->header.e_phentsize != sizeof(ElfW(Phdr)))
		return NEZHA_ERR_INVALID;
	for (size_t i = 0; i < file->header.e_phnum && status == NEZHA_OK; i++) {
		ElfW(Phdr) header;

		if (!segment(file, i, &header))
			return NEZHA_ERR_INVALID;
		loader |= header.p_type == PT_INTERP;
		if (header.p_type == PT_DYNAMIC && !dynamic) {
			dynamic = true;
			status = read_needed(file, &header, out);
		}
	}
	/* A position-independent program without a loader (-static-pie) has a dynamic section, but needs
	 * nothing. */
	out->kind = loader ? NEZHA_ELF_DYNAMIC :
	            file->header.e_type == ET_DYN && out->needed_count ? NEZHA_ELF_LIBRARY : NEZHA_ELF_STATIC;
	return status;
}

int nezha_elf_parse(const void *data, size_t len, struct nezha_elf *out)
{
	struct file file = { .bytes = data, .len = len };
	int status;

	*out = (struct nezha_elf){ .kind = NEZHA_ELF_NONE };
	if (len < EI_NIDENT || memcmp(data, ELFMAG, SELFMAG) != 0)
		return NEZHA_OK;
	out->kind = NEZHA_ELF_FOREIGN;
	if (!get(&file, 0, &file.header, sizeof file.header))
		return NEZHA_ERR_INVALID;
	if (!is_native(&file.header))
		return NEZHA_OK;
	out->kind = NEZHA_ELF_OBJECT;
	if (file.header.e_type != ET_EXEC && file.header.e_type != ET_DYN)
		return NEZHA_OK;
	if (file.header.e_shnum && file.header.e_shentsize != sizeof(ElfW(Shdr)))
		return NEZHA_ERR_INVALID;
	status = read_segments(&file, out);
	return status == NEZHA_OK ? read_all_symbols(&file, out) : status;
}
