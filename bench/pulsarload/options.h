/* What the command line asks for. Every field has a default; the sizes are checked in options.c. */
#ifndef PULSARLOAD_OPTIONS_H
#define PULSARLOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum mode { MODE_PUBLISH, MODE_CONSUME, MODE_BOTH, MODE_IDLE, MODE_SUBSCRIBE };
enum ack_style { ACK_GROUPED, ACK_SINGLE, ACK_CUMULATIVE, ACK_NONE };

struct options {
    enum mode mode;
    const char *mode_name;
    const char *host;
    int port;
    const char *topic;        /* may hold one %d, replaced by the topic's number */
    uint32_t topics;          /* how many numbers there are */
    uint32_t connections;     /* for producers; consumers have as many of their own */
    uint32_t producers;       /* per connection */
    uint32_t consumers;       /* per topic */
    uint32_t depth;           /* entries in flight per connection */
    uint32_t bytes;           /* of one message's payload */
    uint32_t batch;           /* messages per entry; 1 = unbatched, without batch metadata */
    uint64_t messages;        /* 0 = until `seconds` have passed */
    double seconds;
    double warmup_seconds;
    double rate;              /* messages a second over all producers; 0 = closed loop */
    uint64_t lead;            /* mode both: how many messages publishing may be ahead of consuming */
    const char *subscription;
    int subscription_type;    /* exclusive 0, shared 1, failover 2, key_shared 3 */
    int initial_position;     /* latest 0, earliest 1 */
    enum ack_style ack;
    uint32_t permits;         /* receiver queue: messages the server may send ahead */
    uint32_t run;             /* marks this run's payloads; others' are counted as foreign. 0 accepts all */
    double wait_seconds;      /* keep dialling and attaching that long while the server comes up */
    double stall_seconds;     /* give up when nothing moved for that long */
    int watch_pid;            /* measure this process's CPU over exactly the measured window */
    bool histogram;           /* print the buckets too */
};

struct options options_parse(int count, char **arguments); /* prints a sentence and exits 2 on a bad one */

#endif
