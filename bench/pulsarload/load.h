/* The one object of a run: its connections, its producers and consumers, what was counted.
 * One thread, one epoll; the files beside this one each own a part:
 *   connection.c  sockets, buffers, splitting into frames      attach.c   handshake, lookup, PRODUCER, SUBSCRIBE
 *   publish.c     building SENDs, pacing, receipts             consume.c  MESSAGEs, permits, acknowledgements
 *   check.c       every message exactly once and in order      phases.c   warm-up, measuring, draining
 *   report.c      the JSON line                                main.c     the loop */
#ifndef PULSARLOAD_LOAD_H
#define PULSARLOAD_LOAD_H

#include "histogram.h"
#include "options.h"
#include "wire.h"

#define ACK_IDS_MAX 1000
#define ACK_WAIT_NS 100000000
#define OUT_BYTES_MAX (256 << 10) /* no SEND is built while more than this waits for the socket */
#define ATTACHING_MAX 64          /* connections in their handshake at once */
#define NAME_BYTES_MAX 128

enum attached { WAITING, IN_METADATA, IN_LOOKUP, IN_ATTACH, READY };
enum phase { ATTACHING, WARMING, WARM_DRAINING, MEASURING, DRAINING, SETTLING, IDLING, DONE };

/* What every payload starts with, in the byte order of this machine. */
struct payload_head {
    uint64_t sequence;    /* of its producer, from 0, without holes */
    uint64_t intended_ns; /* when it should have been sent */
    uint32_t producer;
    uint32_t run;
};

struct message_id {
    uint64_t ledger, entry;
    uint64_t partition_plus_one; /* 0 = the message had none */
};

struct connection;

/* A producer or a consumer; `id` is its number on its connection and in `connection->endpoints`. */
struct endpoint {
    struct connection *connection;
    uint32_t id, number, topic;
    int32_t partition; /* -1: the topic is not partitioned */
    enum attached state;
    bool consumer;
    char name[NAME_BYTES_MAX]; /* of the producer, as the server gave it */
    size_t name_size;
    /* producer: intended times of what is in flight, oldest first; receipts come in that order */
    uint64_t *pending_ns, pending_mask, pending_first, pending_end, sequence;
    /* consumer */
    uint32_t taken; /* permits used since the last FLOW */
    uint32_t ack_count;
    struct message_id *acks;
};

struct connection {
    int fd;
    uint32_t number;
    bool consumer, connected, wants_write, ping_open;
    struct buffer in, out;
    struct endpoint *endpoints;
    uint32_t endpoint_count, attaching; /* endpoints before `attaching` are READY */
    uint32_t next_producer, in_flight;
};

struct counts {
    uint64_t sent, receipts, refused; /* messages, not entries */
    uint64_t received, unique, acked;
    uint64_t duplicates, late, foreign, redelivered, corrupt;
};

struct load {
    struct options options;
    int epoll;
    enum phase phase;
    struct connection *connections;
    uint32_t connection_count, dialled, attached, attaching_now;
    uint32_t next_connection; /* whose turn it is when sending at a rate */
    bool sending, lead_reached, full; /* full: at a rate, no connection has room */
    uint64_t now, started_ns, phase_ns, progress_ns, ack_sweep_ns;
    uint64_t phase_sent, phase_messages; /* limit of this phase; 0 = none but time */
    double phase_seconds;
    struct counts counts, base; /* base: counts when the measured phase began */
    double seconds, own_cpu, watched_cpu;
    struct histogram publish_latency, end_to_end;
    uint64_t errors, errors_at_attach;
    bool stalled, stop_asked;
};

uint64_t clock_ns(void);
void fault(struct load *load, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* connection.c */
bool connection_dial(struct load *load, struct connection *connection);
void connection_ready(struct load *load, struct connection *connection, uint32_t events);
void connection_flush(struct load *load, struct connection *connection);
void connection_close(struct load *load, struct connection *connection);

/* attach.c */
void attach_plan(struct load *load);
void attach_more(struct load *load);
void attach_greet(struct connection *connection);
bool attach_heard(struct load *load, struct connection *connection, const struct frame *frame);
void attach_lost(struct load *load, struct connection *connection);

/* publish.c */
void publish_prepare(struct load *load);
void publish_fill(struct load *load, struct connection *connection);
void publish_due(struct load *load);
uint64_t publish_next_due_ns(const struct load *load);
void publish_receipt(struct load *load, struct connection *connection, const struct frame *frame);
void publish_refused(struct load *load, struct connection *connection, const struct frame *frame);

/* consume.c */
void consume_start(struct load *load);
void consume_message(struct load *load, struct connection *connection, const struct frame *frame);
void consume_flush_acks(struct load *load, struct endpoint *consumer);
void consume_sweep(struct load *load);

/* check.c: false for a message that was seen before or belongs to another run */
bool check_message(struct load *load, const struct payload_head *head);
uint64_t check_missing(const struct load *load);

/* phases.c */
void phases_begin(struct load *load);
void phases_step(struct load *load);
void phases_pong(struct load *load, struct connection *connection);

/* report.c */
double watched_cpu_seconds(int pid);
double own_cpu_seconds(void);
int report(const struct load *load);

#endif
