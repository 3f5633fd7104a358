/* Building SENDs, pacing them, and taking their receipts.
 * Closed loop: every connection is kept `depth` entries full. At a rate: message k is due at start + k / rate, whether
 * or not the server keeps up, and its latency counts from then (no coordinated omission). */
#include "load.h"

#include "crc32c.h"

#include <stdlib.h>
#include <sys/time.h>

#define SEND_OVERHEAD_BYTES 256 /* command, checksum, metadata of one entry */
#define SINGLE_OVERHEAD_BYTES 32 /* metadata of one message in a batch */

static uint8_t filler[5 << 20];

void publish_prepare(struct load *load) {
    crc32c_prepare();
    for (size_t i = 0; i < sizeof filler; i++) filler[i] = (uint8_t)(i * 2654435761u >> 13);
    uint64_t room = 1;
    while (room < load->options.depth) room *= 2;
    if (load->options.mode != MODE_PUBLISH && load->options.mode != MODE_BOTH) return;
    for (uint32_t i = 0; i < load->connection_count; i++) {
        struct connection *connection = &load->connections[i];
        for (uint32_t j = 0; j < connection->endpoint_count && !connection->consumer; j++) {
            connection->endpoints[j].pending_ns = malloc(room * sizeof(uint64_t));
            connection->endpoints[j].pending_mask = room - 1;
        }
    }
}

static uint64_t wall_ms(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

static uint8_t *put_payload(uint8_t *at, const struct load *load, struct endpoint *producer, uint64_t intended_ns) {
    struct payload_head head = {
        .sequence = producer->sequence++, .intended_ns = intended_ns, .producer = producer->number, .run = load->options.run,
    };
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, filler, load->options.bytes - sizeof head);
    return at + load->options.bytes;
}

static uint8_t *put_batch(uint8_t *at, const struct load *load, struct endpoint *producer, uint64_t intended_ns) {
    for (uint32_t i = 0; i < load->options.batch; i++) {
        uint8_t *single = at + 4;
        uint8_t *end = single;
        *end++ = 3 << 3; /* payload_size */
        end = put_varint(end, load->options.bytes);
        *end++ = 8 << 3; /* sequence_id */
        end = put_varint(end, producer->sequence);
        put_u32(at, (uint32_t)(end - single));
        at = put_payload(end, load, producer, intended_ns);
    }
    return at;
}

static size_t batch_overhead(const struct load *load) {
    return load->options.batch > 1 ? (size_t)load->options.batch * SINGLE_OVERHEAD_BYTES : 0;
}

/* MessageMetadata of one entry; the batch's fields only when there is one. */
static uint8_t *put_metadata(uint8_t *at, const struct endpoint *producer, uint32_t batch, size_t payload_bytes) {
    uint64_t sequence = producer->sequence;
    *at++ = 1 << 3 | 2;
    at = put_varint(at, producer->name_size);
    memcpy(at, producer->name, producer->name_size);
    at += producer->name_size;
    *at++ = 2 << 3;
    at = put_varint(at, sequence);
    *at++ = 3 << 3;
    at = put_varint(at, wall_ms());
    if (batch == 1) return at;
    *at++ = 9 << 3;
    at = put_varint(at, payload_bytes);
    *at++ = 11 << 3;
    at = put_varint(at, batch);
    at = put_varint(at, 24 << 3);
    return put_varint(at, sequence + batch - 1);
}

static size_t batch_bytes(const struct options *options, uint64_t first_sequence) {
    uint8_t scratch[10];
    size_t bytes = 0;
    size_t fixed = 4 + 2 + (size_t)(put_varint(scratch, options->bytes) - scratch) + options->bytes;
    if (options->batch == 1) return options->bytes;
    for (uint32_t i = 0; i < options->batch; i++)
        bytes += fixed + (size_t)(put_varint(scratch, first_sequence + i) - scratch);
    return bytes;
}

static void build(struct load *load, struct endpoint *producer, uint64_t intended_ns) {
    const uint32_t batch = load->options.batch;
    struct buffer *out = &producer->connection->out;
    size_t payload = batch_bytes(&load->options, producer->sequence);
    uint8_t *first = buffer_room(out, payload + SEND_OVERHEAD_BYTES + batch_overhead(load));
    uint8_t *at = first + 8;
    *at++ = 1 << 3;
    *at++ = SEND;
    *at++ = SEND << 3 | 2;
    uint8_t *body = ++at; /* one byte of length: the command stays below 128 bytes */
    *at++ = 1 << 3;
    at = put_varint(at, producer->id);
    *at++ = 2 << 3;
    at = put_varint(at, producer->sequence);
    if (batch > 1) {
        *at++ = 3 << 3;
        at = put_varint(at, batch);
        *at++ = 6 << 3;
        at = put_varint(at, producer->sequence + batch - 1);
    }
    body[-1] = (uint8_t)(at - body);
    put_u32(first + 4, (uint32_t)(at - first - 8));
    *at++ = 0x0e;
    *at++ = 0x01;
    uint8_t *sum = at;
    uint8_t *metadata = at + 8;
    at = put_metadata(metadata, producer, batch, payload);
    put_u32(sum + 4, (uint32_t)(at - metadata));
    at = batch > 1 ? put_batch(at, load, producer, intended_ns) : put_payload(at, load, producer, intended_ns);
    put_u32(sum, crc32c(sum + 4, (size_t)(at - sum - 4)));
    put_u32(first, (uint32_t)(at - first - 4));
    out->end += (size_t)(at - first);
}

static bool may_send(struct load *load) {
    if (!load->sending) return false;
    if (load->phase_messages && load->phase_sent >= load->phase_messages) return false;
    load->lead_reached = load->options.mode == MODE_BOTH && load->options.consumers > 0 &&
                         load->counts.sent - load->counts.unique >= load->options.lead;
    return !load->lead_reached;
}

static bool has_room(const struct load *load, const struct connection *connection) {
    return connection->fd >= 0 && connection->in_flight < load->options.depth &&
           buffer_size(&connection->out) < OUT_BYTES_MAX;
}

static void send_one(struct load *load, struct connection *connection, uint64_t intended_ns) {
    struct endpoint *producer = &connection->endpoints[connection->next_producer];
    if (++connection->next_producer == connection->endpoint_count) connection->next_producer = 0;
    producer->pending_ns[producer->pending_end++ & producer->pending_mask] = intended_ns;
    build(load, producer, intended_ns);
    connection->in_flight++;
    load->counts.sent += load->options.batch;
    load->phase_sent += load->options.batch;
}

static void fill(struct load *load, struct connection *connection) {
    uint64_t now = load->now;
    for (unsigned built = 0; has_room(load, connection) && may_send(load); built++) {
        if ((built & 31) == 31) now = clock_ns();
        send_one(load, connection, now);
    }
}

/* Fills and sends until the depth is reached or the socket takes no more: one filled buffer is not a full window. */
void publish_fill(struct load *load, struct connection *connection) {
    if (load->options.rate > 0 || connection->endpoint_count == 0) return;
    do {
        fill(load, connection);
        if (buffer_size(&connection->out) < OUT_BYTES_MAX) return; /* the caller flushes what is left */
        connection_flush(load, connection);
    } while (has_room(load, connection));
}

static uint64_t due_ns(const struct load *load) {
    return load->phase_ns + (uint64_t)((double)load->phase_sent * 1e9 / load->options.rate);
}

/* While nothing may be sent, receipts wake us; waiting for what is overdue would spin. */
uint64_t publish_next_due_ns(const struct load *load) {
    return load->options.rate > 0 && load->sending && !load->full && !load->lead_reached ? due_ns(load) : UINT64_MAX;
}

/* The next connection in turn that has room, among the producers' ones, which stand last. */
static struct connection *whose_turn(struct load *load) {
    uint32_t first = load->connections[0].consumer ? load->connection_count - load->options.connections : 0;
    uint32_t count = load->connection_count - first;
    for (uint32_t tried = 0; tried < count; tried++) {
        struct connection *connection = &load->connections[first + load->next_connection++ % count];
        if (has_room(load, connection)) return connection;
    }
    return NULL;
}

void publish_due(struct load *load) {
    if (load->options.rate <= 0) return;
    load->full = false;
    while (due_ns(load) <= load->now && may_send(load)) {
        struct connection *connection = whose_turn(load);
        if (connection == NULL) {
            load->full = true;
            return;
        }
        send_one(load, connection, due_ns(load));
        if (due_ns(load) > load->now || buffer_size(&connection->out) > OUT_BYTES_MAX / 2) connection_flush(load, connection);
    }
    for (uint32_t i = 0; i < load->connection_count; i++)
        if (buffer_size(&load->connections[i].out) > 0) connection_flush(load, &load->connections[i]);
}

static struct endpoint *producer_of(struct connection *connection, const struct frame *frame) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    while (next_field(&cursor, &field))
        if (field.number == 1 && field.type == 0)
            return !connection->consumer && field.value < connection->endpoint_count ? &connection->endpoints[field.value] : NULL;
    return NULL;
}

static bool settle(struct load *load, struct endpoint *producer, uint64_t *intended_ns) {
    if (producer == NULL || producer->pending_first == producer->pending_end) {
        fault(load, "a receipt for nothing that was sent");
        return false;
    }
    *intended_ns = producer->pending_ns[producer->pending_first++ & producer->pending_mask];
    producer->connection->in_flight--;
    load->progress_ns = load->now;
    return true;
}

void publish_receipt(struct load *load, struct connection *connection, const struct frame *frame) {
    uint64_t intended_ns;
    if (!settle(load, producer_of(connection, frame), &intended_ns)) return;
    load->counts.receipts += load->options.batch;
    histogram_record(&load->publish_latency, (int64_t)(load->now - intended_ns));
}

void publish_refused(struct load *load, struct connection *connection, const struct frame *frame) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    uint64_t intended_ns, code = 0;
    while (next_field(&cursor, &field)) {
        if (field.number == 3 && field.type == 0) code = field.value;
        if (field.number == 4 && field.type == 2)
            fault(load, "send error %llu: %.*s", (unsigned long long)code, (int)field.size, (const char *)field.bytes);
    }
    if (settle(load, producer_of(connection, frame), &intended_ns)) load->counts.refused += load->options.batch;
}
