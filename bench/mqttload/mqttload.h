/* MQTT's words over sockets/, by hand: 3.1.1 or 5.0, every QoS, publishers and subscribers each on their own connection.
 * A publisher writes to TOPIC/NUMBER, and all subscribers have TOPIC/#, so each message comes as often as there are
 * subscribers (`--consumers`). A retained message has a topic of its own, TOPIC/NUMBER/SEQUENCE.
 *   attach.c  CONNECT, SUBSCRIBE           publish.c  PUBLISH and its acknowledgements
 *   consume.c messages that come         program.c  the options */
#ifndef MQTTLOAD_MQTTLOAD_H
#define MQTTLOAD_MQTTLOAD_H

#include "../sockets/sockets.h"

#define SUBSCRIPTIONS_MAX 100 /* of a client */
#define TOPIC_SIZE_MAX 100    /* of --topic */
#define TOKEN_SIZE_MAX 1000   /* of --token */
#define RETAINED 0x01

enum packet {
    CONNECT = 0x10, CONNACK = 0x20, PUBLISH = 0x30, PUBACK = 0x40, PUBREC = 0x50, PUBREL = 0x62, PUBCOMP = 0x70,
    SUBSCRIBE = 0x82, SUBACK = 0x90, PINGREQ = 0xc0, PINGRESP = 0xd0,
    DISCONNECT = 0xe0
};

struct own {
    uint16_t packet_id; /* of the last message that was published */
};

static inline uint16_t get_u16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
static inline uint8_t *put_u16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

int own_topic(const struct load *load, const struct endpoint *endpoint, char *name);
void put_acknowledgement(struct connection *connection, enum packet packet, uint16_t packet_id);
bool publish_heard(struct load *load, struct connection *connection, uint8_t kind, uint16_t packet_id);
bool consume_heard(struct load *load, struct connection *connection, uint8_t first, const uint8_t *body, size_t size);

#endif
