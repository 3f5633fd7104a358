/* From nothing to READY: CONNECT, then for each endpoint PARTITIONED_METADATA, LOOKUP, PRODUCER or SUBSCRIBE.
 * Whatever a lookup answers, we stay on the address that was dialled: the answer names a single server that may be
 * known there by another address. */
#include "pulsarload.h"

#include <stdio.h>

#define PROTOCOL_VERSION 19
#define AVRO 4 /* of Schema.Type */

const size_t OWN_BYTES = sizeof(struct own);

size_t protocol_frame(const uint8_t *bytes, size_t size, size_t *head) { return frame_behind_u32(bytes, size, head); }

void protocol_greet(struct load *load, struct connection *connection) {
    static struct message message;
    message.size = 0;
    message_text(&message, 1, "Pulsarload-1", 12);
    if (load->options.token) {
        message_text(&message, 3, load->options.token, strlen(load->options.token));
        message_text(&message, 5, "token", 5);
    }
    message_number(&message, 4, PROTOCOL_VERSION);
    buffer_command(&connection->out, CONNECT, &message);
}

/* `schema` of PRODUCER: its name, definition and type. */
static void message_schema(struct message *message, const char *definition) {
    static struct message schema;
    schema.size = 0;
    message_text(&schema, 1, "load", 4);
    message_text(&schema, 3, definition, strlen(definition));
    message_number(&schema, 4, AVRO);
    message_text(message, 7, schema.bytes, schema.size);
}

static void ask_attach(const struct load *load, const struct endpoint *endpoint, struct message *message) {
    if (!endpoint->consumer) {
        message_number(message, 2, endpoint->id);
        message_number(message, 3, endpoint->id);
        if (load->options.schema) message_schema(message, load->options.schema);
        buffer_command(&endpoint->connection->out, PRODUCER, message);
        return;
    }
    message_text(message, 2, load->options.subscription, strlen(load->options.subscription));
    message_number(message, 3, (uint64_t)load->options.subscription_type);
    message_number(message, 4, endpoint->id);
    message_number(message, 5, endpoint->id);
    message_number(message, 13, (uint64_t)load->options.initial_position);
    buffer_command(&endpoint->connection->out, SUBSCRIBE, message);
}

static void ask(const struct load *load, struct endpoint *endpoint, enum attached what) {
    static struct message message;
    char name[2 * NAME_SIZE_MAX];
    int size = topic_name(load, endpoint, name);
    if (endpoint->partition >= 0) size += snprintf(name + size, NAME_SIZE_MAX, "-partition-%d", endpoint->partition);
    message.size = 0;
    message_text(&message, 1, name, (size_t)size);
    endpoint->own->state = what;
    if (what == IN_ATTACH) {
        ask_attach(load, endpoint, &message);
        return;
    }
    message_number(&message, 2, endpoint->id);
    buffer_command(&endpoint->connection->out, what == IN_METADATA ? PARTITIONED_METADATA : LOOKUP, &message);
}

void protocol_attach(struct load *load, struct endpoint *endpoint) {
    ask(load, endpoint, IN_METADATA);
}

/* The number and the text of an error, wherever a reply keeps them. */
static void refuse(struct load *load, struct endpoint *endpoint, const struct frame *frame, unsigned code_field) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    uint64_t code = 0;
    int size = 0;
    const uint8_t *text = NULL;
    while (next_field(&cursor, &field)) {
        if (field.number == code_field && field.type == 0) code = field.value;
        if (field.number == code_field + 1 && field.type == 2) {
            text = field.bytes;
            size = (int)field.size;
        }
    }
    if (attach_again(load)) ask(load, endpoint, IN_METADATA);
    else
        fault(load, "%s %u refused by command %u, error %llu: %.*s", endpoint->consumer ? "consumer" : "producer",
              endpoint->number, frame->type, (unsigned long long)code, size, (const char *)text);
}

static uint64_t number_in(const struct frame *frame, unsigned number, uint64_t absent) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    while (next_field(&cursor, &field))
        if (field.number == number && field.type == 0) absent = field.value;
    return absent;
}

static void attached(struct load *load, struct endpoint *endpoint, const struct frame *frame) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    while (frame->type == PRODUCER_SUCCESS && next_field(&cursor, &field)) {
        if (field.number != 2 || field.type != 2 || field.size > NAME_BYTES_MAX) continue;
        memcpy(endpoint->own->name, field.bytes, field.size);
        endpoint->own->name_size = field.size;
    }
    endpoint->own->state = READY;
    attach_next(load, endpoint->connection);
}

static bool attach_heard(struct load *load, struct connection *connection, const struct frame *frame) {
    if (frame->type == CONNECTED && !connection->greeted) {
        attach_next(load, connection);
        return true;
    }
    if (connection->attaching >= connection->endpoint_count) {
        if (frame->type == CLOSE_PRODUCER || frame->type == CLOSE_CONSUMER)
            fault(load, "connection %u: the server closed a producer or consumer", connection->number);
        return frame->type == CLOSE_PRODUCER || frame->type == CLOSE_CONSUMER || frame->type == SUCCESS;
    }
    struct endpoint *endpoint = &connection->endpoints[connection->attaching];
    if (frame->type == PARTITIONED_METADATA_RESPONSE && endpoint->own->state == IN_METADATA) {
        uint64_t partitions = number_in(frame, 1, 0);
        if (number_in(frame, 3, 0) != 0) refuse(load, endpoint, frame, 4);
        else {
            if (partitions > 0) endpoint->partition = (int32_t)(endpoint->number / load->options.topics % partitions);
            ask(load, endpoint, IN_LOOKUP);
        }
    } else if (frame->type == LOOKUP_RESPONSE && endpoint->own->state == IN_LOOKUP) {
        if (number_in(frame, 3, 0) == 2) refuse(load, endpoint, frame, 6);
        else ask(load, endpoint, IN_ATTACH);
    } else if (endpoint->own->state == IN_ATTACH && frame->type == PRODUCER_SUCCESS) {
        if (number_in(frame, 6, 1)) attached(load, endpoint, frame);
    } else if (endpoint->own->state == IN_ATTACH && frame->type == SUCCESS) attached(load, endpoint, frame);
    else if (frame->type == ERROR) refuse(load, endpoint, frame, 2);
    else return false;
    return true;
}

static void heard(struct load *load, struct connection *connection, const struct frame *frame) {
    static const struct message nothing;
    switch (frame->type) {
    case SEND_RECEIPT: publish_receipt(load, connection, frame); break;
    case MESSAGE: consume_message(load, connection, frame); break;
    case SEND_ERROR: publish_refused(load, connection, frame); break;
    case PING: buffer_command(&connection->out, PONG, &nothing); break;
    case PONG: connection->ping_open = false; break;
    case ACTIVE_CONSUMER_CHANGE: break;
    default:
        if (attach_heard(load, connection, frame)) break;
        fault(load, "connection %u: unexpected command %u", connection->number, frame->type);
    }
}

bool protocol_heard(struct load *load, struct connection *connection, const uint8_t *bytes, size_t size) {
    struct frame frame;
    if (!parse_frame(bytes, size, &frame)) return false;
    heard(load, connection, &frame);
    return true;
}
