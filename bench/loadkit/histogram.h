/* A latency histogram with buckets of constant relative width (64 to the octave, 1.6 %), in nanoseconds.
 * Values below 64 ns are exact. Recording costs a few instructions and never allocates. */
#ifndef LOADKIT_HISTOGRAM_H
#define LOADKIT_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_SUB_BITS) << HISTOGRAM_SUB_BITS)

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
    uint64_t largest;
};

void histogram_clear(struct histogram *histogram);
void histogram_record(struct histogram *histogram, int64_t nanoseconds);
double histogram_quantile_ms(const struct histogram *histogram, double quantile);
/* {"count": n, "p50_ms": ..., "p99_ms": ..., "p999_ms": ..., "max_ms": ..., "buckets": [[upper_ns, count], ...]} */
void histogram_print(const struct histogram *histogram, FILE *out);

#endif
