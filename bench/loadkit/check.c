/* Every message exactly once: one bit per message of each producer, and the highest sequence seen.
 * late = first seen after a later one of the same producer (a reorder); with one consumer per topic it must be 0. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCERS_MAX (1u << 24)

struct seen {
    uint64_t *bits;
    uint64_t words;
    uint64_t next; /* one beyond the highest sequence */
    uint64_t unique;
};

static struct seen *producers;
static uint32_t producer_count;

static void *grown(void *old, size_t old_bytes, size_t bytes) {
    uint8_t *larger = realloc(old, bytes);
    if (larger == NULL) {
        fprintf(stderr, "%s: out of memory for verification\n", PROGRAM);
        exit(2);
    }
    memset(larger + old_bytes, 0, bytes - old_bytes);
    return larger;
}

static struct seen *seen_of(uint32_t producer) {
    if (producer >= producer_count) {
        uint32_t count = producer_count ? producer_count : 16;
        while (count <= producer) count *= 2;
        producers = grown(producers, producer_count * sizeof *producers, count * sizeof *producers);
        producer_count = count;
    }
    return &producers[producer];
}

static void hold(struct seen *seen, uint64_t sequence) {
    if (sequence / 64 < seen->words) return;
    uint64_t words = seen->words ? seen->words : 64;
    while (words <= sequence / 64) words *= 2;
    seen->bits = grown(seen->bits, seen->words * 8, words * 8);
    seen->words = words;
}

/* False for a message that was seen before or belongs to another run. */
static bool check_message(struct load *load, const struct payload_head *head) {
    const struct options *options = &load->options;
    if ((options->run && head->run != options->run) || head->producer >= PRODUCERS_MAX || head->sequence >> 36) {
        load->counts.foreign++;
        return false;
    }
    struct seen *seen = seen_of(head->producer);
    hold(seen, head->sequence);
    uint64_t bit = 1ull << (head->sequence & 63);
    if (seen->bits[head->sequence / 64] & bit) {
        load->counts.duplicates++;
        return false;
    }
    seen->bits[head->sequence / 64] |= bit;
    seen->unique++;
    load->counts.unique++;
    if (head->sequence < seen->next) load->counts.late++;
    else seen->next = head->sequence + 1;
    return true;
}

bool take_payload(struct load *load, const uint8_t *payload, size_t size) {
    struct payload_head head;
    if (size < sizeof head) return false;
    memcpy(&head, payload, sizeof head);
    load->counts.received++;
    if (check_message(load, &head) && load->options.mode == MODE_BOTH)
        histogram_record(&load->end_to_end, (int64_t)(load->now - head.intended_ns));
    return true;
}

/* Holes below the highest sequence of each producer, and, when we published ourselves, what never came at all. */
uint64_t check_missing(const struct load *load) {
    uint64_t missing = 0;
    if (load->options.mode == MODE_BOTH && load->options.consumers > 0) {
        uint64_t stored = (load->counts.sent - load->counts.refused) * load->options.copies;
        return stored > load->counts.unique ? stored - load->counts.unique : 0;
    }
    for (uint32_t i = 0; i < producer_count; i++) missing += producers[i].next - producers[i].unique;
    return missing;
}

void check_forget(void) {
    for (uint32_t i = 0; i < producer_count; i++) free(producers[i].bits);
    free(producers);
    producers = NULL;
    producer_count = 0;
}
