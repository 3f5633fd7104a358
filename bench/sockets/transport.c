#define _GNU_SOURCE
#include "../loadkit/crc32c.h"
#include "sockets.h"

#include <sys/epoll.h>

#define EVENTS_MAX 512

void transport_open(struct load *load) {
    static struct transport sockets;
    load->transport = &sockets;
    sockets.epoll = epoll_create1(EPOLL_CLOEXEC);
    crc32c_prepare();
    attach_plan(load);
    window_prepare(load);
    attach_more(load);
}

void transport_wait(struct load *load, uint64_t wait_ns) {
    static struct epoll_event events[EVENTS_MAX];
    struct timespec wait = {.tv_nsec = (long)wait_ns};
    int count = epoll_pwait2(load->transport->epoll, events, EVENTS_MAX, &wait, NULL);
    load->now = clock_ns();
    for (int i = 0; i < count && load->phase != DONE; i++) {
        if (i % 16 == 15) load->now = clock_ns();
        connection_ready(load, events[i].data.ptr, events[i].events);
    }
    if (load->phase != DONE) protocol_sweep(load);
}

void transport_fill(struct load *load) {
    for (uint32_t i = 0; i < load->connection_count; i++) {
        struct connection *connection = &load->transport->connections[i];
        if (connection->consumer || connection->fd < 0) continue;
        load->now = clock_ns();
        window_fill(load, connection);
        connection_flush(load, connection);
        if (load->phase == DONE) return;
    }
}

void transport_read(struct load *load) { protocol_read(load); }

void transport_settle(struct load *load) { protocol_settle(load); }

bool transport_settled(struct load *load) {
    for (uint32_t i = 0; i < load->connection_count; i++)
        if (load->transport->connections[i].ping_open) return false;
    return true;
}

void transport_close(struct load *load) { (void)load; } /* the system closes what is open */
