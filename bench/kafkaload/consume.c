/* Reading every partition from its first message on, without a group: what is measured is Fetch. */
#include "kafkaload.h"

#define SEEK_MS 10000

void consume_open(struct load *load) {
    struct transport *kafka = load->transport;
    rd_kafka_conf_t *conf = configuration(load);
    /* When its queue is full, librdkafka looks again after a second: it must not get full. */
    set(conf, "queued.min.messages", "%u", 10000000);
    set(conf, "queued.max.messages.kbytes", "%u", 2097151);
    /* Going back to the beginning waits for the last fetch, which finds nothing any more. */
    set(conf, "fetch.wait.max.ms", "%u", load->options.passes > 1 ? 10 : 500);
    set(conf, "enable.auto.commit", "false");
    kafka->consumer.handle = made(RD_KAFKA_CONSUMER, conf);
    kafka->consumer.topic = topic_opened(load, kafka->consumer.handle);
    kafka->messages = rd_kafka_queue_new(kafka->consumer.handle);
    wakes(kafka, kafka->messages);
}

void transport_read(struct load *load) {
    struct transport *kafka = load->transport;
    kafka->pass_ends += load->options.messages;
    if (load->options.consumers == 0) return;
    for (int32_t i = 0; i < (int32_t)load->options.partitions; i++)
        if (rd_kafka_consume_start_queue(kafka->consumer.topic, i, RD_KAFKA_OFFSET_BEGINNING, kafka->messages) < 0) {
            fault(load, "partition %d: %s", i, rd_kafka_err2str(rd_kafka_last_error()));
            load->phase = DONE;
            return;
        }
}

static void take(rd_kafka_message_t *message, void *opaque) {
    struct load *load = opaque;
    load->progress_ns = load->now;
    if (message->err) {
        fault(load, "partition %d: %s", message->partition, rd_kafka_message_errstr(message));
        return;
    }
    if (take_payload(load, message->payload, message->len)) return;
    load->counts.corrupt++;
    fault(load, "message %d:%lld is corrupt", message->partition, (long long)message->offset);
}

static void read_again(struct load *load) {
    check_forget();
    load->transport->pass_ends += load->options.messages;
    for (int32_t i = 0; i < (int32_t)load->options.partitions; i++) {
        rd_kafka_resp_err_t error = rd_kafka_seek(load->transport->consumer.topic, i, RD_KAFKA_OFFSET_BEGINNING, SEEK_MS);
        if (error) fault(load, "partition %d does not go back to its beginning: %s", i, rd_kafka_err2str(error));
    }
}

void consume_serve(struct load *load) {
    struct transport *kafka = load->transport;
    if (kafka->messages == NULL) return;
    rd_kafka_poll(kafka->consumer.handle, 0);
    rd_kafka_consume_callback_queue(kafka->messages, 0, take, load);
    uint64_t all = load->options.messages * load->options.passes;
    if (kafka->pass_ends > 0 && kafka->pass_ends < all && load->counts.unique >= kafka->pass_ends) read_again(load);
}
