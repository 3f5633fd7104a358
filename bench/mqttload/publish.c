/* Building PUBLISH, and the acknowledgements of both sides. */
#include "mqttload.h"

#define HEAD_BYTES_MAX 16

void put_acknowledgement(struct connection *connection, enum packet packet, uint16_t packet_id) {
    uint8_t *at = buffer_room(&connection->out, 4);
    *at++ = packet;
    *at++ = 2;
    put_u16(at, packet_id);
    connection->out.end += 4;
}

void protocol_build(struct load *load, struct endpoint *producer, uint64_t intended_ns) {
    char topic[NAME_SIZE_MAX];
    const struct options *options = &load->options;
    size_t size = (size_t)own_topic(load, producer, topic);
    bool speaks_5 = options->protocol_level == 5;
    size_t length = 2 + size + (options->qos ? 2 : 0) + speaks_5 + options->bytes;
    struct buffer *out = &producer->connection->out;
    uint8_t *first = buffer_room(out, length + HEAD_BYTES_MAX), *at = first;
    *at++ = (uint8_t)(PUBLISH | options->qos << 1 | (options->retain ? RETAINED : 0));
    at = put_varint(at, length);
    at = put_u16(at, (uint32_t)size);
    memcpy(at, topic, size);
    at += size;
    if (options->qos) {
        if (++producer->own->packet_id == 0) producer->own->packet_id = 1;
        at = put_u16(at, producer->own->packet_id);
    }
    if (speaks_5) *at++ = 0; /* no properties */
    if (options->retain) /* they come back in any order: each as the only one of a producer */
        at = put_payload(at, load, (uint32_t)producer->sequence * options->writers + producer->number, 0, intended_ns);
    else at = put_payload(at, load, producer->number, producer->sequence, intended_ns);
    out->end += (size_t)(at - first);
}

bool publish_heard(struct load *load, struct connection *connection, uint8_t kind, uint16_t packet_id) {
    if (kind == (PUBREL & 0xf0) && connection->consumer) {
        put_acknowledgement(connection, PUBCOMP, packet_id);
        return true;
    }
    if (connection->consumer || connection->endpoint_count == 0) return false;
    if (kind == PUBREC) {
        put_acknowledgement(connection, PUBREL, packet_id);
        return true;
    }
    if (kind != PUBACK && kind != PUBCOMP) return false;
    return window_settle(load, &connection->endpoints[0], true); /* they come in order [MQTT-4.6.0-2] */
}
