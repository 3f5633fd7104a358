/* The one object of a run: what was asked for, in which phase it is, what was counted.
 * A program is loadkit/ and one transport. Those that speak a protocol themselves take sockets/ with it and add
 * their words (pulsarload/, kafkaraw/); kafkaload/ leaves the protocol to librdkafka. The files beside this one:
 *   main.c   the loop                                  phases.c  warm-up, measuring, draining
 *   pace.c   payloads, and when the next one is due    check.c   every message exactly once and in order
 *   options.c  the command line                        report.c  the JSON line */
#ifndef LOADKIT_LOAD_H
#define LOADKIT_LOAD_H

#include "histogram.h"
#include "options.h"

#include <stddef.h>

enum phase { ATTACHING, WARMING, WARM_DRAINING, MEASURING, DRAINING, SETTLING, IDLING, DONE };

/* What every payload starts with, in the byte order of this machine. */
struct payload_head {
    uint64_t sequence;    /* of its producer, from 0, without holes */
    uint64_t intended_ns; /* when it should have been sent */
    uint32_t producer;
    uint32_t run;
};

struct counts {
    uint64_t sent, receipts, refused; /* messages, not entries */
    uint64_t received, unique, acked;
    uint64_t duplicates, late, foreign, redelivered, corrupt;
};

struct transport;

struct load {
    struct options options;
    struct transport *transport; /* its own business */
    enum phase phase;
    uint32_t connection_count, attached; /* all of one; how many of them are ready */
    bool sending, lead_reached, full;    /* full: at a rate, no connection has room */
    uint64_t now, started_ns, phase_ns, progress_ns;
    uint64_t phase_sent, phase_messages; /* limit of this phase; 0 = none but time */
    double phase_seconds;
    struct counts counts, base; /* base: counts when the measured phase began */
    double seconds, own_cpu, watched_cpu;
    double attach_seconds, attach_cpu; /* until all were ready; the CPU is the watched process's */
    struct histogram publish_latency, end_to_end;
    uint64_t errors, errors_at_attach;
    bool stalled, stop_asked;
};

/* The transport: sockets/transport.c or kafkaload/transport.c */
void transport_open(struct load *load);                   /* begin to attach; `attached` counts what is ready */
void transport_wait(struct load *load, uint64_t wait_ns); /* hear what there is, or wait that long for something */
void transport_fill(struct load *load);                   /* closed loop: fill every window */
void transport_send_due(struct load *load);               /* at a rate: send what is due */
void transport_read(struct load *load);                   /* let messages come */
void transport_settle(struct load *load);                 /* all is read: say the last words about it */
bool transport_settled(struct load *load);                /* and they were heard */
void transport_close(struct load *load);                  /* all is measured and reported */

/* main.c */
uint64_t clock_ns(void);
void fault(struct load *load, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool attach_given_up(const struct load *load); /* --wait is over: what fails now fails for good */

/* pace.c */
void pace_prepare(void);
uint8_t *put_payload(uint8_t *at, const struct load *load, uint32_t producer, uint64_t sequence, uint64_t intended_ns);
void pace_sent(struct load *load);
bool pace_may_send(struct load *load);
uint64_t pace_due_ns(const struct load *load);      /* the next message's own time */
uint64_t pace_next_due_ns(const struct load *load); /* until when the loop may sleep */

/* check.c */
bool take_payload(struct load *load, const uint8_t *payload, size_t size); /* false: too small for one of ours */
uint64_t check_missing(const struct load *load);
void check_forget(void); /* what was seen so far: it will be read again */

/* phases.c */
void phases_step(struct load *load);

/* report.c */
double watched_cpu_seconds(int pid);
double own_cpu_seconds(void);
int report(const struct load *load);

#endif
