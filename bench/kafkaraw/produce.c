/* Building Produce requests, one batch each, and taking their answers. The number of a request says whose it is. */
#include "kafkaraw.h"

#include "../loadkit/crc32c.h"

#include <sys/time.h>

#define PRODUCE_VERSION 9
#define REQUEST_OVERHEAD_BYTES 256 /* all but the topic and the records */
#define RECORD_OVERHEAD_BYTES 32
#define PRODUCE_TIMEOUT_MS 30000
#define BATCH_HEAD_BYTES 61
#define SIZED_AT 12   /* a batch's size counts from here, */
#define CHECKED_AT 21 /* its checksum from here */

static uint64_t wall_ms(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

/* What a record says of itself, without its size: no key, no headers, the time of the batch. */
static size_t record_bytes(const struct options *options, uint32_t place) {
    return 1 + 1 + varint_bytes((uint64_t)place << 1) + 1 + varint_bytes((uint64_t)options->bytes << 1) + options->bytes + 1;
}

static size_t records_bytes(const struct options *options) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < options->batch; i++) {
        size_t record = record_bytes(options, i);
        bytes += varint_bytes(record << 1) + record;
    }
    return bytes;
}

static uint8_t *put_records(uint8_t *at, const struct load *load, const struct endpoint *producer, uint64_t intended_ns) {
    for (uint32_t i = 0; i < load->options.batch; i++) {
        at = put_signed_varint(at, (int64_t)record_bytes(&load->options, i));
        *at++ = 0; /* attributes */
        *at++ = 0; /* time after the first */
        at = put_signed_varint(at, i);
        at = put_signed_varint(at, -1); /* no key */
        at = put_signed_varint(at, load->options.bytes);
        at = put_payload(at, load, producer->number, producer->sequence + i, intended_ns);
        *at++ = 0; /* headers */
    }
    return at;
}

static uint8_t *put_batch(uint8_t *first, const struct load *load, const struct endpoint *producer, uint64_t intended_ns,
                          size_t records) {
    uint64_t now_ms = wall_ms();
    uint8_t *at = put_number(first, 0, 8);                          /* base offset */
    at = put_number(at, BATCH_HEAD_BYTES - SIZED_AT + records, 4);
    at = put_number(at, (uint64_t)-1, 4);                           /* leader epoch */
    *at++ = 2;
    at = put_number(at + 4, 0, 2);                                  /* attributes, behind the checksum */
    at = put_number(at, load->options.batch - 1, 4);
    at = put_number(put_number(at, now_ms, 8), now_ms, 8);
    at = put_number(at, (uint64_t)-1, 8);                           /* no producer id, */
    at = put_number(put_number(at, (uint64_t)-1, 2), (uint64_t)-1, 4); /* epoch or sequence number */
    at = put_number(at, load->options.batch, 4);
    at = put_records(at, load, producer, intended_ns);
    put_u32(first + CHECKED_AT - 4, crc32c(first + CHECKED_AT, (size_t)(at - first - CHECKED_AT)));
    return at;
}

void protocol_build(struct load *load, struct endpoint *producer, uint64_t intended_ns) {
    char name[NAME_SIZE_MAX];
    struct buffer *out = &producer->connection->out;
    size_t size = (size_t)topic_name(load, producer, name), records = records_bytes(&load->options);
    uint8_t *at = request_begin(out, REQUEST_OVERHEAD_BYTES + size + records, PRODUCE, PRODUCE_VERSION, producer->id);
    *at++ = 0; /* tags */
    *at++ = 0; /* no transaction */
    at = put_number(at, (uint64_t)-1, 2); /* acks: all */
    at = put_number(at, PRODUCE_TIMEOUT_MS, 4);
    *at++ = 1 + 1;
    at = put_compact(at, name, size);
    *at++ = 1 + 1;
    at = put_number(at, (uint64_t)producer->partition, 4);
    at = put_varint(at, BATCH_HEAD_BYTES + records + 1);
    at = put_batch(at, load, producer, intended_ns, records);
    memset(at, 0, 3); /* tags of the partition, the topic, the request */
    request_end(out, at + 3);
}

/* Batches of one producer are stored in the order they were sent: their offsets grow. */
static void stored(struct load *load, struct endpoint *producer, int64_t offset) {
    if (offset < (int64_t)producer->own->next_offset) {
        load->counts.late++;
        fault(load, "producer %u: stored at %lld, behind an earlier batch", producer->number, (long long)offset);
    }
    producer->own->next_offset = (uint64_t)offset + load->options.batch;
}

bool produce_heard(struct load *load, struct connection *connection, uint32_t id, struct reader *answer) {
    read_skip_tags(answer);
    bool one = read_varint(answer) == 2; /* topic */
    read_skip_compact(answer);
    one = one && read_varint(answer) == 2 && id < connection->endpoint_count;
    read_skip(answer, 4);
    int16_t error = read_i16(answer);
    int64_t offset = (int64_t)read_number(answer, 8);
    if (!one || answer->failed) return false;
    struct endpoint *producer = &connection->endpoints[id];
    if (error) fault(load, "producer %u: refused, error %d", producer->number, error);
    else stored(load, producer, offset);
    window_settle(load, producer, error == 0);
    return true;
}

/* It only publishes. */
void protocol_read(struct load *load) { (void)load; }
void protocol_sweep(struct load *load) { (void)load; }
void protocol_settle(struct load *load) { (void)load; }
