/* The topic: made with the wanted partitions if it is not there, and found. */
#include "kafkaload.h"

#include <unistd.h>

#define ANSWER_MS 10000
#define RETRY_PAUSE_US 20000

static bool create(struct load *load, rd_kafka_t *handle) {
    char text[512];
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(load->options.topic, (int)load->options.partitions, 1, text, sizeof text);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_CreateTopics(handle, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ANSWER_MS);
    rd_kafka_resp_err_t error = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (!error) {
        size_t count;
        const rd_kafka_topic_result_t **results =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
        error = count == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
    }
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(topic);
    /* Where rights are asked for, another makes the topic. */
    return error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ||
           error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
}

static bool has_leaders(const struct load *load, rd_kafka_t *handle, rd_kafka_topic_t *topic) {
    const struct rd_kafka_metadata *found;
    if (rd_kafka_metadata(handle, 0, topic, &found, ANSWER_MS)) return false;
    bool all = found->topic_cnt == 1 && (uint32_t)found->topics[0].partition_cnt >= load->options.partitions;
    for (int i = 0; all && i < found->topics[0].partition_cnt; i++) all = found->topics[0].partitions[i].leader >= 0;
    rd_kafka_metadata_destroy(found);
    return all;
}

static bool again(struct load *load) {
    load->errors_at_attach++;
    if (attach_given_up(load)) {
        fault(load, "no topic at %s:%d", load->options.host, load->options.port);
        load->phase = DONE;
        return false;
    }
    usleep(RETRY_PAUSE_US);
    return true;
}

rd_kafka_topic_t *topic_opened(struct load *load, rd_kafka_t *handle) {
    while (!create(load, handle))
        if (!again(load)) return NULL;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, load->options.topic, NULL);
    while (!has_leaders(load, handle, topic))
        if (!again(load)) return NULL;
    return topic;
}

void topic_remove(const struct load *load, rd_kafka_t *handle) {
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(load->options.topic);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_DeleteTopics(handle, &topic, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, ANSWER_MS);
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteTopic_destroy(topic);
}
