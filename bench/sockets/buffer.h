/* A byte queue, and the forms of numbers that more than one protocol has. */
#ifndef SOCKETS_BUFFER_H
#define SOCKETS_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Filled at `end`, taken from `start`. */
struct buffer {
    uint8_t *bytes;
    size_t start, end, capacity;
};

uint8_t *buffer_room(struct buffer *buffer, size_t size); /* where to write; then buffer->end += written */
static inline size_t buffer_size(const struct buffer *buffer) { return buffer->end - buffer->start; }
void buffer_free(struct buffer *buffer);

static inline uint8_t *put_varint(uint8_t *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}
static inline void put_u32(uint8_t *at, uint32_t value) {
    value = __builtin_bswap32(value);
    memcpy(at, &value, 4);
}
static inline uint32_t get_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return __builtin_bswap32(value);
}

#endif
