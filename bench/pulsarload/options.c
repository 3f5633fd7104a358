#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MIN 24 /* the header that verification needs */

enum { MODE = 1, HOST, PORT, TOPIC, TOPICS, CONNECTIONS, PRODUCERS, CONSUMERS, DEPTH, BYTES, BATCH, MESSAGES, SECONDS,
       WARMUP, RATE, LEAD, SUBSCRIPTION, TYPE, POSITION, ACKS, PERMITS, RUN, WAIT, STALL, WATCH, HISTOGRAM, HELP };

static const struct option KNOWN[] = {
    {"mode", 1, 0, MODE}, {"host", 1, 0, HOST}, {"port", 1, 0, PORT}, {"topic", 1, 0, TOPIC}, {"topics", 1, 0, TOPICS},
    {"connections", 1, 0, CONNECTIONS}, {"producers", 1, 0, PRODUCERS}, {"consumers", 1, 0, CONSUMERS},
    {"depth", 1, 0, DEPTH}, {"bytes", 1, 0, BYTES}, {"batch", 1, 0, BATCH}, {"messages", 1, 0, MESSAGES},
    {"seconds", 1, 0, SECONDS}, {"warmup", 1, 0, WARMUP}, {"rate", 1, 0, RATE}, {"lead", 1, 0, LEAD},
    {"subscription", 1, 0, SUBSCRIPTION}, {"type", 1, 0, TYPE}, {"position", 1, 0, POSITION}, {"ack", 1, 0, ACKS},
    {"permits", 1, 0, PERMITS}, {"run", 1, 0, RUN}, {"wait", 1, 0, WAIT}, {"stall", 1, 0, STALL},
    {"watch-pid", 1, 0, WATCH}, {"histogram", 0, 0, HISTOGRAM}, {"help", 0, 0, HELP}, {0, 0, 0, 0},
};

static const char *const MODES[] = {"publish", "consume", "both", "idle", "subscribe", NULL};
static const char *const TYPES[] = {"exclusive", "shared", "failover", "key_shared", NULL};
static const char *const POSITIONS[] = {"latest", "earliest", NULL};
static const char *const ACK_STYLES[] = {"grouped", "single", "cumulative", "none", NULL};

static int choice(const char *name, const char *text, const char *const *allowed) {
    for (int i = 0; allowed[i]; i++)
        if (strcmp(text, allowed[i]) == 0) return i;
    fprintf(stderr, "pulsarload: --%s does not know '%s'; it takes:", name, text);
    for (int i = 0; allowed[i]; i++) fprintf(stderr, " %s", allowed[i]);
    fprintf(stderr, "\n");
    exit(2);
}

static double number(const char *name, const char *text, double least, double most) {
    char *rest;
    double value = strtod(text, &rest);
    if (rest == text || *rest != '\0' || value < least || value > most) {
        fprintf(stderr, "pulsarload: --%s must be a number from %g to %g, not '%s'\n", name, least, most, text);
        exit(2);
    }
    return value;
}

static void usage(void) {
    printf("pulsarload --mode publish|consume|both|idle|subscribe --port PORT --topic NAME [options]\n"
           "  load:     --connections N --producers N (per connection) --consumers N (per topic) --topics N (for %%d)\n"
           "            --depth N (entries in flight per connection) --bytes N --batch N (messages per entry)\n"
           "            --messages N | --seconds S, --warmup S, --rate N (messages a second, open loop), --lead N\n"
           "  reading:  --subscription NAME --type exclusive|shared|failover|key_shared --position latest|earliest\n"
           "            --ack grouped|single|cumulative|none --permits N\n"
           "  running:  --host HOST --wait S --stall S --run N --watch-pid PID --histogram\n"
           "One JSON line on standard output at the end; `idle` prints {\"event\": \"idle\"} when all are attached\n"
           "and stays until --seconds have passed or SIGTERM.\n");
    exit(0);
}

static void apply(struct options *options, int which, const char *name, const char *text) {
    const double many = 1e15;
    switch (which) {
    case MODE: options->mode = (enum mode)choice(name, text, MODES); options->mode_name = text; break;
    case HOST: options->host = text; break;
    case PORT: options->port = (int)number(name, text, 1, 65535); break;
    case TOPIC: options->topic = text; break;
    case TOPICS: options->topics = (uint32_t)number(name, text, 1, 1e6); break;
    case CONNECTIONS: options->connections = (uint32_t)number(name, text, 1, 60000); break;
    case PRODUCERS: options->producers = (uint32_t)number(name, text, 0, 1e6); break;
    case CONSUMERS: options->consumers = (uint32_t)number(name, text, 0, 1e4); break;
    case DEPTH: options->depth = (uint32_t)number(name, text, 1, 1e6); break;
    case BYTES: options->bytes = (uint32_t)number(name, text, BYTES_MIN, 5 << 20); break;
    case BATCH: options->batch = (uint32_t)number(name, text, 1, 1e5); break;
    case MESSAGES: options->messages = (uint64_t)number(name, text, 1, many); break;
    case SECONDS: options->seconds = number(name, text, 0.01, 1e6); break;
    case WARMUP: options->warmup_seconds = number(name, text, 0, 1e6); break;
    case RATE: options->rate = number(name, text, 0, 1e9); break;
    case LEAD: options->lead = (uint64_t)number(name, text, 1, many); break;
    case SUBSCRIPTION: options->subscription = text; break;
    case TYPE: options->subscription_type = choice(name, text, TYPES); break;
    case POSITION: options->initial_position = choice(name, text, POSITIONS); break;
    case ACKS: options->ack = (enum ack_style)choice(name, text, ACK_STYLES); break;
    case PERMITS: options->permits = (uint32_t)number(name, text, 1, 1e9); break;
    case RUN: options->run = (uint32_t)number(name, text, 0, 4e9); break;
    case WAIT: options->wait_seconds = number(name, text, 0, 1e6); break;
    case STALL: options->stall_seconds = number(name, text, 0.1, 1e6); break;
    case WATCH: options->watch_pid = (int)number(name, text, 1, 1e9); break;
    case HISTOGRAM: options->histogram = true; break;
    default: usage();
    }
}

static void check(const struct options *options) {
    const char *wrong = NULL;
    if (options->mode_name == NULL) wrong = "--mode is missing";
    else if (options->port == 0) wrong = "--port is missing";
    else if (options->topic == NULL) wrong = "--topic is missing";
    else if (options->topics > 1 && strstr(options->topic, "%d") == NULL) wrong = "--topics needs a %d in --topic";
    else if ((uint64_t)options->batch * (options->bytes + 32) > 5u << 20) wrong = "a batch must stay below 5 MiB";
    else if (options->messages == 0 && options->seconds == 0 && options->mode != MODE_SUBSCRIBE)
        wrong = "--messages or --seconds is missing";
    if (wrong == NULL) return;
    fprintf(stderr, "pulsarload: %s (try --help)\n", wrong);
    exit(2);
}

struct options options_parse(int count, char **arguments) {
    struct options options = {
        .host = "127.0.0.1", .topics = 1, .connections = 1, .producers = 1, .consumers = 1, .depth = 1000,
        .bytes = 100, .batch = 1, .subscription = "load", .initial_position = 1, .run = 1, .stall_seconds = 30,
    };
    int index = 0, which;
    while ((which = getopt_long_only(count, arguments, "", KNOWN, &index)) != -1) {
        if (which == '?') exit(2);
        apply(&options, which, KNOWN[index].name, optarg);
    }
    if (optind < count) {
        fprintf(stderr, "pulsarload: '%s' is not an option\n", arguments[optind]);
        exit(2);
    }
    check(&options);
    uint64_t window = (uint64_t)options.depth * options.connections * options.batch;
    if (options.lead == 0) options.lead = 20 * window;
    /* 1000 is the queue of stock clients; a queue of one batch would make every batch a round trip. */
    if (options.permits == 0) options.permits = options.batch > 20 ? 50 * options.batch : 1000;
    return options;
}
