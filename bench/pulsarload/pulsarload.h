/* Pulsar's words over sockets/:
 *   attach.c  handshake, lookup, PRODUCER, SUBSCRIBE      send.c  building SENDs, receipts
 *   consume.c MESSAGEs, permits, acknowledgements         wire.c  protobuf and frames      program.c  the options */
#ifndef PULSARLOAD_PULSARLOAD_H
#define PULSARLOAD_PULSARLOAD_H

#include "../sockets/sockets.h"
#include "wire.h"

#define ACK_IDS_MAX 1000
#define ACK_WAIT_NS 100000000
#define NAME_BYTES_MAX 128

enum attached { WAITING, IN_METADATA, IN_LOOKUP, IN_ATTACH, READY };

struct message_id {
    uint64_t ledger, entry;
    uint64_t partition_plus_one; /* 0 = the message had none */
};

struct own {
    enum attached state;
    /* producer */
    char name[NAME_BYTES_MAX]; /* as the server gave it */
    size_t name_size;
    /* consumer */
    uint32_t taken; /* permits used since the last FLOW */
    uint32_t ack_count;
    struct message_id *acks;
};

void publish_receipt(struct load *load, struct connection *connection, const struct frame *frame);
void publish_refused(struct load *load, struct connection *connection, const struct frame *frame);
void consume_message(struct load *load, struct connection *connection, const struct frame *frame);

#endif
