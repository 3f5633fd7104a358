/* A Pulsar server that stores nothing: every SEND is receipted at once and handed to the consumer, if there is one.
 * It answers one question: how fast is the load generator when nothing holds it up? It is no measure of any server,
 * ignores permits, topics and acknowledgements, and trusts its only client. */
#define _GNU_SOURCE
#include "../pulsarload/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (1 << 20)
#define EVENTS_MAX 64

struct peer {
    int fd;
    struct buffer in, out;
};

static struct peer *consumer;
static uint64_t entries;

static uint64_t number_of(const struct frame *frame, unsigned number) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    while (next_field(&cursor, &field))
        if (field.number == number && field.type == 0) return field.value;
    return 0;
}

static void answer(struct peer *peer, unsigned type, unsigned request_field, uint64_t request, unsigned name_field) {
    static struct message message;
    message.size = 0;
    if (request_field) message_number(&message, request_field, request);
    if (name_field) message_text(&message, name_field, "null", 4);
    if (type == LOOKUP_RESPONSE || type == PARTITIONED_METADATA_RESPONSE) message_number(&message, 3, type == LOOKUP_RESPONSE);
    buffer_command(&peer->out, type, &message);
}

static void hand_out(const struct frame *frame) {
    static struct message message, id;
    id.size = message.size = 0;
    message_number(&id, 1, 1);
    message_number(&id, 2, entries);
    message_number(&message, 1, 0);
    message_text(&message, 2, id.bytes, id.size);
    buffer_room(&consumer->out, frame->tail_size + message.size + 64);
    size_t first = consumer->out.end;
    buffer_command(&consumer->out, MESSAGE, &message);
    uint8_t *size = consumer->out.bytes + first;
    put_u32(size, get_u32(size) + (uint32_t)frame->tail_size);
    memcpy(consumer->out.bytes + consumer->out.end, frame->tail, frame->tail_size);
    consumer->out.end += frame->tail_size;
}

static void receipt(struct peer *peer, const struct frame *frame) {
    static struct message message;
    message.size = 0;
    message_number(&message, 1, number_of(frame, 1));
    message_number(&message, 2, number_of(frame, 2));
    buffer_command(&peer->out, SEND_RECEIPT, &message);
    if (consumer) hand_out(frame);
    entries++;
}

static void hear(struct peer *peer, const struct frame *frame) {
    switch (frame->type) {
    case CONNECT: answer(peer, CONNECTED, 0, 0, 1); break;
    case PARTITIONED_METADATA: answer(peer, PARTITIONED_METADATA_RESPONSE, 2, number_of(frame, 2), 0); break;
    case LOOKUP: answer(peer, LOOKUP_RESPONSE, 4, number_of(frame, 2), 0); break;
    case PRODUCER: answer(peer, PRODUCER_SUCCESS, 1, number_of(frame, 3), 2); break;
    case SUBSCRIBE: consumer = peer; answer(peer, SUCCESS, 1, number_of(frame, 5), 0); break;
    case PING: answer(peer, PONG, 0, 0, 0); break;
    case SEND: receipt(peer, frame); break;
    default: break;
    }
}

static void flush(struct peer *peer) {
    while (buffer_size(&peer->out) > 0) {
        ssize_t sent = send(peer->fd, peer->out.bytes + peer->out.start, buffer_size(&peer->out), MSG_NOSIGNAL);
        if (sent <= 0) return;
        peer->out.start += (size_t)sent;
    }
}

static void end(struct peer *peer) {
    if (consumer == peer) consumer = NULL;
    close(peer->fd);
    buffer_free(&peer->in);
    buffer_free(&peer->out);
    free(peer);
}

/* One read's worth; false when there was nothing to read, or nobody any more. */
static bool read_some(struct peer *peer) {
    uint8_t *room = buffer_room(&peer->in, READ_BYTES);
    ssize_t got = recv(peer->fd, room, READ_BYTES, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        end(peer);
        return false;
    }
    if (got > 0) peer->in.end += (size_t)got;
    while (buffer_size(&peer->in) >= 4) {
        const uint8_t *at = peer->in.bytes + peer->in.start;
        size_t size = get_u32(at);
        struct frame frame;
        if (buffer_size(&peer->in) < 4 + size || !parse_frame(at + 4, size, &frame)) break;
        hear(peer, &frame);
        peer->in.start += 4 + size;
    }
    flush(peer);
    if (consumer) flush(consumer);
    return got > 0;
}

static void add(int epoll, int fd) {
    struct peer *peer = calloc(1, sizeof *peer);
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    peer->fd = fd;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = peer};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int main(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 128)) return 2;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    struct epoll_event events[EVENTS_MAX], first = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &first);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL) add(epoll, accept4(listener, NULL, NULL, SOCK_NONBLOCK));
            else while (read_some(events[i].data.ptr)) continue;
        }
    }
}
