/* From nothing to ready: CONNECT, and for subscribers SUBSCRIBE. Splitting into packets, and whose each one is. */
#include "mqttload.h"

#include <stdio.h>

#define LENGTH_BYTES_MAX 4
#define NO_KEEP_ALIVE 0
#define CLEAN 0x02
#define WITH_USER_AND_PASSWORD 0xc0
#define NEVER_EXPIRES 0xffffffffu
#define SESSION_EXPIRY_INTERVAL 0x11

const size_t OWN_BYTES = sizeof(struct own);

size_t protocol_frame(const uint8_t *bytes, size_t size, size_t *head) {
    size_t length = 0;
    for (size_t at = 1; at < size; at++) {
        if (at > LENGTH_BYTES_MAX) return FRAME_MALFORMED;
        length |= (size_t)(bytes[at] & 0x7f) << (7 * (at - 1));
        if (bytes[at] < 0x80) {
            *head = 0; /* the first byte belongs to what is handed on */
            return at + 1 + length;
        }
    }
    return 0;
}

static uint8_t *put_text(uint8_t *at, const char *text, size_t size) {
    at = put_u16(at, (uint32_t)size);
    memcpy(at, text, size);
    return at + size;
}

static void put_packet(struct connection *connection, enum packet packet, const uint8_t *body, size_t size) {
    uint8_t *at = buffer_room(&connection->out, 1 + LENGTH_BYTES_MAX + size), *first = at;
    *at++ = packet;
    at = put_varint(at, size);
    if (size) memcpy(at, body, size);
    connection->out.end += (size_t)(at - first) + size;
}

static bool speaks_5(const struct load *load) { return load->options.protocol_level == 5; }

void protocol_greet(struct load *load, struct connection *connection) {
    uint8_t body[64 + TOKEN_SIZE_MAX], *at = put_text(body, "MQTT", 4);
    char name[32];
    *at++ = (uint8_t)load->options.protocol_level;
    *at++ = (load->options.keep ? 0 : CLEAN) | (load->options.token ? WITH_USER_AND_PASSWORD : 0);
    at = put_u16(at, NO_KEEP_ALIVE);
    if (speaks_5(load) && load->options.keep) {
        *at++ = 5; /* bytes of properties */
        *at++ = SESSION_EXPIRY_INTERVAL;
        put_u32(at, NEVER_EXPIRES);
        at += 4;
    } else if (speaks_5(load)) *at++ = 0; /* no properties */
    int size = snprintf(name, sizeof name, "load-%u-%u", load->options.run, connection->number);
    at = put_text(at, name, (size_t)size);
    if (load->options.token) {
        at = put_text(at, "load", 4); /* the token names the client */
        at = put_text(at, load->options.token, strlen(load->options.token));
    }
    put_packet(connection, CONNECT, body, (size_t)(at - body));
}

int own_topic(const struct load *load, const struct endpoint *endpoint, char *name) {
    if (load->options.retain)
        return snprintf(name, NAME_SIZE_MAX, "%s/%u/%llu", load->options.topic, endpoint->number,
                        (unsigned long long)endpoint->sequence);
    return snprintf(name, NAME_SIZE_MAX, "%s/%u", load->options.topic, endpoint->number);
}

/* All that is published, or so many filters that no other client has. */
static void subscribe(const struct load *load, struct connection *connection) {
    uint8_t body[SUBSCRIPTIONS_MAX * (TOPIC_SIZE_MAX + 32)], *at = put_u16(body, 1);
    char filter[NAME_SIZE_MAX];
    if (speaks_5(load)) *at++ = 0;
    for (uint32_t i = 0; i < load->options.subscriptions || i == 0; i++) {
        int size = load->options.subscriptions
                       ? snprintf(filter, sizeof filter, load->options.wildcards ? "%s/+/%u/%u" : "%s/%u/%u",
                                  load->options.topic, connection->number, i)
                       : snprintf(filter, sizeof filter, "%s/#", load->options.topic);
        at = put_text(at, filter, (size_t)size);
        *at++ = (uint8_t)load->options.qos;
    }
    put_packet(connection, SUBSCRIBE, body, (size_t)(at - body));
}

void protocol_attach(struct load *load, struct endpoint *endpoint) {
    bool subscribes = load->options.mode == MODE_IDLE ? load->options.subscriptions > 0 : endpoint->consumer;
    if (subscribes && load->options.mode != MODE_CONSUME) subscribe(load, endpoint->connection);
    else attach_next(load, endpoint->connection);
}

/* What is retained comes when it is asked for: that belongs to the measured phase. */
void protocol_read(struct load *load) {
    for (uint32_t i = 0; i < load->connection_count && load->options.mode == MODE_CONSUME; i++) {
        subscribe(load, &load->transport->connections[i]);
        connection_flush(load, &load->transport->connections[i]);
        if (load->phase == DONE) return;
    }
}

/* A client that only wants its session to be there leaves before the others have come: there may be more of them
 * than a process may have sockets. */
static void leave(struct load *load, struct connection *connection) {
    put_packet(connection, DISCONNECT, NULL, 0);
    connection_flush(load, connection);
    connection_close(load, connection);
}

static void granted(struct load *load, struct connection *connection, const uint8_t *codes, const uint8_t *end) {
    for (; codes < end; codes++)
        if (*codes != load->options.qos) fault(load, "connection %u: granted %u", connection->number, *codes);
}

static bool attach_heard(struct load *load, struct connection *connection, uint8_t kind, const uint8_t *body, size_t size) {
    if (kind == CONNACK && size >= 2 && !connection->greeted) {
        if (body[1] != 0) fault(load, "connection %u: refused with %u", connection->number, body[1]);
        attach_next(load, connection);
        return true;
    }
    size_t filters = load->options.subscriptions ? load->options.subscriptions : 1;
    if (kind != SUBACK || size < 2 + filters) return false;
    granted(load, connection, body + size - filters, body + size);
    if (load->options.mode == MODE_CONSUME) return true;
    attach_next(load, connection);
    if (load->options.mode == MODE_SUBSCRIBE) leave(load, connection);
    return true;
}

bool protocol_heard(struct load *load, struct connection *connection, const uint8_t *frame, size_t size) {
    size_t at = 1;
    while (frame[at] >= 0x80) at++;
    const uint8_t *body = frame + at + 1;
    uint8_t kind = frame[0] & 0xf0;
    size -= at + 1;
    if (kind == PUBLISH) return consume_heard(load, connection, frame[0], body, size);
    if (kind == PINGRESP) {
        connection->ping_open = false;
        return true;
    }
    if (kind == CONNACK || kind == SUBACK) return attach_heard(load, connection, kind, body, size);
    return size >= 2 && publish_heard(load, connection, kind, get_u16(body));
}

/* All is read: when the answer to a PINGREQ comes, the server has handled what was before it. */
void protocol_settle(struct load *load) {
    for (uint32_t i = 0; i < load->connection_count; i++) {
        struct connection *connection = &load->transport->connections[i];
        put_packet(connection, PINGREQ, NULL, 0);
        connection->ping_open = true;
        connection_flush(load, connection);
        if (load->phase == DONE) return;
    }
}

void protocol_sweep(struct load *load) { (void)load; }
