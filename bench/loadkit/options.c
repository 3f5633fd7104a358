#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MIN 24 /* the header that verification needs */
#define SETTINGS_MAX 64
#define HELP "help"

const char *const MODES[] = {"publish", "consume", "both", "idle", "subscribe", NULL};

static const struct setting COMMON[] = {
    ONE_OF("mode", mode, MODES),
    SETTING("host", TEXT, host),
    NUMBER("port", INTEGER, port, 1, 65535),
    SETTING("topic", TEXT, topic),
    NUMBER("connections", COUNT32, connections, 1, 60000),
    NUMBER("consumers", COUNT32, consumers, 0, 1e6),
    NUMBER("depth", COUNT32, depth, 1, 1e6),
    NUMBER("bytes", COUNT32, bytes, BYTES_MIN, 5 << 20),
    NUMBER("messages", COUNT64, messages, 1, 1e15),
    NUMBER("seconds", REAL, seconds, 0.01, 1e6),
    NUMBER("warmup", REAL, warmup_seconds, 0, 1e6),
    NUMBER("rate", REAL, rate, 0, 1e9),
    NUMBER("lead", COUNT64, lead, 1, 1e15),
    NUMBER("run", COUNT32, run, 0, 4e9),
    NUMBER("wait", REAL, wait_seconds, 0, 1e6),
    NUMBER("stall", REAL, stall_seconds, 0.1, 1e6),
    NUMBER("watch-pid", INTEGER, watch_pid, 1, 1e9),
    SETTING("histogram", FLAG, histogram),
    SETTING(HELP, FLAG, histogram),
};

static int choice(const struct setting *setting, const char *text) {
    for (int i = 0; setting->allowed[i]; i++)
        if (strcmp(text, setting->allowed[i]) == 0) return i;
    fprintf(stderr, "%s: --%s does not know '%s'; it takes:", PROGRAM, setting->name, text);
    for (int i = 0; setting->allowed[i]; i++) fprintf(stderr, " %s", setting->allowed[i]);
    fprintf(stderr, "\n");
    exit(2);
}

static double number(const struct setting *setting, const char *text) {
    char *rest;
    double value = strtod(text, &rest);
    if (rest == text || *rest != '\0' || value < setting->least || value > setting->most) {
        fprintf(stderr, "%s: --%s must be a number from %g to %g, not '%s'\n", PROGRAM, setting->name, setting->least,
                setting->most, text);
        exit(2);
    }
    return value;
}

static void apply(struct options *options, const struct setting *setting, const char *text) {
    if (strcmp(setting->name, HELP) == 0) {
        printf("%s\nOne JSON line on standard output at the end.\n", PROGRAM_USAGE);
        exit(0);
    }
    void *field = (char *)options + setting->offset;
    switch (setting->kind) {
    case TEXT: *(const char **)field = text; break;
    case FLAG: *(bool *)field = true; break;
    case CHOICE: *(int *)field = choice(setting, text); break;
    case COUNT32: *(uint32_t *)field = (uint32_t)number(setting, text); break;
    case COUNT64: *(uint64_t *)field = (uint64_t)number(setting, text); break;
    case INTEGER: *(int *)field = (int)number(setting, text); break;
    case REAL: *(double *)field = number(setting, text); break;
    }
}

static void complete(struct options *options) {
    const char *wrong = NULL;
    if (options->mode < 0) wrong = "--mode is missing";
    else if (options->port == 0) wrong = "--port is missing";
    else if (options->topic == NULL) wrong = "--topic is missing";
    else if (options->topics > 1 && strstr(options->topic, "%d") == NULL) wrong = "--topics needs a %d in --topic";
    else if ((uint64_t)options->batch * (options->bytes + 32) > 5u << 20) wrong = "a batch must stay below 5 MiB";
    else if (options->messages == 0 && options->seconds == 0 && options->mode != MODE_SUBSCRIBE)
        wrong = "--messages or --seconds is missing";
    else wrong = program_completes(options);
    if (wrong == NULL) return;
    fprintf(stderr, "%s: %s (try --help)\n", PROGRAM, wrong);
    exit(2);
}

/* The common settings and the program's own, in the form of getopt; `val` is one beyond the place in `all`. */
static void join(const struct setting **all, struct option *known) {
    int count = 0;
    for (size_t i = 0; i < sizeof COMMON / sizeof *COMMON; i++) all[count++] = &COMMON[i];
    for (const struct setting *own = PROGRAM_SETTINGS; own->name; own++) all[count++] = own;
    for (int i = 0; i < count; i++)
        known[i] = (struct option){.name = all[i]->name, .has_arg = all[i]->kind != FLAG, .val = i + 1};
}

struct options options_parse(int count, char **arguments) {
    static const struct setting *all[SETTINGS_MAX];
    static struct option known[SETTINGS_MAX];
    struct options options = {
        .mode = -1, .host = "127.0.0.1", .topics = 1, .connections = 1, .producers = 1, .consumers = 1, .depth = 1000,
        .bytes = 100, .batch = 1, .copies = 1, .subscription = "load", .initial_position = 1, .run = 1, .stall_seconds = 30,
        .partitions = 1, .linger_ms = 5, .batch_bytes = 1000000, .passes = 1,
    };
    int which;
    join(all, known);
    while ((which = getopt_long_only(count, arguments, "", known, NULL)) != -1) {
        if (which == '?') exit(2);
        apply(&options, all[which - 1], optarg);
    }
    if (optind < count) {
        fprintf(stderr, "%s: '%s' is not an option\n", PROGRAM, arguments[optind]);
        exit(2);
    }
    complete(&options);
    uint64_t window = (uint64_t)options.depth * options.connections * options.batch;
    if (options.lead == 0) options.lead = 20 * window;
    return options;
}
