C     SPDX-License-Identifier: BSD-3-Clause
C     MPI_Allreduce as a fixed-form program with mpif.h calls it.
      PROGRAM MPIFH
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER N
      PARAMETER (N = 300001)
      REAL X(N), Y(N)
      DOUBLE PRECISION D(N)
      INTEGER I, IERR, RANK, RANKS, WRONG, ALL
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, RANKS, IERR)
      DO I = 1, N
         X(I) = REAL(RANK + MOD(I, 97))
         D(I) = DBLE(RANK * 3 + MOD(I, 101))
      END DO
      CALL MPI_ALLREDUCE(X, Y, N, MPI_REAL, MPI_SUM, MPI_COMM_WORLD,
     &                   IERR)
      CALL MPI_ALLREDUCE(MPI_IN_PLACE, D, N, MPI_DOUBLE_PRECISION,
     &                   MPI_MAX, MPI_COMM_WORLD, IERR)
      WRONG = 0
      DO I = 1, N
         IF (Y(I) .NE. REAL(RANKS * (RANKS - 1) / 2
     &       + RANKS * MOD(I, 97))) WRONG = WRONG + 1
         IF (D(I) .NE. DBLE((RANKS - 1) * 3 + MOD(I, 101)))
     &      WRONG = WRONG + 1
      END DO
      CALL MPI_REDUCE(WRONG, ALL, 1, MPI_INTEGER, MPI_SUM, 0,
     &                MPI_COMM_WORLD, IERR)
      IF (RANK .EQ. 0) THEN
         IF (ALL .EQ. 0) THEN
            PRINT '(A)', 'fortran: passed'
         ELSE
            PRINT '(A,I0,A)', 'fortran: ', ALL, ' failures'
         END IF
      END IF
      CALL MPI_FINALIZE(IERR)
      END
