/* Kafka's words over sockets/, by hand, for what a client library would stand in the way of: hundreds of connections
 * with one request in flight each, idle ones, and latency without threads of ours in between. Producing only;
 * every entry is a request of its own with one batch.
 *   attach.c  ApiVersions, CreateTopics, ListOffsets     produce.c  building Produce, its answers
 *   wire.c    the forms of numbers and strings         program.c  the options */
#ifndef KAFKARAW_KAFKARAW_H
#define KAFKARAW_KAFKARAW_H

#include "../sockets/sockets.h"
#include "wire.h"

enum api { PRODUCE = 0, LIST_OFFSETS = 2, API_VERSIONS = 18, CREATE_TOPICS = 19 };

struct own {
    bool created;        /* CreateTopics was answered */
    uint64_t next_offset; /* the least that its next batch may be stored at */
};

bool attach_heard(struct load *load, struct connection *connection, struct reader *answer);
bool produce_heard(struct load *load, struct connection *connection, uint32_t id, struct reader *answer);

#endif
