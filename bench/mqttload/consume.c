/* Messages that come: checked, and acknowledged as their QoS wants. */
#include "mqttload.h"

/* Each subscriber gets each message once: the payload is checked as that of a producer of its own. */
static bool take(struct load *load, const struct connection *connection, const uint8_t *payload, size_t size) {
    static uint8_t copy[5 << 20];
    struct payload_head head;
    if (size < sizeof head || size > sizeof copy) return false;
    memcpy(&head, payload, sizeof head);
    head.producer += connection->number * load->options.writers;
    memcpy(copy, &head, sizeof head); /* the rest is not looked at */
    return take_payload(load, copy, size);
}

bool consume_heard(struct load *load, struct connection *connection, uint8_t first, const uint8_t *body, size_t size) {
    uint8_t qos = first >> 1 & 3;
    if (size < 2) return false;
    size_t at = 2 + (size_t)get_u16(body);
    uint16_t packet_id = 0;
    if (at + 3 > size) return false;
    if (qos) {
        packet_id = get_u16(body + at);
        at += 2;
    }
    if (load->options.protocol_level == 5) at += 1 + (size_t)body[at]; /* properties: below 128 bytes */
    if (at > size) return false;
    load->progress_ns = load->now;
    bool expected = qos == load->options.qos && (load->options.mode != MODE_CONSUME || first & RETAINED);
    if (!expected || !take(load, connection, body + at, size - at)) {
        load->counts.corrupt++;
        fault(load, "a message of %zu bytes is corrupt", size - at);
    }
    if (qos) put_acknowledgement(connection, qos == 1 ? PUBACK : PUBREC, packet_id);
    return true;
}
