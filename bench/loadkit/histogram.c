#include "histogram.h"

#include <string.h>

#define SUB (1u << HISTOGRAM_SUB_BITS)

static unsigned bucket_of(uint64_t value) {
    if (value < SUB) return (unsigned)value;
    unsigned octave = 63u - (unsigned)__builtin_clzll(value);
    unsigned shift = octave - HISTOGRAM_SUB_BITS;
    return ((shift + 1) << HISTOGRAM_SUB_BITS) + (unsigned)((value >> shift) - SUB);
}

static uint64_t upper_bound(unsigned bucket) {
    if (bucket < SUB) return bucket;
    unsigned shift = (bucket >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t first = (uint64_t)(SUB + (bucket & (SUB - 1))) << shift;
    return first + (1ull << shift) - 1;
}

void histogram_clear(struct histogram *histogram) { memset(histogram, 0, sizeof *histogram); }

void histogram_record(struct histogram *histogram, int64_t nanoseconds) {
    uint64_t value = nanoseconds > 0 ? (uint64_t)nanoseconds : 0;
    unsigned bucket = bucket_of(value);
    histogram->counts[bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1]++;
    histogram->total++;
    if (value > histogram->largest) histogram->largest = value;
}

double histogram_quantile_ms(const struct histogram *histogram, double quantile) {
    if (histogram->total == 0) return 0;
    uint64_t wanted = (uint64_t)(quantile * (double)histogram->total);
    if (wanted >= histogram->total) wanted = histogram->total - 1;
    uint64_t passed = 0;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        passed += histogram->counts[bucket];
        if (passed > wanted) {
            uint64_t value = upper_bound(bucket);
            return (double)(value < histogram->largest ? value : histogram->largest) / 1e6;
        }
    }
    return (double)histogram->largest / 1e6;
}

void histogram_print(const struct histogram *histogram, FILE *out) {
    fprintf(out, "{\"count\": %llu, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f, \"buckets\": [",
            (unsigned long long)histogram->total, histogram_quantile_ms(histogram, 0.50),
            histogram_quantile_ms(histogram, 0.99), histogram_quantile_ms(histogram, 0.999),
            (double)histogram->largest / 1e6);
    const char *separator = "";
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        if (histogram->counts[bucket] == 0) continue;
        fprintf(out, "%s[%llu, %llu]", separator, (unsigned long long)upper_bound(bucket),
                (unsigned long long)histogram->counts[bucket]);
        separator = ", ";
    }
    fprintf(out, "]}");
}
