/* The loop: wait, read and answer every ready connection, send what is due, step the phases. */
#define _GNU_SOURCE
#include "load.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define EVENTS_MAX 512
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
    fprintf(stderr, "pulsarload: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
}

static void stop(int signal) {
    (void)signal;
    asked_to_stop = 1;
}

static struct timespec patience(const struct load *load) {
    uint64_t now = clock_ns(), due = publish_next_due_ns(load);
    uint64_t wait = due <= now ? 0 : due - now < TICK_NS ? due - now : TICK_NS;
    return (struct timespec){.tv_sec = 0, .tv_nsec = (long)wait};
}

static void run(struct load *load) {
    static struct epoll_event events[EVENTS_MAX];
    attach_more(load);
    while (load->phase != DONE) {
        struct timespec wait = patience(load);
        int count = epoll_pwait2(load->epoll, events, EVENTS_MAX, &wait, NULL);
        load->now = clock_ns();
        load->stop_asked = asked_to_stop;
        for (int i = 0; i < count && load->phase != DONE; i++) {
            if (i % 16 == 15) load->now = clock_ns();
            connection_ready(load, events[i].data.ptr, events[i].events);
        }
        if (load->phase == DONE) break;
        load->now = clock_ns();
        publish_due(load);
        consume_sweep(load);
        phases_step(load);
    }
}

int main(int count, char **arguments) {
    static struct load load;
    load.options = options_parse(count, arguments);
    load.started_ns = load.now = load.progress_ns = clock_ns();
    struct rlimit files = {0};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_TIMERSLACK, 1000); /* or every paced send would be 50 us late */
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    attach_plan(&load);
    publish_prepare(&load);
    run(&load);
    return report(&load);
}
