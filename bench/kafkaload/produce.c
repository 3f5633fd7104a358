/* Handles that publish, each into one partition. What a message needs to be told of, when it was due, is the opaque
 * pointer that comes back with its report. */
#include "kafkaload.h"

#include <stdlib.h>

static void reported(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque) {
    struct producer *producer = opaque;
    struct load *load = producer->load;
    (void)handle;
    producer->in_flight--;
    load->progress_ns = load->now;
    if (message->err) {
        load->counts.refused++;
        fault(load, "producer %u: %s", producer->number, rd_kafka_err2str(message->err));
        return;
    }
    if (message->offset < producer->next_offset) {
        load->counts.late++;
        fault(load, "producer %u: stored at %lld, behind an earlier message", producer->number, (long long)message->offset);
    }
    producer->next_offset = message->offset + 1;
    load->counts.receipts++;
    histogram_record(&load->publish_latency, (int64_t)(load->now - (uint64_t)(uintptr_t)message->_private));
}

static void open_one(struct load *load, struct producer *producer) {
    const struct options *options = &load->options;
    rd_kafka_conf_t *conf = configuration(load);
    set(conf, "acks", "all");
    set(conf, "linger.ms", "%g", options->linger_ms);
    set(conf, "batch.size", "%u", options->batch_bytes);
    set(conf, "batch.num.messages", "%u", 1000000);
    set(conf, "queue.buffering.max.messages", "%u", options->depth);
    set(conf, "queue.buffering.max.kbytes", "%u", 2147483647);
    rd_kafka_conf_set_opaque(conf, producer);
    rd_kafka_conf_set_dr_msg_cb(conf, reported);
    producer->handle = made(RD_KAFKA_PRODUCER, conf);
    producer->topic = topic_opened(load, producer->handle);
    wakes(load->transport, rd_kafka_queue_get_main(producer->handle));
}

void produce_open(struct load *load) {
    struct transport *kafka = load->transport;
    uint32_t count = load->options.connections;
    kafka->producers = calloc(count, sizeof *kafka->producers);
    for (uint32_t i = 0; i < count; i++) {
        kafka->producers[i] = (struct producer){
            .load = load, .number = i, .partition = (int32_t)(i % load->options.partitions),
        };
        open_one(load, &kafka->producers[i]);
        if (load->phase == DONE) return;
    }
}

void produce_serve(struct load *load) {
    struct transport *kafka = load->transport;
    for (uint32_t i = 0; kafka->producers && i < load->options.connections; i++) rd_kafka_poll(kafka->producers[i].handle, 0);
}

static bool send_one(struct load *load, struct producer *producer, uint64_t intended_ns) {
    static uint8_t payload[5 << 20];
    put_payload(payload, load, producer->number, producer->sequence, intended_ns);
    int failed = rd_kafka_produce(producer->topic, producer->partition, RD_KAFKA_MSG_F_COPY, payload, load->options.bytes,
                                  NULL, 0, (void *)(uintptr_t)intended_ns);
    if (failed) {
        fault(load, "producer %u: %s", producer->number, rd_kafka_err2str(rd_kafka_last_error()));
        load->phase = DONE;
        return false;
    }
    producer->sequence++;
    producer->in_flight++;
    pace_sent(load);
    return true;
}

static void fill(struct load *load, struct producer *producer) {
    uint64_t now = load->now;
    for (unsigned sent = 0; producer->in_flight < load->options.depth && pace_may_send(load); sent++) {
        if ((sent & 31) == 31) now = clock_ns();
        if (!send_one(load, producer, now)) return;
    }
}

void transport_fill(struct load *load) {
    if (load->options.rate > 0 || load->options.mode == MODE_CONSUME) return;
    for (uint32_t i = 0; i < load->options.connections && load->phase != DONE; i++) fill(load, &load->transport->producers[i]);
}

static struct producer *whose_turn(struct load *load) {
    struct transport *kafka = load->transport;
    for (uint32_t tried = 0; tried < load->options.connections; tried++) {
        struct producer *producer = &kafka->producers[kafka->next_producer++ % load->options.connections];
        if (producer->in_flight < load->options.depth) return producer;
    }
    return NULL;
}

void transport_send_due(struct load *load) {
    load->full = false;
    while (load->phase != DONE && pace_due_ns(load) <= load->now && pace_may_send(load)) {
        struct producer *producer = whose_turn(load);
        load->full = producer == NULL;
        if (load->full || !send_one(load, producer, pace_due_ns(load))) return;
    }
}
