! SPDX-License-Identifier: BSD-3-Clause
! MPI_Allreduce as a program with "use mpi_f08" calls it.
program use_mpi_f08
  use mpi_f08
  use iso_fortran_env, only: int64, real32
  implicit none
  integer, parameter :: n = 300001
  real(real32), allocatable :: x(:), y(:)
  integer(int64), allocatable :: k(:)
  integer :: i, ierr, rank, ranks, wrong, all_wrong

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  allocate (x(n), y(n), k(n))
  x = [(real(rank + mod(i, 97), real32), i=1, n)]
  k = [(int(rank * 3 + mod(i, 101), int64), i=1, n)]
  call MPI_Allreduce(x, y, n, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Allreduce(MPI_IN_PLACE, k, n, MPI_INTEGER8, MPI_MAX, MPI_COMM_WORLD, ierr)
  wrong = count(y /= [(real(ranks * (ranks - 1) / 2 + ranks * mod(i, 97), real32), i=1, n)])
  wrong = wrong + count(k /= [(int((ranks - 1) * 3 + mod(i, 101), int64), i=1, n)])
  call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) then
    if (all_wrong == 0) then
      print '(a)', 'fortran: passed'
    else
      print '(a,i0,a)', 'fortran: ', all_wrong, ' failures'
    end if
  end if
  call MPI_Finalize(ierr)
end program use_mpi_f08
