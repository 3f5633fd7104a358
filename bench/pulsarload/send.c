/* Building SENDs, and taking what answers them. */
#include "pulsarload.h"

#include "../loadkit/crc32c.h"

#include <sys/time.h>

#define SEND_OVERHEAD_BYTES 256 /* command, checksum, metadata of one entry */
#define SINGLE_OVERHEAD_BYTES 32 /* metadata of one message in a batch */
#define VERSION_BYTES 8 /* of schema_version */

static uint64_t wall_ms(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

static uint8_t *put_batch(uint8_t *at, const struct load *load, const struct endpoint *producer, uint64_t intended_ns) {
    for (uint32_t i = 0; i < load->options.batch; i++) {
        uint64_t sequence = producer->sequence + i;
        uint8_t *single = at + 4;
        uint8_t *end = single;
        *end++ = 3 << 3; /* payload_size */
        end = put_varint(end, load->options.bytes);
        *end++ = 8 << 3; /* sequence_id */
        end = put_varint(end, sequence);
        put_u32(at, (uint32_t)(end - single));
        at = put_payload(end, load, producer->number, sequence, intended_ns);
    }
    return at;
}

static size_t batch_overhead(const struct load *load) {
    return load->options.batch > 1 ? (size_t)load->options.batch * SINGLE_OVERHEAD_BYTES : 0;
}

/* MessageMetadata of one entry; the batch's fields only when there is one, and the version 0 of a schema likewise. */
static uint8_t *put_metadata(uint8_t *at, const struct endpoint *producer, const struct options *options,
                             size_t payload_bytes) {
    uint32_t batch = options->batch;
    uint64_t sequence = producer->sequence;
    *at++ = 1 << 3 | 2;
    at = put_varint(at, producer->own->name_size);
    memcpy(at, producer->own->name, producer->own->name_size);
    at += producer->own->name_size;
    *at++ = 2 << 3;
    at = put_varint(at, sequence);
    *at++ = 3 << 3;
    at = put_varint(at, wall_ms());
    if (batch > 1) {
        *at++ = 9 << 3;
        at = put_varint(at, payload_bytes);
        *at++ = 11 << 3;
        at = put_varint(at, batch);
    }
    if (options->schema) {
        at = put_varint(at, 16 << 3 | 2);
        *at++ = VERSION_BYTES;
        memset(at, 0, VERSION_BYTES);
        at += VERSION_BYTES;
    }
    if (options->delay_seconds > 0) {
        at = put_varint(at, 19 << 3);
        at = put_varint(at, wall_ms() + (uint64_t)(1000 * options->delay_seconds));
    }
    if (batch == 1) return at;
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

void protocol_build(struct load *load, struct endpoint *producer, uint64_t intended_ns) {
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
    at = put_metadata(metadata, producer, &load->options, payload);
    put_u32(sum + 4, (uint32_t)(at - metadata));
    at = batch > 1 ? put_batch(at, load, producer, intended_ns)
                   : put_payload(at, load, producer->number, producer->sequence, intended_ns);
    put_u32(sum, crc32c(sum + 4, (size_t)(at - sum - 4)));
    put_u32(first, (uint32_t)(at - first - 4));
    out->end += (size_t)(at - first);
}

static struct endpoint *producer_of(struct connection *connection, const struct frame *frame) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    while (next_field(&cursor, &field))
        if (field.number == 1 && field.type == 0)
            return !connection->consumer && field.value < connection->endpoint_count ? &connection->endpoints[field.value] : NULL;
    return NULL;
}

void publish_receipt(struct load *load, struct connection *connection, const struct frame *frame) {
    window_settle(load, producer_of(connection, frame), true);
}

void publish_refused(struct load *load, struct connection *connection, const struct frame *frame) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    uint64_t code = 0;
    while (next_field(&cursor, &field)) {
        if (field.number == 3 && field.type == 0) code = field.value;
        if (field.number == 4 && field.type == 2)
            fault(load, "send error %llu: %.*s", (unsigned long long)code, (int)field.size, (const char *)field.bytes);
    }
    window_settle(load, producer_of(connection, frame), false);
}
