# SPDX-License-Identifier: BSD-3-Clause
# NEZHA_XDP: whether nezha-aggd can be built with its XDP program: a clang that compiles to BPF, and libbpf.  Sets
# have_xdp, xdp_why (if not), HAVE_XDP, CLANG, BPF_TARGET_CFLAGS, BPF_CFLAGS and BPF_LIBS (of libbpf).
AC_DEFUN([NEZHA_XDP], [
AC_ARG_WITH([xdp], [AS_HELP_STRING([--without-xdp], [build nezha-aggd without its XDP program])], [], [with_xdp=check])
have_xdp=no
xdp_why="--without-xdp"
AS_IF([test "$with_xdp" != no], [
	PKG_CHECK_MODULES([BPF], [libbpf >= 1.0], [have_xdp=yes], [xdp_why="libbpf >= 1.0 is missing: libbpf-dev"])
	AC_PATH_PROG([CLANG], [clang])
	AS_IF([test -z "$CLANG"], [have_xdp=no; xdp_why="clang is missing"])
])
AS_IF([test $have_xdp = yes], [
	# The kernel's headers are where the host's compiler has them.
	multiarch=`$CC -print-multiarch 2>/dev/null`
	BPF_TARGET_CFLAGS="-target bpf -mcpu=v3 -ffreestanding -g -O2${multiarch:+ -idirafter /usr/include/$multiarch}"
	AC_MSG_CHECKING([whether $CLANG compiles to BPF])
	cat >conftest.bpf.c <<-END
		#include <linux/bpf.h>
		#include <linux/ip.h>
		#include <bpf/bpf_helpers.h>
		SEC("xdp") int pass(struct xdp_md *ctx) { return bpf_xdp_store_bytes(ctx, 0, 0, 0) ? XDP_DROP : XDP_PASS; }
	END
	AS_IF([$CLANG $BPF_TARGET_CFLAGS -c conftest.bpf.c -o conftest.bpf.o >&AS_MESSAGE_LOG_FD 2>&1],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		have_xdp=no
		xdp_why="clang does not compile to BPF, see config.log"])
	rm -f conftest.bpf.c conftest.bpf.o
])
AS_IF([test "$with_xdp" = yes && test $have_xdp = no], [AC_MSG_ERROR([--with-xdp: $xdp_why])])
AC_SUBST([BPF_TARGET_CFLAGS])
AM_CONDITIONAL([HAVE_XDP], [test $have_xdp = yes])
])
