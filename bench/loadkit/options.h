/* What the command line asks for. Every field has a default; each program takes the common settings and its own. */
#ifndef LOADKIT_OPTIONS_H
#define LOADKIT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mode { MODE_PUBLISH, MODE_CONSUME, MODE_BOTH, MODE_IDLE, MODE_SUBSCRIBE };
enum ack_style { ACK_GROUPED, ACK_SINGLE, ACK_CUMULATIVE, ACK_NONE };

struct options {
    int mode;                 /* enum mode */
    const char *host;
    int port;
    const char *topic;        /* may hold one %d, replaced by the topic's number */
    uint32_t topics;          /* how many numbers there are */
    uint32_t connections;     /* for producers; consumers have as many of their own */
    uint32_t producers;       /* per connection */
    uint32_t consumers;       /* per topic */
    uint32_t depth;           /* entries in flight per connection */
    uint32_t bytes;           /* of one message's payload */
    uint32_t batch;           /* messages per entry; 1 = unbatched */
    uint64_t messages;        /* 0 = until `seconds` have passed */
    double seconds;
    double warmup_seconds;
    double rate;              /* messages a second over all producers; 0 = closed loop */
    uint64_t lead;            /* mode both: how many messages publishing may be ahead of consuming */
    uint32_t run;             /* marks this run's payloads; others' are counted as foreign. 0 accepts all */
    double wait_seconds;      /* keep dialling and attaching that long while the server comes up */
    double stall_seconds;     /* give up when nothing moved for that long */
    int watch_pid;            /* measure this process's CPU over exactly the measured window */
    bool histogram;           /* print the buckets too */
    uint32_t copies;          /* how often each message is read */
    const char *token;        /* what clients prove themselves by; NULL if nobody asks */
    bool unconfirmed;         /* what is sent counts as received: the protocol has no receipts for it */
    /* Pulsar's */
    const char *subscription;
    int subscription_type;    /* exclusive 0, shared 1, failover 2, key_shared 3 */
    int initial_position;     /* latest 0, earliest 1 */
    int ack;                  /* enum ack_style */
    uint32_t permits;         /* receiver queue: messages the server may send ahead */
    double delay_seconds;     /* until what is sent is due; 0 = at once */
    const char *schema;       /* the AVRO definition that producers declare; NULL for none */
    /* MQTT's */
    uint32_t qos;
    int protocol_level;       /* 4 for 3.1.1, 5 for 5.0 */
    uint32_t writers;         /* connections that publish; those that read are one for each consumer */
    uint32_t subscriptions;   /* of each client that only attaches, to filters of its own */
    bool retain;              /* every message to a topic of its own, where it stays */
    bool keep;                /* sessions outlive their connections */
    bool wildcards;           /* filters begin with one */
    /* Kafka's */
    uint32_t partitions;      /* of a topic that is not there yet */
    double linger_ms;         /* how long librdkafka gathers a batch */
    uint32_t batch_bytes;     /* of librdkafka's batches, at most */
    uint32_t passes;          /* read the backlog that often */
    bool remove;              /* the topic, when all is measured: a full-speed run writes gigabytes */
};

enum setting_kind { TEXT, FLAG, CHOICE, COUNT32, COUNT64, INTEGER, REAL };

struct setting {
    const char *name;
    enum setting_kind kind;
    size_t offset;
    double least, most;         /* of numbers */
    const char *const *allowed; /* of a choice */
};

#define SETTING(words, sort, field) {.name = words, .kind = sort, .offset = offsetof(struct options, field)}
#define NUMBER(words, sort, field, from, to) \
    {.name = words, .kind = sort, .offset = offsetof(struct options, field), .least = from, .most = to}
#define ONE_OF(words, field, list) \
    {.name = words, .kind = CHOICE, .offset = offsetof(struct options, field), .allowed = list}

/* What a program says of itself; each defines these once. */
extern const char PROGRAM[];
extern const char PROGRAM_USAGE[];
extern const struct setting PROGRAM_SETTINGS[]; /* ends with a row without a name */
const char *program_completes(struct options *options); /* defaults that follow from others, or what is wrong */

extern const char *const MODES[];
struct options options_parse(int count, char **arguments); /* prints a sentence and exits 2 on a bad one */

#endif
