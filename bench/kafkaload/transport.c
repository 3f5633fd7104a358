/* One wake-up for all handles. librdkafka's own polling counts in milliseconds, too coarse to send on time. */
#define _GNU_SOURCE
#include "kafkaload.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static void quiet(const rd_kafka_t *handle, int level, const char *facility, const char *text) {
    (void)handle, (void)level, (void)facility, (void)text; /* a server that is not up yet would fill the screen */
}

void set(rd_kafka_conf_t *conf, const char *name, const char *format, ...) {
    char value[2048], text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) == RD_KAFKA_CONF_OK) return;
    fprintf(stderr, "%s: %s\n", PROGRAM, text);
    exit(2);
}

rd_kafka_conf_t *configuration(const struct load *load) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", "%s:%d", load->options.host, load->options.port);
    set(conf, "client.id", "%s", PROGRAM);
    set(conf, "reconnect.backoff.ms", "%u", 10);
    set(conf, "socket.nagle.disable", "true");
    if (load->options.token) {
        set(conf, "security.protocol", "sasl_plaintext");
        set(conf, "sasl.mechanism", "PLAIN");
        set(conf, "sasl.username", "load"); /* the token names the client */
        set(conf, "sasl.password", "token:%s", load->options.token);
    }
    rd_kafka_conf_set_log_cb(conf, quiet);
    return conf;
}

rd_kafka_t *made(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char text[512];
    rd_kafka_t *handle = rd_kafka_new(type, conf, text, sizeof text);
    if (handle != NULL) return handle;
    fprintf(stderr, "%s: %s\n", PROGRAM, text);
    exit(2);
}

void wakes(const struct transport *kafka, rd_kafka_queue_t *queue) {
    static const uint64_t one = 1;
    rd_kafka_queue_io_event_enable(queue, kafka->wake, &one, sizeof one);
}

void transport_open(struct load *load) {
    static struct transport kafka;
    load->transport = &kafka;
    load->connection_count = 1; /* of the whole: it is attached when it is open */
    kafka.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (load->options.mode != MODE_CONSUME) produce_open(load);
    if (load->options.mode != MODE_PUBLISH && load->phase != DONE) consume_open(load);
    if (load->phase != DONE) load->attached = 1;
}

void transport_wait(struct load *load, uint64_t wait_ns) {
    struct transport *kafka = load->transport;
    struct pollfd wake = {.fd = kafka->wake, .events = POLLIN};
    struct timespec wait = {.tv_nsec = (long)wait_ns};
    uint64_t count;
    if (ppoll(&wake, 1, &wait, NULL) > 0 && read(kafka->wake, &count, sizeof count) < 0) perror(PROGRAM);
    load->now = clock_ns();
    produce_serve(load);
    consume_serve(load);
    load->now = clock_ns();
    transport_fill(load);
}

void transport_settle(struct load *load) { (void)load; }
bool transport_settled(struct load *load) { return load->phase == SETTLING; }

void transport_close(struct load *load) {
    struct transport *kafka = load->transport;
    fflush(stdout);
    if (load->options.remove) topic_remove(load, kafka->producers ? kafka->producers[0].handle : kafka->consumer.handle);
}
