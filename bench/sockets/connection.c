/* Sockets and buffers. A frame is handed on once it is whole; replies gather in `out` and leave in one send. */
#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES_FIRST 4096
#define READ_BYTES_MAX (1 << 20)
#define FRAME_BYTES_MAX (64u << 20)

static struct sockaddr_in address_of(const struct options *options) {
    static struct sockaddr_in known;
    if (known.sin_family == AF_INET) return known;
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    int problem = getaddrinfo(options->host, NULL, &hints, &found);
    if (problem != 0) {
        fprintf(stderr, "%s: cannot resolve %s: %s\n", PROGRAM, options->host, gai_strerror(problem));
        exit(2);
    }
    memcpy(&known, found->ai_addr, sizeof known);
    known.sin_port = htons((uint16_t)options->port);
    freeaddrinfo(found);
    return known;
}

bool connection_dial(struct load *load, struct connection *connection) {
    struct sockaddr_in address = address_of(&load->options);
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->fd < 0) {
        fprintf(stderr, "%s: no socket: %s (see ulimit -n)\n", PROGRAM, strerror(errno));
        exit(2);
    }
    int one = 1;
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS) return false;
    connection->wants_write = true;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = connection};
    epoll_ctl(load->transport->epoll, EPOLL_CTL_ADD, connection->fd, &event);
    protocol_greet(load, connection);
    return true;
}

void connection_close(struct load *load, struct connection *connection) {
    if (connection->fd < 0) return;
    epoll_ctl(load->transport->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
    close(connection->fd);
    connection->fd = -1;
    buffer_free(&connection->in);
    buffer_free(&connection->out);
}

static void lost(struct load *load, struct connection *connection, const char *why) {
    connection_close(load, connection);
    if (load->phase == ATTACHING) {
        attach_lost(load, connection);
        return;
    }
    fault(load, "connection %u lost: %s", connection->number, why);
    load->phase = DONE;
}

static void want_write(struct load *load, struct connection *connection, bool wanted) {
    if (connection->wants_write == wanted) return;
    connection->wants_write = wanted;
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = connection};
    epoll_ctl(load->transport->epoll, EPOLL_CTL_MOD, connection->fd, &event);
}

void connection_flush(struct load *load, struct connection *connection) {
    struct buffer *out = &connection->out;
    while (connection->fd >= 0 && buffer_size(out) > 0) {
        ssize_t sent = send(connection->fd, out->bytes + out->start, buffer_size(out), MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == ENOTCONN) break;
            lost(load, connection, strerror(errno));
            return;
        }
        out->start += (size_t)sent;
    }
    if (connection->fd >= 0) want_write(load, connection, buffer_size(out) > 0);
}

static bool split(struct load *load, struct connection *connection) {
    struct buffer *in = &connection->in;
    while (buffer_size(in) > 0) {
        size_t head = 0, size = protocol_frame(in->bytes + in->start, buffer_size(in), &head);
        if (size > FRAME_BYTES_MAX) return false;
        if (size == 0 || buffer_size(in) < size) break;
        if (!protocol_heard(load, connection, in->bytes + in->start + head, size - head)) return false;
        if (connection->fd < 0) return true;
        in->start += size;
    }
    return true;
}

size_t frame_behind_u32(const uint8_t *bytes, size_t size, size_t *head) {
    *head = 4;
    return size < 4 ? 0 : 4 + (size_t)get_u32(bytes);
}

/* The room grows with what arrives, so that ten thousand idle connections stay small and a fast one reads 1 MiB. */
static size_t read_bytes(const struct buffer *in) {
    size_t room = in->capacity < READ_BYTES_FIRST ? READ_BYTES_FIRST : in->capacity;
    if (buffer_size(in) * 2 > room) room *= 2;
    return room > READ_BYTES_MAX ? READ_BYTES_MAX : room;
}

static void read_some(struct load *load, struct connection *connection) {
    struct buffer *in = &connection->in;
    size_t wanted = read_bytes(in);
    uint8_t *room = buffer_room(in, wanted);
    ssize_t got = recv(connection->fd, room, wanted, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        lost(load, connection, got == 0 ? "closed by the server" : strerror(errno));
        return;
    }
    in->end += (size_t)got;
    if ((size_t)got == wanted && wanted < READ_BYTES_MAX) buffer_room(in, wanted * 2);
    if (!split(load, connection)) {
        fault(load, "connection %u: malformed frame", connection->number);
        load->phase = DONE;
    }
}

void connection_ready(struct load *load, struct connection *connection, uint32_t events) {
    if (connection->fd < 0) return;
    if (events & (EPOLLERR | EPOLLHUP)) {
        int problem = 0;
        socklen_t size = sizeof problem;
        getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &problem, &size);
        lost(load, connection, problem ? strerror(problem) : "hung up");
        return;
    }
    if (events & EPOLLIN) read_some(load, connection);
    if (connection->fd < 0) return;
    if (!connection->consumer) window_fill(load, connection);
    connection_flush(load, connection);
}
