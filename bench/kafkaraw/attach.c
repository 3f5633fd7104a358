/* From nothing to ready: ApiVersions, then for each producer CreateTopics, once, and ListOffsets until somebody answers
 * for its partition. Nobody is asked where that is: we stay on the address that was dialled. */
#include "kafkaraw.h"

#define API_VERSIONS_VERSION 0
#define CREATE_TOPICS_VERSION 2
#define LIST_OFFSETS_VERSION 1
#define LATEST (uint64_t)-1
#define CREATE_TIMEOUT_MS 30000
#define TOPIC_ALREADY_EXISTS 36

const size_t OWN_BYTES = sizeof(struct own);

/* The answer to a request of the handshake says by this which one it was. */
static uint32_t correlation_of(enum api api) { return 1u << 31 | api; }

size_t protocol_frame(const uint8_t *bytes, size_t size, size_t *head) { return frame_behind_u32(bytes, size, head); }

void protocol_greet(struct load *load, struct connection *connection) {
    (void)load;
    request_end(&connection->out,
                request_begin(&connection->out, 0, API_VERSIONS, API_VERSIONS_VERSION, correlation_of(API_VERSIONS)));
}

static void create_topic(struct load *load, struct buffer *out, const char *name, size_t size) {
    uint8_t *at = request_begin(out, size + 64, CREATE_TOPICS, CREATE_TOPICS_VERSION, correlation_of(CREATE_TOPICS));
    at = put_number(at, 1, 4);
    at = put_string(at, name, size);
    at = put_number(at, load->options.partitions, 4);
    at = put_number(at, 1, 2); /* replicas */
    at = put_number(at, 0, 4); /* assignments */
    at = put_number(at, 0, 4); /* configs */
    at = put_number(at, CREATE_TIMEOUT_MS, 4);
    request_end(out, put_number(at, 0, 1)); /* not only to validate */
}

static void ask_offsets(struct buffer *out, const struct endpoint *producer, const char *name, size_t size) {
    uint8_t *at = request_begin(out, size + 64, LIST_OFFSETS, LIST_OFFSETS_VERSION, correlation_of(LIST_OFFSETS));
    at = put_number(at, (uint64_t)-1, 4); /* no replica */
    at = put_number(at, 1, 4);
    at = put_string(at, name, size);
    at = put_number(at, 1, 4);
    at = put_number(at, (uint64_t)producer->partition, 4);
    request_end(out, put_number(at, LATEST, 8));
}

void protocol_attach(struct load *load, struct endpoint *producer) {
    char name[NAME_SIZE_MAX];
    size_t size = (size_t)topic_name(load, producer, name);
    producer->partition = (int32_t)(producer->number / load->options.topics % load->options.partitions);
    if (producer->own->created) ask_offsets(&producer->connection->out, producer, name, size);
    else create_topic(load, &producer->connection->out, name, size);
}

static void created(struct load *load, struct endpoint *producer, struct reader *answer) {
    read_skip(answer, 4 + 4); /* throttle, one topic */
    read_skip_string(answer);
    int16_t error = read_i16(answer);
    producer->own->created = error == 0 || error == TOPIC_ALREADY_EXISTS;
    if (producer->own->created || attach_again(load)) protocol_attach(load, producer);
    else fault(load, "the topic of producer %u cannot be created, error %d", producer->number, error);
}

static void led(struct load *load, struct endpoint *producer, struct reader *answer) {
    read_skip(answer, 4); /* one topic */
    read_skip_string(answer);
    read_skip(answer, 4 + 4); /* one partition, its number */
    int16_t error = read_i16(answer);
    read_skip(answer, 8); /* a time */
    producer->own->next_offset = read_number(answer, 8);
    if (error == 0) attach_next(load, producer->connection);
    else if (attach_again(load)) protocol_attach(load, producer);
    else fault(load, "nobody leads partition %d of producer %u, error %d", producer->partition, producer->number, error);
}

bool attach_heard(struct load *load, struct connection *connection, struct reader *answer) {
    if (!connection->greeted) {
        attach_next(load, connection);
        return true;
    }
    if (connection->attaching >= connection->endpoint_count) return false;
    struct endpoint *producer = &connection->endpoints[connection->attaching];
    if (!producer->own->created) created(load, producer, answer);
    else led(load, producer, answer);
    return !answer->failed;
}

bool protocol_heard(struct load *load, struct connection *connection, const uint8_t *frame, size_t size) {
    struct reader answer = {.at = frame, .end = frame + size};
    uint32_t correlation = (uint32_t)read_number(&answer, 4);
    if (answer.failed) return false;
    if (correlation >> 31) return attach_heard(load, connection, &answer);
    return produce_heard(load, connection, correlation, &answer);
}
