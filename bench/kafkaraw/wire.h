/* Kafka's forms of numbers and strings. Every reader checks its length first; `failed` is set by anything cut short. */
#ifndef KAFKARAW_WIRE_H
#define KAFKARAW_WIRE_H

#include "../sockets/buffer.h"

#include <stdbool.h>

struct reader {
    const uint8_t *at, *end;
    bool failed;
};

uint64_t read_number(struct reader *reader, size_t bytes); /* big-endian */
int16_t read_i16(struct reader *reader);
uint32_t read_varint(struct reader *reader);               /* unsigned */
void read_skip(struct reader *reader, size_t bytes);
void read_skip_string(struct reader *reader);              /* int16 and text; -1 is null */
void read_skip_compact(struct reader *reader);             /* varint of length + 1 and text; 0 is null */
void read_skip_tags(struct reader *reader);

uint8_t *put_number(uint8_t *at, uint64_t value, size_t bytes);
uint8_t *put_string(uint8_t *at, const char *text, size_t size);
uint8_t *put_compact(uint8_t *at, const char *text, size_t size);
uint8_t *put_signed_varint(uint8_t *at, int64_t value);
size_t varint_bytes(uint64_t value);

/* The size, to be set by `request_end`, and a header that ends with the name of the client. */
uint8_t *request_begin(struct buffer *buffer, size_t room, unsigned api, unsigned version, uint32_t correlation);
void request_end(struct buffer *buffer, uint8_t *end);

#endif
