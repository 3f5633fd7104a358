#include "wire.h"

#define HEADER_BYTES_MAX 64
static const char CLIENT[] = "kafkaraw";

uint64_t read_number(struct reader *reader, size_t bytes) {
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < bytes) {
        reader->failed = true;
        reader->at = reader->end;
        return 0;
    }
    while (bytes--) value = value << 8 | *reader->at++;
    return value;
}

int16_t read_i16(struct reader *reader) { return (int16_t)read_number(reader, 2); }

uint32_t read_varint(struct reader *reader) {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        uint64_t byte = read_number(reader, 1);
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    reader->failed = true;
    return 0;
}

void read_skip(struct reader *reader, size_t bytes) {
    if ((size_t)(reader->end - reader->at) < bytes) {
        reader->failed = true;
        bytes = (size_t)(reader->end - reader->at);
    }
    reader->at += bytes;
}

void read_skip_string(struct reader *reader) {
    int16_t size = read_i16(reader);
    if (size > 0) read_skip(reader, (size_t)size);
}

void read_skip_compact(struct reader *reader) {
    uint32_t size = read_varint(reader);
    if (size > 1) read_skip(reader, size - 1);
}

void read_skip_tags(struct reader *reader) {
    for (uint32_t left = read_varint(reader); left > 0 && !reader->failed; left--) {
        read_varint(reader);
        read_skip(reader, read_varint(reader));
    }
}

uint8_t *put_number(uint8_t *at, uint64_t value, size_t bytes) {
    for (size_t i = bytes; i-- > 0; value >>= 8) at[i] = (uint8_t)value;
    return at + bytes;
}

uint8_t *put_string(uint8_t *at, const char *text, size_t size) {
    at = put_number(at, size, 2);
    memcpy(at, text, size);
    return at + size;
}

uint8_t *put_compact(uint8_t *at, const char *text, size_t size) {
    at = put_varint(at, size + 1);
    memcpy(at, text, size);
    return at + size;
}

uint8_t *put_signed_varint(uint8_t *at, int64_t value) { return put_varint(at, (uint64_t)value << 1 ^ (uint64_t)(value >> 63)); }

size_t varint_bytes(uint64_t value) {
    size_t bytes = 1;
    while (value >>= 7) bytes++;
    return bytes;
}

uint8_t *request_begin(struct buffer *buffer, size_t room, unsigned api, unsigned version, uint32_t correlation) {
    uint8_t *at = buffer_room(buffer, room + HEADER_BYTES_MAX) + 4;
    at = put_number(at, api, 2);
    at = put_number(at, version, 2);
    at = put_number(at, correlation, 4);
    return put_string(at, CLIENT, sizeof CLIENT - 1);
}

void request_end(struct buffer *buffer, uint8_t *end) {
    uint8_t *first = buffer->bytes + buffer->end;
    put_u32(first, (uint32_t)(end - first - 4));
    buffer->end += (size_t)(end - first);
}
