/* SPDX-License-Identifier: BSD-3-Clause
 * A small data-parallel training job, as programs that nobody wants to change look: every rank has samples of
 * its own, the gradients of a linear model are summed over the ranks in each step.   train [WEIGHTS [STEPS]]
 * Prints "train STEPS SECONDS LOSS_BEFORE LOSS_AFTER". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES 4

static float pseudo(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) / (float)(1 << 23) - 1;
}

/* gradient[] = this rank's part; returns its part of the squared error. */
static double gradient_of(const float *x, const float *y, const float *w, long n, float *gradient)
{
	double loss = 0;

	for (long i = 0; i < n; i++)
		gradient[i] = 0;
	for (int s = 0; s < SAMPLES; s++) {
		const float *sample = x + s * n;
		double sum = 0, error;

		for (long i = 0; i < n; i++)
			sum += (double)(sample[i] * w[i]);
		error = sum - (double)y[s];
		loss += error * error;
		for (long i = 0; i < n; i++)
			gradient[i] += (float)error * sample[i];
	}
	return loss;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2 << 20;
	int steps = argc > 2 ? atoi(argv[2]) : 10, rank, ranks;
	double start, first = 0, last = 0, mine, loss;
	float *x, *w, *gradient, *all, y[SAMPLES];
	unsigned state;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (n < 1 || n > 1 << 28 || steps < 1)
		MPI_Abort(MPI_COMM_WORLD, 2);
	x = malloc(sizeof(float) * (size_t)n * SAMPLES);
	w = calloc((size_t)n, sizeof(float));
	gradient = malloc(sizeof(float) * (size_t)n);
	all = malloc(sizeof(float) * (size_t)n);
	if (!x || !w || !gradient || !all)
		MPI_Abort(MPI_COMM_WORLD, 2);
	state = 12345u + (unsigned)rank;
	for (long i = 0; i < n * SAMPLES; i++)
		x[i] = pseudo(&state);
	for (int s = 0; s < SAMPLES; s++)
		y[s] = 10 * pseudo(&state);

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int step = 0; step < steps; step++) {
		mine = gradient_of(x, y, w, n, gradient);
		MPI_Allreduce(gradient, all, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Allreduce(&mine, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (step == 0)
			first = loss;
		last = loss;
		for (long i = 0; i < n; i++)
			w[i] -= all[i] / (float)n;
	}
	if (rank == 0) {
		printf("train %d %.3f %.3f %.6f\n", steps, MPI_Wtime() - start, first, last);
		fflush(stdout);
	}
	free(x);
	free(w);
	free(gradient);
	free(all);
	MPI_Finalize();
	return 0;
}
