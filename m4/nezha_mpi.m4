# SPDX-License-Identifier: BSD-3-Clause
# NEZHA_MPI(PREFIX, NAME, MACRO, PKG-CONFIG-NAMES, DEBIAN-PACKAGE)
# Looks for the MPI called NAME: --with-NAME=DIR (a prefix with bin/mpicc in it), else pkg-config, else the
# wrapper compiler mpicc.NAME.  MACRO is what only this MPI's mpi.h defines.  Sets
#   PREFIX_CPPFLAGS               how to find its mpi.h; nothing to link with
#   PREFIX_CC, _FC, _RUN          its mpicc, mpif90 and mpirun for the tests; empty where there is none
#   have_NAME, PREFIX_FOUND       yes or no; version or the reason why not
#   HAVE_PREFIX, HAVE_PREFIX_FC   conditionals
AC_DEFUN([NEZHA_MPI], [
AC_ARG_WITH([$2],
	[AS_HELP_STRING([--with-$2=DIR], [the $2 installed in DIR; default: the system's, if there is one])],
	[], [with_$2=auto])
have_$2=no $1[]_CPPFLAGS= $1[]_FOUND="not found; Debian: $5"
nezha_path=$PATH nezha_suffix=.$2
AS_CASE(["$with_$2"],
	[no], [$1[]_FOUND="left out by --without-$2" nezha_path=/nonexistent],
	[auto|yes], [],
	[nezha_path=$with_$2/bin nezha_suffix=])
AC_PATH_PROG([$1_CC], [mpicc$nezha_suffix], [], [$nezha_path])
AC_PATH_PROG([$1_FC], [mpif90$nezha_suffix], [], [$nezha_path])
AC_PATH_PROG([$1_RUN], [mpirun$nezha_suffix], [], [$nezha_path])
AS_IF([test "$with_$2" != no], [
	AC_MSG_CHECKING([for the headers of $2])
	AS_CASE(["$with_$2"], [auto|yes], [
		for nezha_pkg in $4; do
			$PKG_CONFIG --exists $nezha_pkg || continue
			$1[]_CPPFLAGS=`$PKG_CONFIG --cflags-only-I $nezha_pkg`
			break
		done])
	AS_IF([test -z "$$1[]_CPPFLAGS" && test -n "$$1[]_CC"],
		[$1[]_CPPFLAGS=`$$1[]_CC -show | tr ' ' '\n' | $SED -n 's/^-I/-I/p' | tr '\n' ' '`])
	$1[]_CPPFLAGS=`echo $$1[]_CPPFLAGS`
	nezha_cppflags=$CPPFLAGS
	CPPFLAGS="$$1[]_CPPFLAGS $CPPFLAGS"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#ifndef $3
#error another MPI
#endif]], [[return MPI_VERSION < 3 ? sizeof(char[MPI_VERSION - 2]) : 0;]])], [have_$2=yes])
	CPPFLAGS=$nezha_cppflags
	AS_IF([test $have_$2 = yes],
		[$1[]_FOUND=`NEZHA_MPI_VERSION([$$1[]_CPPFLAGS])`],
		[AS_IF([test "$with_$2" != auto],
			[AC_MSG_RESULT([no])
			AC_MSG_ERROR([--with-$2=$with_$2: no mpi.h of $2 there
  (wanted: DIR/bin/mpicc, or the package $5)])])])
	AC_MSG_RESULT([$have_$2])
])
$1[]_TOOLS=
for nezha_tool in "$$1[]_CC" "$$1[]_FC" "$$1[]_RUN"; do
	AS_IF([test -n "$nezha_tool"], [$1[]_TOOLS="$$1[]_TOOLS ${nezha_tool##*/}"])
done
AC_SUBST([$1_CPPFLAGS])
AM_CONDITIONAL([HAVE_$1], [test $have_$2 = yes])
AM_CONDITIONAL([HAVE_$1_CC], [test $have_$2 = yes && test -n "$$1[]_CC"])
AM_CONDITIONAL([HAVE_$1_FC],
	[test $have_$2 = yes && test -n "$$1[]_FC" && $$1[]_FC --version >/dev/null 2>&1])
])

# NEZHA_MPI_VERSION(CPPFLAGS): prints the version that mpi.h there gives.
m4_define([NEZHA_MPI_VERSION], [printf '%s\n' '#include <mpi.h>' \
	'#ifdef MPICH_VERSION' 'nezha: MPICH_VERSION' '#else' \
	'nezha: OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION' '#endif' |
	$CC $1 -E - 2>/dev/null | $SED -n 's/^nezha: *//p' | tr -d '" '])
