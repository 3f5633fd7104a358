/* Kafka through librdkafka, as its users have it: a transport of loadkit/ with handles instead of sockets.
 *   transport.c  waking up, windows, settling         topics.c   creating the topic, waiting for its leaders
 *   produce.c    handles that publish, their reports  consume.c  reading every partition, without a group
 *   program.c    the options
 * librdkafka's own threads speak to the server; all of ours is one more, which its callbacks run in. */
#ifndef KAFKALOAD_KAFKALOAD_H
#define KAFKALOAD_KAFKALOAD_H

#include "../loadkit/load.h"

#include <librdkafka/rdkafka.h>

struct producer {
    struct load *load;
    rd_kafka_t *handle;
    rd_kafka_topic_t *topic;
    uint32_t number;
    int32_t partition;
    uint32_t in_flight;
    int64_t next_offset; /* the least that its next message may be stored at */
    uint64_t sequence;
};

struct consumer {
    rd_kafka_t *handle;
    rd_kafka_topic_t *topic;
};

struct transport {
    int wake; /* an eventfd that librdkafka writes to when there is something to serve */
    struct producer *producers;
    uint32_t next_producer; /* whose turn it is when sending at a rate */
    struct consumer consumer;
    rd_kafka_queue_t *messages;
    uint64_t pass_ends; /* messages read when the next pass begins */
};

rd_kafka_conf_t *configuration(const struct load *load);
void set(rd_kafka_conf_t *conf, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
rd_kafka_t *made(rd_kafka_type_t type, rd_kafka_conf_t *conf);
void wakes(const struct transport *kafka, rd_kafka_queue_t *queue);

/* The topic, made if it is not there, when its partitions have leaders; NULL: --wait is over. librdkafka must not hear
 * of it before: it would ask for it, and get it with other partitions. */
rd_kafka_topic_t *topic_opened(struct load *load, rd_kafka_t *handle);
void topic_remove(const struct load *load, rd_kafka_t *handle);
void produce_open(struct load *load);
void produce_serve(struct load *load);
void consume_open(struct load *load);
void consume_serve(struct load *load);

#endif
