/* Which connections and endpoints there are, and dialling them: one endpoint at a time per connection, many
 * connections at once. */
#include "sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ATTACHING_MAX 64 /* connections in their handshake at once */
#define RETRY_PAUSE_US 1000

static void add_connections(struct load *load, uint32_t count, bool consumer) {
    for (uint32_t i = 0; i < count; i++) {
        struct connection *connection = &load->transport->connections[load->connection_count];
        *connection = (struct connection){.fd = -1, .number = load->connection_count, .consumer = consumer};
        load->connection_count++;
    }
}

static void add_endpoints(struct load *load, struct connection *connection, uint32_t count, uint32_t first, uint32_t step) {
    connection->endpoints = calloc(count ? count : 1, sizeof *connection->endpoints);
    connection->endpoint_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = first + i * step;
        connection->endpoints[i] = (struct endpoint){
            .connection = connection, .id = i, .number = number, .partition = -1,
            .topic = number % load->options.topics, .consumer = connection->consumer, .own = calloc(1, OWN_BYTES),
        };
    }
}

void attach_plan(struct load *load) {
    const struct options *options = &load->options;
    struct transport *sockets = load->transport;
    bool publishes = options->mode == MODE_PUBLISH || options->mode == MODE_BOTH || options->mode == MODE_IDLE;
    bool reads = options->mode == MODE_CONSUME || options->mode == MODE_BOTH || options->mode == MODE_SUBSCRIBE;
    uint32_t consumers = reads ? options->consumers * options->topics : 0;
    uint32_t readers = options->writers || consumers < options->connections ? consumers : options->connections;
    uint32_t writers = publishes ? options->connections : 0;
    sockets->connections = calloc(readers + writers, sizeof *sockets->connections);
    /* Consumers first: a subscription that starts at the end must exist before the first message. */
    add_connections(load, readers, true);
    add_connections(load, writers, false);
    for (uint32_t i = 0; i < readers; i++) {
        uint32_t share = consumers / readers + (i < consumers % readers);
        add_endpoints(load, &sockets->connections[i], share, i, readers);
    }
    for (uint32_t i = 0; i < writers; i++)
        add_endpoints(load, &sockets->connections[readers + i], options->producers, i * options->producers, 1);
}

void attach_more(struct load *load) {
    struct transport *sockets = load->transport;
    while (sockets->attaching_now < ATTACHING_MAX && sockets->dialled < load->connection_count) {
        struct connection *connection = &sockets->connections[sockets->dialled];
        if (!connection->consumer && load->attached < sockets->dialled && sockets->connections[0].consumer &&
            sockets->connections[load->attached].consumer)
            return; /* the last consumers are still on their way */
        sockets->dialled++;
        sockets->attaching_now++;
        if (!connection_dial(load, connection)) {
            connection_close(load, connection);
            attach_lost(load, connection);
        }
    }
}

void attach_next(struct load *load, struct connection *connection) {
    if (connection->greeted) connection->attaching++;
    connection->greeted = true;
    if (connection->attaching < connection->endpoint_count) {
        protocol_attach(load, &connection->endpoints[connection->attaching]);
        return;
    }
    load->attached++;
    load->transport->attaching_now--;
    attach_more(load);
}

/* Within --wait the server may still be starting: dial again, from the beginning. */
void attach_lost(struct load *load, struct connection *connection) {
    if (attach_given_up(load)) {
        fault(load, "cannot attach connection %u to %s:%d", connection->number, load->options.host, load->options.port);
        load->phase = DONE;
        return;
    }
    usleep(RETRY_PAUSE_US);
    connection->greeted = false;
    connection->attaching = 0;
    if (!connection_dial(load, connection)) {
        connection_close(load, connection);
        attach_lost(load, connection);
    }
}

bool attach_again(struct load *load) {
    load->errors_at_attach++;
    if (attach_given_up(load)) {
        load->phase = DONE;
        return false;
    }
    usleep(RETRY_PAUSE_US);
    return true;
}

int topic_name(const struct load *load, const struct endpoint *endpoint, char *name) {
    int size = 0;
    const char *topic = load->options.topic, *number = strstr(topic, "%d");
    if (number == NULL) size = snprintf(name, NAME_SIZE_MAX, "%s", topic);
    else size = snprintf(name, NAME_SIZE_MAX, "%.*s%u%s", (int)(number - topic), topic, endpoint->topic, number + 2);
    if (size < NAME_SIZE_MAX) return size;
    fprintf(stderr, "%s: the topic's name is longer than %d bytes\n", PROGRAM, NAME_SIZE_MAX);
    exit(2);
}
