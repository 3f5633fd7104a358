/* From nothing to READY: CONNECT, then for each endpoint PARTITIONED_METADATA, LOOKUP, PRODUCER or SUBSCRIBE.
 * One endpoint at a time per connection, many connections at once. Whatever a lookup answers, we stay on the
 * address that was dialled: the answer names a single server that may be known there by another address. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROTOCOL_VERSION 19
#define NAME_SIZE_MAX 512
#define RETRY_PAUSE_US 1000

static void add_connections(struct load *load, uint32_t count, bool consumer) {
    for (uint32_t i = 0; i < count; i++) {
        struct connection *connection = &load->connections[load->connection_count];
        *connection = (struct connection){.fd = -1, .number = load->connection_count, .consumer = consumer};
        load->connection_count++;
    }
}

static void add_endpoints(struct load *load, struct connection *connection, uint32_t count, uint32_t first, uint32_t step) {
    connection->endpoints = calloc(count ? count : 1, sizeof *connection->endpoints);
    connection->endpoint_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = first + i * step;
        connection->endpoints[i] = (struct endpoint){
            .connection = connection, .id = i, .number = number, .partition = -1,
            .topic = number % load->options.topics, .consumer = connection->consumer,
        };
    }
}

void attach_plan(struct load *load) {
    const struct options *options = &load->options;
    bool publishes = options->mode == MODE_PUBLISH || options->mode == MODE_BOTH || options->mode == MODE_IDLE;
    bool reads = options->mode == MODE_CONSUME || options->mode == MODE_BOTH || options->mode == MODE_SUBSCRIBE;
    uint32_t consumers = reads ? options->consumers * options->topics : 0;
    uint32_t readers = consumers < options->connections ? consumers : options->connections;
    uint32_t writers = publishes ? options->connections : 0;
    load->connections = calloc(readers + writers, sizeof *load->connections);
    /* Consumers first: a subscription that starts at the end must exist before the first message. */
    add_connections(load, readers, true);
    add_connections(load, writers, false);
    for (uint32_t i = 0; i < readers; i++) {
        uint32_t share = consumers / readers + (i < consumers % readers);
        add_endpoints(load, &load->connections[i], share, i, readers);
    }
    for (uint32_t i = 0; i < writers; i++)
        add_endpoints(load, &load->connections[readers + i], options->producers, i * options->producers, 1);
}

void attach_more(struct load *load) {
    while (load->attaching_now < ATTACHING_MAX && load->dialled < load->connection_count) {
        struct connection *connection = &load->connections[load->dialled];
        if (!connection->consumer && load->attached < load->dialled && load->connections[0].consumer &&
            load->connections[load->attached].consumer)
            return; /* the last consumers are still on their way */
        load->dialled++;
        load->attaching_now++;
        if (!connection_dial(load, connection)) {
            connection_close(load, connection);
            attach_lost(load, connection);
        }
    }
}

void attach_greet(struct connection *connection) {
    static struct message message;
    message.size = 0;
    message_text(&message, 1, "Pulsarload-1", 12);
    message_number(&message, 4, PROTOCOL_VERSION);
    buffer_command(&connection->out, CONNECT, &message);
}

/* Within --wait the server may still be starting: dial again, from the beginning. */
void attach_lost(struct load *load, struct connection *connection) {
    if (clock_ns() - load->started_ns > (uint64_t)(load->options.wait_seconds * 1e9)) {
        fault(load, "cannot attach connection %u to %s:%d", connection->number, load->options.host, load->options.port);
        load->phase = DONE;
        return;
    }
    usleep(RETRY_PAUSE_US);
    connection->connected = false;
    connection->attaching = 0;
    for (uint32_t i = 0; i < connection->endpoint_count; i++) connection->endpoints[i].state = WAITING;
    if (!connection_dial(load, connection)) {
        connection_close(load, connection);
        attach_lost(load, connection);
    }
}

static int topic_name(const struct load *load, const struct endpoint *endpoint, char *name) {
    int size = 0;
    const char *number = strstr(load->options.topic, "%d");
    if (number == NULL) size = snprintf(name, NAME_SIZE_MAX, "%s", load->options.topic);
    else
        size = snprintf(name, NAME_SIZE_MAX, "%.*s%u%s", (int)(number - load->options.topic), load->options.topic,
                        endpoint->topic, number + 2);
    if (endpoint->partition >= 0 && size < NAME_SIZE_MAX)
        size += snprintf(name + size, (size_t)(NAME_SIZE_MAX - size), "-partition-%d", endpoint->partition);
    if (size < NAME_SIZE_MAX) return size;
    fprintf(stderr, "pulsarload: the topic's name is longer than %d bytes\n", NAME_SIZE_MAX);
    exit(2);
}

static void ask_attach(const struct load *load, const struct endpoint *endpoint, struct message *message) {
    if (!endpoint->consumer) {
        message_number(message, 2, endpoint->id);
        message_number(message, 3, endpoint->id);
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
    char name[NAME_SIZE_MAX];
    int size = topic_name(load, endpoint, name);
    message.size = 0;
    message_text(&message, 1, name, (size_t)size);
    endpoint->state = what;
    if (what == IN_ATTACH) {
        ask_attach(load, endpoint, &message);
        return;
    }
    message_number(&message, 2, endpoint->id);
    buffer_command(&endpoint->connection->out, what == IN_METADATA ? PARTITIONED_METADATA : LOOKUP, &message);
}

static void next_endpoint(struct load *load, struct connection *connection) {
    if (connection->attaching < connection->endpoint_count) {
        ask(load, &connection->endpoints[connection->attaching], IN_METADATA);
        return;
    }
    load->attached++;
    load->attaching_now--;
    attach_more(load);
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
    load->errors_at_attach++;
    if (clock_ns() - load->started_ns > (uint64_t)(load->options.wait_seconds * 1e9)) {
        fault(load, "%s %u refused by command %u, error %llu: %.*s", endpoint->consumer ? "consumer" : "producer",
              endpoint->number, frame->type, (unsigned long long)code, size, (const char *)text);
        load->phase = DONE;
        return;
    }
    usleep(RETRY_PAUSE_US);
    ask(load, endpoint, IN_METADATA);
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
        memcpy(endpoint->name, field.bytes, field.size);
        endpoint->name_size = field.size;
    }
    endpoint->state = READY;
    endpoint->connection->attaching++;
    next_endpoint(load, endpoint->connection);
}

bool attach_heard(struct load *load, struct connection *connection, const struct frame *frame) {
    if (frame->type == CONNECTED && !connection->connected) {
        connection->connected = true;
        next_endpoint(load, connection);
        return true;
    }
    if (connection->attaching >= connection->endpoint_count) {
        if (frame->type == CLOSE_PRODUCER || frame->type == CLOSE_CONSUMER)
            fault(load, "connection %u: the server closed a producer or consumer", connection->number);
        return frame->type == CLOSE_PRODUCER || frame->type == CLOSE_CONSUMER || frame->type == SUCCESS;
    }
    struct endpoint *endpoint = &connection->endpoints[connection->attaching];
    if (frame->type == PARTITIONED_METADATA_RESPONSE && endpoint->state == IN_METADATA) {
        uint64_t partitions = number_in(frame, 1, 0);
        if (number_in(frame, 3, 0) != 0) refuse(load, endpoint, frame, 4);
        else {
            if (partitions > 0) endpoint->partition = (int32_t)(endpoint->number / load->options.topics % partitions);
            ask(load, endpoint, IN_LOOKUP);
        }
    } else if (frame->type == LOOKUP_RESPONSE && endpoint->state == IN_LOOKUP) {
        if (number_in(frame, 3, 0) == 2) refuse(load, endpoint, frame, 6);
        else ask(load, endpoint, IN_ATTACH);
    } else if (endpoint->state == IN_ATTACH && frame->type == PRODUCER_SUCCESS) {
        if (number_in(frame, 6, 1)) attached(load, endpoint, frame);
    } else if (endpoint->state == IN_ATTACH && frame->type == SUCCESS) attached(load, endpoint, frame);
    else if (frame->type == ERROR) refuse(load, endpoint, frame, 2);
    else return false;
    return true;
}
