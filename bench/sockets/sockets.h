/* A transport for protocols that are written by hand: one thread, one epoll.
 *   connection.c  sockets, buffers, splitting into frames     attach.c     dialling, many at once
 *   window.c      how much may be in flight, and pacing       transport.c  what loadkit asks for
 * The words are the protocol's: the functions at the end, which a program defines. */
#ifndef SOCKETS_SOCKETS_H
#define SOCKETS_SOCKETS_H

#include "../loadkit/load.h"
#include "buffer.h"

#define OUT_BYTES_MAX (256 << 10) /* nothing is built while more than this waits for the socket */
#define NAME_SIZE_MAX 512

struct connection;
struct own; /* what a protocol keeps of an endpoint */

/* A producer or a consumer; `id` is its number on its connection and in `connection->endpoints`. */
struct endpoint {
    struct connection *connection;
    uint32_t id, number, topic;
    int32_t partition; /* -1: the topic is not partitioned */
    bool consumer;
    struct own *own;
    /* producer: intended times of what is in flight, oldest first; receipts come in that order */
    uint64_t *pending_ns, pending_mask, pending_first, pending_end, sequence;
};

struct connection {
    int fd;
    uint32_t number;
    bool consumer, greeted, wants_write, ping_open, unflushed;
    struct buffer in, out;
    struct endpoint *endpoints;
    uint32_t endpoint_count, attaching; /* endpoints before `attaching` are ready */
    uint32_t next_producer, in_flight;
};

struct transport {
    int epoll;
    struct connection *connections; /* consumers' first */
    uint32_t dialled, attaching_now;
    uint32_t next_connection; /* whose turn it is when sending at a rate */
    struct connection **unflushed; /* those it was the turn of since the last look at the clock */
    uint32_t unflushed_count;
    uint64_t ack_sweep_ns;
};

/* connection.c */
bool connection_dial(struct load *load, struct connection *connection);
void connection_ready(struct load *load, struct connection *connection, uint32_t events);
void connection_flush(struct load *load, struct connection *connection);
void connection_close(struct load *load, struct connection *connection);

size_t frame_behind_u32(const uint8_t *bytes, size_t size, size_t *head); /* for protocols with four bytes of size */

/* attach.c */
void attach_plan(struct load *load);
void attach_more(struct load *load);
void attach_next(struct load *load, struct connection *connection); /* one endpoint more is ready, or the greeting */
void attach_lost(struct load *load, struct connection *connection);
bool attach_again(struct load *load); /* count a refusal; false: --wait is over */
int topic_name(const struct load *load, const struct endpoint *endpoint, char *name);

/* window.c */
void window_prepare(struct load *load);
void window_fill(struct load *load, struct connection *connection);
bool window_settle(struct load *load, struct endpoint *producer, bool stored); /* one entry is answered for */

/* The protocol */
extern const size_t OWN_BYTES; /* sizeof(struct own) */
#define FRAME_MALFORMED SIZE_MAX
/* How many bytes the next frame takes: 0, more are needed to know. `head` of them are not handed on. */
size_t protocol_frame(const uint8_t *bytes, size_t size, size_t *head);
void protocol_greet(struct load *load, struct connection *connection);
void protocol_attach(struct load *load, struct endpoint *endpoint); /* begin; then attach_next */
bool protocol_heard(struct load *load, struct connection *connection, const uint8_t *frame, size_t size); /* false: malformed */
void protocol_build(struct load *load, struct endpoint *producer, uint64_t intended_ns); /* one entry into `out` */
void protocol_read(struct load *load);   /* let messages come */
void protocol_sweep(struct load *load);  /* now and then */
void protocol_settle(struct load *load); /* sets `ping_open` of connections whose last word it waits for */

#endif
