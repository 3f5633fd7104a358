/* From nothing to ready: CONNECT, and for subscribers SUBSCRIBE. Splitting into packets, and whose each one is. */
#include "mqttload.h"

#include <stdio.h>

#define LENGTH_BYTES_MAX 4
#define NO_KEEP_ALIVE 0
#define CLEAN 0x02

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

/* Only short ones: the length has one byte. */
static void put_packet(struct connection *connection, enum packet packet, const uint8_t *body, size_t size) {
    uint8_t *at = buffer_room(&connection->out, size + 2);
    *at++ = packet;
    *at++ = (uint8_t)size;
    memcpy(at, body, size);
    connection->out.end += size + 2;
}

static bool speaks_5(const struct load *load) { return load->options.protocol_level == 5; }

void protocol_greet(struct load *load, struct connection *connection) {
    uint8_t body[64], *at = put_text(body, "MQTT", 4);
    char name[32];
    *at++ = (uint8_t)load->options.protocol_level;
    *at++ = CLEAN;
    at = put_u16(at, NO_KEEP_ALIVE);
    if (speaks_5(load)) *at++ = 0; /* no properties */
    int size = snprintf(name, sizeof name, "load-%u-%u", load->options.run, connection->number);
    at = put_text(at, name, (size_t)size);
    put_packet(connection, CONNECT, body, (size_t)(at - body));
}

int own_topic(const struct load *load, const struct endpoint *endpoint, char *name) {
    return snprintf(name, NAME_SIZE_MAX, "%s/%u", load->options.topic, endpoint->number);
}

void protocol_attach(struct load *load, struct endpoint *endpoint) {
    if (!endpoint->consumer) {
        attach_next(load, endpoint->connection);
        return;
    }
    uint8_t body[128], *at = put_u16(body, 1);
    char filter[NAME_SIZE_MAX];
    int size = snprintf(filter, sizeof filter, "%s/#", load->options.topic);
    if (speaks_5(load)) *at++ = 0;
    at = put_text(at, filter, (size_t)size);
    *at++ = (uint8_t)load->options.qos;
    put_packet(endpoint->connection, SUBSCRIBE, body, (size_t)(at - body));
}

static bool attach_heard(struct load *load, struct connection *connection, uint8_t kind, const uint8_t *body, size_t size) {
    if (kind == CONNACK && size >= 2 && !connection->greeted) {
        if (body[1] != 0) fault(load, "connection %u: refused with %u", connection->number, body[1]);
        attach_next(load, connection);
        return true;
    }
    if (kind != SUBACK || size < 3) return false;
    if (body[size - 1] != load->options.qos) fault(load, "connection %u: granted %u", connection->number, body[size - 1]);
    attach_next(load, connection);
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

void protocol_read(struct load *load) { (void)load; } /* messages come unasked */
void protocol_sweep(struct load *load) { (void)load; }
