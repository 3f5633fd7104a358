/* Warm-up, measuring, draining. The measured phase begins and ends at rest (nothing in flight, nothing unread),
 * so that the server's CPU belongs to exactly the messages that were counted. */
#include "load.h"

#include <stdio.h>

static bool publishes(const struct load *load) {
    return load->options.mode == MODE_PUBLISH || load->options.mode == MODE_BOTH;
}

static void kick(struct load *load) {
    for (uint32_t i = 0; i < load->connection_count; i++) {
        struct connection *connection = &load->connections[i];
        if (connection->consumer || connection->fd < 0) continue;
        load->now = clock_ns();
        publish_fill(load, connection);
        connection_flush(load, connection);
        if (load->phase == DONE) return;
    }
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
    if (!publishes(load)) consume_start(load);
    kick(load);
}

static void finish(struct load *load) {
    load->seconds = (double)(clock_ns() - load->phase_ns) / 1e9;
    load->own_cpu = own_cpu_seconds() - load->own_cpu;
    load->watched_cpu = watched_cpu_seconds(load->options.watch_pid) - load->watched_cpu;
    load->phase = DONE;
}

void phases_begin(struct load *load) {
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
    if (load->options.mode == MODE_BOTH) consume_start(load);
    if (publishes(load) && load->options.warmup_seconds > 0) {
        start(load, WARMING, load->options.warmup_seconds, 0);
        kick(load);
    } else start_measuring(load);
}

static bool at_rest(const struct load *load) {
    const struct counts *counts = &load->counts;
    if (load->options.mode == MODE_CONSUME) return counts->unique >= load->options.messages && load->options.messages > 0;
    if (counts->receipts + counts->refused < counts->sent) return false;
    return load->options.mode != MODE_BOTH || load->options.consumers == 0 || counts->unique + counts->refused >= counts->sent;
}

static bool time_is_over(const struct load *load) {
    return load->stop_asked || (load->phase_seconds > 0 && (double)(load->now - load->phase_ns) / 1e9 >= load->phase_seconds);
}

/* All read: send the last acknowledgements and a PING behind them; its PONG says that the server has handled them. */
static void settle(struct load *load) {
    static const struct message nothing;
    load->phase = SETTLING;
    load->sending = false;
    for (uint32_t i = 0; i < load->connection_count && load->connections[i].consumer; i++) {
        struct connection *connection = &load->connections[i];
        for (uint32_t j = 0; j < connection->endpoint_count; j++) consume_flush_acks(load, &connection->endpoints[j]);
        buffer_command(&connection->out, PING, &nothing);
        connection->ping_open = true;
        connection_flush(load, connection);
        if (load->phase == DONE) return;
    }
    phases_pong(load, NULL);
}

void phases_pong(struct load *load, struct connection *connection) {
    if (connection) connection->ping_open = false;
    if (load->phase != SETTLING) return;
    for (uint32_t i = 0; i < load->connection_count; i++)
        if (load->connections[i].ping_open) return;
    finish(load);
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
    case IDLING:
        if (time_is_over(load)) load->phase = DONE;
        return;
    default: break;
    }
    if (load->phase == DONE) return;
    check_stall(load);
    if (load->lead_reached && load->sending) kick(load);
}
