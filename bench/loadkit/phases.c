/* Warm-up, measuring, draining. The measured phase begins and ends at rest (nothing in flight, nothing unread),
 * so that the server's CPU belongs to exactly the messages that were counted. */
#include "load.h"

#include <stdio.h>

static bool publishes(const struct load *load) {
    return load->options.mode == MODE_PUBLISH || load->options.mode == MODE_BOTH;
}

static void start(struct load *load, enum phase phase, double seconds, uint64_t messages) {
    load->phase = phase;
    load->now = load->phase_ns = load->progress_ns = clock_ns();
    load->phase_seconds = seconds;
    load->phase_messages = messages;
    load->phase_sent = 0;
    load->sending = publishes(load);
}

static void start_measuring(struct load *load) {
    histogram_clear(&load->publish_latency);
    histogram_clear(&load->end_to_end);
    load->base = load->counts;
    load->own_cpu = own_cpu_seconds();
    load->watched_cpu = watched_cpu_seconds(load->options.watch_pid);
    start(load, MEASURING, load->options.seconds, load->options.messages);
    if (!publishes(load)) transport_read(load);
    transport_fill(load);
}

static void finish(struct load *load) {
    load->seconds = (double)(clock_ns() - load->phase_ns) / 1e9;
    load->own_cpu = own_cpu_seconds() - load->own_cpu;
    load->watched_cpu = watched_cpu_seconds(load->options.watch_pid) - load->watched_cpu;
    load->phase = DONE;
}

static void phases_begin(struct load *load) {
    load->attach_seconds = (double)(clock_ns() - load->started_ns) / 1e9;
    load->attach_cpu = watched_cpu_seconds(load->options.watch_pid) - load->attach_cpu;
    if (load->options.mode == MODE_SUBSCRIBE) {
        load->phase = DONE;
        return;
    }
    if (load->options.mode == MODE_IDLE) {
        start(load, IDLING, load->options.seconds, 0);
        load->sending = false;
        printf("{\"event\": \"idle\"}\n");
        fflush(stdout);
        return;
    }
    if (load->options.mode == MODE_BOTH) transport_read(load);
    if (publishes(load) && load->options.warmup_seconds > 0) {
        start(load, WARMING, load->options.warmup_seconds, 0);
        transport_fill(load);
    } else start_measuring(load);
}

static bool at_rest(const struct load *load) {
    const struct counts *counts = &load->counts;
    if (load->options.mode == MODE_CONSUME) {
        uint64_t wanted = load->options.messages * load->options.passes;
        return wanted > 0 && counts->unique >= wanted;
    }
    if (counts->receipts + counts->refused < counts->sent) return false;
    return load->options.mode != MODE_BOTH || load->options.consumers == 0 || counts->unique / load->options.copies + counts->refused >= counts->sent;
}

static bool time_is_over(const struct load *load) {
    return load->stop_asked || (load->phase_seconds > 0 && (double)(load->now - load->phase_ns) / 1e9 >= load->phase_seconds);
}

static void settle(struct load *load) {
    load->phase = SETTLING;
    load->sending = false;
    transport_settle(load);
    if (transport_settled(load)) finish(load);
}

static void check_stall(struct load *load) {
    if ((double)(load->now - load->progress_ns) / 1e9 < load->options.stall_seconds) return;
    if (load->options.rate > 0 && load->sending) return;
    fault(load, "nothing moved for %g s: sent %llu, receipts %llu, consumed %llu", load->options.stall_seconds,
          (unsigned long long)load->counts.sent, (unsigned long long)load->counts.receipts,
          (unsigned long long)load->counts.unique);
    load->stalled = true;
    finish(load);
}

void phases_step(struct load *load) {
    switch (load->phase) {
    case ATTACHING:
        if (load->attached == load->connection_count) phases_begin(load);
        return;
    case WARMING:
        if (time_is_over(load)) load->sending = false, load->phase = WARM_DRAINING;
        break;
    case WARM_DRAINING:
        if (at_rest(load)) start_measuring(load);
        break;
    case MEASURING:
        if (time_is_over(load) || (load->phase_messages && publishes(load) && load->phase_sent >= load->phase_messages)) {
            load->sending = false;
            load->phase = DRAINING;
        }
        if (load->options.mode == MODE_CONSUME && (at_rest(load) || load->phase == DRAINING)) settle(load);
        break;
    case DRAINING:
        if (at_rest(load)) settle(load);
        break;
    case SETTLING:
        if (transport_settled(load)) finish(load);
        break;
    case IDLING:
        if (time_is_over(load)) load->phase = DONE;
        return;
    default: break;
    }
    if (load->phase == DONE) return;
    check_stall(load);
    if (load->lead_reached && load->sending && load->options.rate <= 0) transport_fill(load);
}
