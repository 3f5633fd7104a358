/* How much may be in flight. Closed loop: every connection is kept `depth` entries full. At a rate: connections take
 * turns, and what finds no room waits, while its time already counts. */
#include "sockets.h"

#include <stdlib.h>

void window_prepare(struct load *load) {
    uint64_t room = 1;
    while (room < load->options.depth) room *= 2;
    load->transport->unflushed = calloc(load->connection_count + 1, sizeof *load->transport->unflushed);
    if (load->options.mode != MODE_PUBLISH && load->options.mode != MODE_BOTH) return;
    for (uint32_t i = 0; i < load->connection_count; i++) {
        struct connection *connection = &load->transport->connections[i];
        for (uint32_t j = 0; j < connection->endpoint_count && !connection->consumer; j++) {
            connection->endpoints[j].pending_ns = malloc(room * sizeof(uint64_t));
            connection->endpoints[j].pending_mask = room - 1;
        }
    }
}

static bool has_room(const struct load *load, const struct connection *connection) {
    return connection->fd >= 0 && connection->in_flight < load->options.depth &&
           buffer_size(&connection->out) < OUT_BYTES_MAX;
}

static void send_one(struct load *load, struct connection *connection, uint64_t intended_ns) {
    struct endpoint *producer = &connection->endpoints[connection->next_producer];
    if (++connection->next_producer == connection->endpoint_count) connection->next_producer = 0;
    producer->pending_ns[producer->pending_end++ & producer->pending_mask] = intended_ns;
    protocol_build(load, producer, intended_ns);
    producer->sequence += load->options.batch;
    connection->in_flight++;
    pace_sent(load);
    if (load->options.unconfirmed) window_settle(load, producer, true);
}

static void fill(struct load *load, struct connection *connection) {
    uint64_t now = load->now;
    for (unsigned built = 0; has_room(load, connection) && pace_may_send(load); built++) {
        if ((built & 31) == 31) now = clock_ns();
        send_one(load, connection, now);
    }
}

/* Fills and sends until the depth is reached or the socket takes no more: one filled buffer is not a full window. */
void window_fill(struct load *load, struct connection *connection) {
    if (load->options.rate > 0 || connection->endpoint_count == 0) return;
    do {
        fill(load, connection);
        if (buffer_size(&connection->out) < OUT_BYTES_MAX) return; /* the caller flushes what is left */
        connection_flush(load, connection);
    } while (has_room(load, connection));
}

/* The next connection in turn that has room, among the producers' ones, which stand last. */
static struct connection *whose_turn(struct load *load) {
    uint32_t first = load->transport->connections[0].consumer ? load->connection_count - load->options.connections : 0;
    uint32_t count = load->connection_count - first;
    for (uint32_t tried = 0; tried < count; tried++) {
        struct connection *connection = &load->transport->connections[first + load->transport->next_connection++ % count];
        if (has_room(load, connection)) return connection;
    }
    return NULL;
}

/* Only those that were written to: there may be ten thousand others. */
static void flush_written(struct load *load) {
    struct transport *sockets = load->transport;
    for (uint32_t i = 0; i < sockets->unflushed_count; i++) {
        sockets->unflushed[i]->unflushed = false;
        connection_flush(load, sockets->unflushed[i]);
    }
    sockets->unflushed_count = 0;
}

static void send_due(struct load *load) {
    struct transport *sockets = load->transport;
    while (pace_due_ns(load) <= load->now && pace_may_send(load)) {
        struct connection *connection = whose_turn(load);
        if (connection == NULL) {
            load->full = true;
            return;
        }
        send_one(load, connection, pace_due_ns(load));
        if (buffer_size(&connection->out) > OUT_BYTES_MAX / 2) connection_flush(load, connection);
        if (!connection->unflushed) sockets->unflushed[sockets->unflushed_count++] = connection;
        connection->unflushed = true;
    }
}

void transport_send_due(struct load *load) {
    load->full = false;
    send_due(load);
    flush_written(load);
}

bool window_settle(struct load *load, struct endpoint *producer, bool stored) {
    if (producer == NULL || producer->pending_first == producer->pending_end) {
        fault(load, "a receipt for nothing that was sent");
        return false;
    }
    uint64_t intended_ns = producer->pending_ns[producer->pending_first++ & producer->pending_mask];
    producer->connection->in_flight--;
    load->progress_ns = load->now;
    if (stored) {
        load->counts.receipts += load->options.batch;
        histogram_record(&load->publish_latency, (int64_t)(load->now - intended_ns));
    } else load->counts.refused += load->options.batch;
    return true;
}
