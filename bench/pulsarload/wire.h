/* Bytes of the Pulsar binary protocol: the few protobuf forms we need, frames.
 * Knows no socket and no meaning; every reader checks its length first. */
#ifndef PULSARLOAD_WIRE_H
#define PULSARLOAD_WIRE_H

#include "../sockets/buffer.h"

#include <stdbool.h>

/* Command types; the sub-message sits in the field of the same number. */
enum command {
    CONNECT = 2, CONNECTED = 3, SUBSCRIBE = 4, PRODUCER = 5, SEND = 6, SEND_RECEIPT = 7, SEND_ERROR = 8, MESSAGE = 9,
    ACK = 10, FLOW = 11, SUCCESS = 13, ERROR = 14, CLOSE_PRODUCER = 15, CLOSE_CONSUMER = 16, PRODUCER_SUCCESS = 17,
    PING = 18, PONG = 19, PARTITIONED_METADATA = 21, PARTITIONED_METADATA_RESPONSE = 22, LOOKUP = 23,
    LOOKUP_RESPONSE = 24, ACTIVE_CONSUMER_CHANGE = 31,
};

/* A sub-message being built. Large enough for an ACK of 1000 ids. */
struct message {
    uint8_t bytes[32768];
    size_t size;
};

void message_number(struct message *message, unsigned field, uint64_t value);
void message_text(struct message *message, unsigned field, const void *text, size_t size);
void buffer_command(struct buffer *buffer, unsigned type, const struct message *message);

/* Walks the fields of one message; `failed` is set by anything malformed. */
struct cursor {
    const uint8_t *at, *end;
    bool failed;
};
struct field {
    unsigned number, type;
    uint64_t value;         /* varint and fixed forms */
    const uint8_t *bytes;   /* length-delimited form */
    size_t size;
};

bool next_field(struct cursor *cursor, struct field *field);
static inline struct cursor cursor_over(const uint8_t *bytes, size_t size) {
    return (struct cursor){.at = bytes, .end = bytes + size};
}

/* One received command: its type and its sub-message, and, for MESSAGE, what follows. */
struct frame {
    unsigned type;
    const uint8_t *body;
    size_t body_size;
    const uint8_t *tail;
    size_t tail_size;
};

bool parse_frame(const uint8_t *bytes, size_t size, struct frame *frame);

#endif
