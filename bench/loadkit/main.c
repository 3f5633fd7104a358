/* The loop: hear what has come, send what is due, step the phases. */
#define _GNU_SOURCE
#include "load.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define TICK_NS 10000000ull
#define FAULTS_PRINTED_MAX 20

static volatile sig_atomic_t asked_to_stop;

/* Never goes back, whatever the machine's clocks do on its cores: differences are unsigned, and one below zero would
 * look like the end of every phase. */
uint64_t clock_ns(void) {
    static uint64_t latest;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t read = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
    if (read > latest) latest = read;
    return latest;
}

void fault(struct load *load, const char *format, ...) {
    if (load->errors++ >= FAULTS_PRINTED_MAX) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", PROGRAM);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

bool attach_given_up(const struct load *load) {
    return clock_ns() - load->started_ns > (uint64_t)(load->options.wait_seconds * 1e9);
}

static void stop(int signal) {
    (void)signal;
    asked_to_stop = 1;
}

static uint64_t patience_ns(const struct load *load) {
    uint64_t now = clock_ns(), due = pace_next_due_ns(load);
    return due <= now ? 0 : due - now < TICK_NS ? due - now : TICK_NS;
}

static void run(struct load *load) {
    while (load->phase != DONE) {
        transport_wait(load, patience_ns(load));
        load->stop_asked = asked_to_stop;
        if (load->phase == DONE) break;
        load->now = clock_ns();
        if (load->options.rate > 0) transport_send_due(load);
        phases_step(load);
    }
}

int main(int count, char **arguments) {
    static struct load load;
    load.options = options_parse(count, arguments);
    load.attach_cpu = watched_cpu_seconds(load.options.watch_pid);
    load.started_ns = load.now = load.progress_ns = clock_ns();
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_TIMERSLACK, 1000); /* or every paced send would be 50 us late */
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pace_prepare();
    transport_open(&load);
    run(&load);
    int code = report(&load);
    transport_close(&load);
    return code;
}
