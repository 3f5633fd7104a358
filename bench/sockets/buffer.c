#include "buffer.h"

#include <stdio.h>
#include <stdlib.h>

uint8_t *buffer_room(struct buffer *buffer, size_t size) {
    if (buffer->start == buffer->end) buffer->start = buffer->end = 0;
    if (buffer->capacity - buffer->end >= size) return buffer->bytes + buffer->end;
    size_t kept = buffer_size(buffer);
    if (buffer->start > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->start, kept);
        buffer->start = 0;
        buffer->end = kept;
    }
    if (buffer->capacity - kept < size) {
        size_t capacity = buffer->capacity ? buffer->capacity : 1024;
        while (capacity - kept < size) capacity *= 2;
        buffer->bytes = realloc(buffer->bytes, capacity);
        if (buffer->bytes == NULL) {
            fprintf(stderr, "out of memory for a buffer of %zu bytes\n", capacity);
            exit(2);
        }
        buffer->capacity = capacity;
    }
    return buffer->bytes + buffer->end;
}

void buffer_free(struct buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
