# SPDX-License-Identifier: BSD-3-Clause
# NEZHA_SANITIZERS
# --enable-asan, --enable-ubsan, --enable-tsan and --enable-fuzz.  Sets SANITIZE_CFLAGS (to compile and to link
# with), FUZZ_LDFLAGS (to link a libFuzzer target), the conditional ENABLE_FUZZ, and $nezha_sanitizers for the
# summary.
AC_DEFUN([NEZHA_SANITIZERS], [
AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [build with AddressSanitizer])], [], [enable_asan=no])
AC_ARG_ENABLE([ubsan], [AS_HELP_STRING([--enable-ubsan], [build with UndefinedBehaviorSanitizer])],
	[], [enable_ubsan=no])
AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])], [], [enable_tsan=no])
AC_ARG_ENABLE([fuzz],
	[AS_HELP_STRING([--enable-fuzz], [build the libFuzzer targets, with ASan and UBSan (CC=clang)])],
	[], [enable_fuzz=no])
AS_IF([test "$enable_fuzz" = yes], [enable_asan=yes enable_ubsan=yes])
AS_IF([test "$enable_tsan$enable_asan" = yesyes],
	[AC_MSG_ERROR([ThreadSanitizer goes together neither with --enable-asan nor with --enable-fuzz])])
nezha_sanitizers=
AS_IF([test "$enable_asan" = yes], [nezha_sanitizers=address])
AS_IF([test "$enable_tsan" = yes], [nezha_sanitizers=thread])
AS_IF([test "$enable_ubsan" = yes], [nezha_sanitizers="${nezha_sanitizers:+$nezha_sanitizers,}undefined"])
SANITIZE_CFLAGS=
AS_IF([test -n "$nezha_sanitizers"], [
	SANITIZE_CFLAGS="-fsanitize=$nezha_sanitizers -fno-omit-frame-pointer"
	AS_IF([test "$enable_ubsan" = yes],
		[SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fno-sanitize-recover=undefined"])
	NEZHA_TRY_LINK([$SANITIZE_CFLAGS], [], [],
		[AC_MSG_ERROR([$CC cannot link with $SANITIZE_CFLAGS (is its runtime installed?)])])
])
FUZZ_LDFLAGS=
AS_IF([test "$enable_fuzz" = yes], [
	NEZHA_TRY_LINK([$SANITIZE_CFLAGS -fsanitize=fuzzer-no-link], [-fsanitize=fuzzer],
		[int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size);
		 int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size)
		 { return data && size > 1; }],
		[AC_MSG_ERROR([$CC has no libFuzzer: use CC=clang with --enable-fuzz])])
	SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fsanitize=fuzzer-no-link"
	FUZZ_LDFLAGS=-fsanitize=fuzzer
])
AC_SUBST([SANITIZE_CFLAGS])
AC_SUBST([FUZZ_LDFLAGS])
AM_CONDITIONAL([ENABLE_FUZZ], [test "$enable_fuzz" = yes])
])

# NEZHA_TRY_LINK(CFLAGS, LDFLAGS, SOURCE (empty: a main), IF-NOT)
AC_DEFUN([NEZHA_TRY_LINK], [
nezha_cflags=$CFLAGS nezha_ldflags=$LDFLAGS
CFLAGS="$CFLAGS $1" LDFLAGS="$LDFLAGS $2"
AC_MSG_CHECKING([whether $CC links with $1 $2])
AC_LINK_IFELSE([m4_ifblank([$3], [AC_LANG_PROGRAM()], [AC_LANG_SOURCE([$3])])],
	[AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])
	$4])
CFLAGS=$nezha_cflags LDFLAGS=$nezha_ldflags
])
