/* Payloads, and when the next one may be or should be sent.
 * At a rate: message k is due at start + k / rate, whether or not the server keeps up, and its latency counts from then
 * (no coordinated omission). */
#include "load.h"

#include <string.h>

static uint8_t filler[5 << 20];

void pace_prepare(void) {
    for (size_t i = 0; i < sizeof filler; i++) filler[i] = (uint8_t)(i * 2654435761u >> 13);
}

uint8_t *put_payload(uint8_t *at, const struct load *load, uint32_t producer, uint64_t sequence, uint64_t intended_ns) {
    struct payload_head head = {
        .sequence = sequence, .intended_ns = intended_ns, .producer = producer, .run = load->options.run,
    };
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, filler, load->options.bytes - sizeof head);
    return at + load->options.bytes;
}

void pace_sent(struct load *load) {
    load->counts.sent += load->options.batch;
    load->phase_sent += load->options.batch;
}

bool pace_may_send(struct load *load) {
    if (!load->sending) return false;
    if (load->phase_messages && load->phase_sent >= load->phase_messages) return false;
    load->lead_reached = load->options.mode == MODE_BOTH && load->options.consumers > 0 &&
                         load->counts.sent - load->counts.unique / load->options.copies >= load->options.lead;
    return !load->lead_reached;
}

uint64_t pace_due_ns(const struct load *load) {
    return load->phase_ns + (uint64_t)((double)load->phase_sent * 1e9 / load->options.rate);
}

/* While nothing may be sent, receipts wake us; waiting for what is overdue would spin. */
uint64_t pace_next_due_ns(const struct load *load) {
    return load->options.rate > 0 && load->sending && !load->full && !load->lead_reached ? pace_due_ns(load) : UINT64_MAX;
}
