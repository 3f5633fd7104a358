#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

static uint8_t *message_room(struct message *message, size_t size) {
    if (message->size + size > sizeof message->bytes) {
        fprintf(stderr, "pulsarload: a command grew beyond %zu bytes\n", sizeof message->bytes);
        exit(2);
    }
    return message->bytes + message->size;
}

void message_number(struct message *message, unsigned field, uint64_t value) {
    uint8_t *at = message_room(message, 15);
    at = put_varint(at, field << 3);
    at = put_varint(at, value);
    message->size = (size_t)(at - message->bytes);
}

void message_text(struct message *message, unsigned field, const void *text, size_t size) {
    uint8_t *at = message_room(message, 15 + size);
    at = put_varint(at, field << 3 | 2);
    at = put_varint(at, size);
    memcpy(at, text, size);
    message->size = (size_t)(at + size - message->bytes);
}

void buffer_command(struct buffer *buffer, unsigned type, const struct message *message) {
    uint8_t *first = buffer_room(buffer, message->size + 32);
    uint8_t *at = first + 8;
    at = put_varint(at, 1 << 3);
    at = put_varint(at, type);
    at = put_varint(at, type << 3 | 2);
    at = put_varint(at, message->size);
    memcpy(at, message->bytes, message->size);
    at += message->size;
    put_u32(first, (uint32_t)(at - first - 4));
    put_u32(first + 4, (uint32_t)(at - first - 8));
    buffer->end += (size_t)(at - first);
}

static uint64_t get_varint(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    cursor->failed = true;
    return 0;
}

static bool skip(struct cursor *cursor, struct field *field, uint64_t size) {
    if (size > (uint64_t)(cursor->end - cursor->at)) {
        cursor->failed = true;
        return false;
    }
    field->bytes = cursor->at;
    field->size = (size_t)size;
    cursor->at += size;
    return true;
}

bool next_field(struct cursor *cursor, struct field *field) {
    if (cursor->failed || cursor->at >= cursor->end) return false;
    uint64_t tag = get_varint(cursor);
    field->number = (unsigned)(tag >> 3);
    field->type = tag & 7;
    switch (field->type) {
    case 0: field->value = get_varint(cursor); return !cursor->failed;
    case 1: return skip(cursor, field, 8);
    case 2: return skip(cursor, field, get_varint(cursor)) && !cursor->failed;
    case 5: return skip(cursor, field, 4);
    default: cursor->failed = true; return false;
    }
}

bool parse_frame(const uint8_t *bytes, size_t size, struct frame *frame) {
    if (size < 4) return false;
    uint32_t command_size = get_u32(bytes);
    if (command_size > size - 4) return false;
    *frame = (struct frame){.tail = bytes + 4 + command_size, .tail_size = size - 4 - command_size};
    struct cursor cursor = cursor_over(bytes + 4, command_size);
    struct field field;
    while (next_field(&cursor, &field)) {
        if (field.number == 1 && field.type == 0) frame->type = (unsigned)field.value;
        else if (field.number == frame->type && field.type == 2) {
            frame->body = field.bytes;
            frame->body_size = field.size;
        }
    }
    return !cursor.failed && frame->type != 0;
}
