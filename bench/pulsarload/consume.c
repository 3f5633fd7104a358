/* MESSAGEs, permits and acknowledgements. Permits are granted again at half the queue, as stock clients do. */
#include "pulsarload.h"

#include "../loadkit/crc32c.h"

#include <stdlib.h>

static void grant(struct endpoint *consumer, uint32_t permits) {
    static struct message message;
    message.size = 0;
    message_number(&message, 1, consumer->id);
    message_number(&message, 2, permits);
    buffer_command(&consumer->connection->out, FLOW, &message);
}

void protocol_read(struct load *load) {
    for (uint32_t i = 0; i < load->connection_count && load->transport->connections[i].consumer; i++) {
        struct connection *connection = &load->transport->connections[i];
        for (uint32_t j = 0; j < connection->endpoint_count; j++) {
            connection->endpoints[j].own->acks = malloc(ACK_IDS_MAX * sizeof(struct message_id));
            grant(&connection->endpoints[j], load->options.permits);
        }
        connection_flush(load, connection);
    }
}

static void flush_acks(struct load *load, struct endpoint *consumer) {
    static struct message message, id;
    if (consumer->own->ack_count == 0) return;
    bool cumulative = load->options.ack == ACK_CUMULATIVE;
    message.size = 0;
    message_number(&message, 1, consumer->id);
    message_number(&message, 2, cumulative);
    for (uint32_t i = cumulative ? consumer->own->ack_count - 1 : 0; i < consumer->own->ack_count; i++) {
        id.size = 0;
        message_number(&id, 1, consumer->own->acks[i].ledger);
        message_number(&id, 2, consumer->own->acks[i].entry);
        if (consumer->own->acks[i].partition_plus_one) message_number(&id, 3, consumer->own->acks[i].partition_plus_one - 1);
        message_text(&message, 3, id.bytes, id.size);
    }
    buffer_command(&consumer->connection->out, ACK, &message);
    load->counts.acked += consumer->own->ack_count;
    consumer->own->ack_count = 0;
}

void protocol_sweep(struct load *load) {
    if (load->now - load->transport->ack_sweep_ns < ACK_WAIT_NS) return;
    load->transport->ack_sweep_ns = load->now;
    for (uint32_t i = 0; i < load->connection_count && load->transport->connections[i].consumer; i++) {
        struct connection *connection = &load->transport->connections[i];
        for (uint32_t j = 0; j < connection->endpoint_count; j++) flush_acks(load, &connection->endpoints[j]);
        connection_flush(load, connection);
    }
}

static struct message_id id_in(const uint8_t *bytes, size_t size) {
    struct message_id id = {0};
    struct cursor cursor = cursor_over(bytes, size);
    struct field field;
    while (next_field(&cursor, &field)) {
        if (field.type != 0) continue;
        if (field.number == 1) id.ledger = field.value;
        else if (field.number == 2) id.entry = field.value;
        else if (field.number == 3 && (int32_t)field.value >= 0) id.partition_plus_one = field.value + 1;
    }
    return id;
}

/* Strips what stands before the metadata; checks the sum. False: the entry is not what a producer sent. */
static bool open_entry(struct cursor *entry, uint32_t *messages) {
    size_t size = (size_t)(entry->end - entry->at);
    if (size >= 6 && entry->at[0] == 0x0e && entry->at[1] == 0x02) {
        uint32_t skipped = get_u32(entry->at + 2);
        if (skipped > size - 6) return false;
        entry->at += 6 + skipped;
        size -= 6 + (size_t)skipped;
    }
    if (size < 10 || entry->at[0] != 0x0e || entry->at[1] != 0x01) return false;
    if (crc32c(entry->at + 6, size - 6) != get_u32(entry->at + 2)) return false;
    uint32_t metadata = get_u32(entry->at + 6);
    if (metadata > size - 10) return false;
    struct cursor cursor = cursor_over(entry->at + 10, metadata);
    struct field field;
    *messages = 0;
    while (next_field(&cursor, &field))
        if (field.number == 11 && field.type == 0) *messages = (uint32_t)field.value;
    entry->at += 10 + metadata;
    return !cursor.failed;
}

static bool take_batch(struct load *load, struct cursor *entry, uint32_t messages) {
    for (uint32_t i = 0; i < messages; i++) {
        size_t left = (size_t)(entry->end - entry->at);
        if (left < 4 || get_u32(entry->at) > left - 4) return false;
        struct cursor cursor = cursor_over(entry->at + 4, get_u32(entry->at));
        struct field field;
        uint64_t size = 0;
        while (next_field(&cursor, &field))
            if (field.number == 3 && field.type == 0) size = field.value;
        entry->at = cursor.at;
        if (cursor.failed || size > (uint64_t)(entry->end - entry->at)) return false;
        if (!take_payload(load, entry->at, (size_t)size)) return false;
        entry->at += size;
    }
    return true;
}

static void acknowledge(struct load *load, struct endpoint *consumer, const struct message_id *id) {
    if (load->options.ack == ACK_NONE) return;
    consumer->own->acks[consumer->own->ack_count++] = *id;
    if (load->options.ack == ACK_SINGLE || consumer->own->ack_count == ACK_IDS_MAX) flush_acks(load, consumer);
}

void consume_message(struct load *load, struct connection *connection, const struct frame *frame) {
    struct cursor cursor = cursor_over(frame->body, frame->body_size);
    struct field field;
    struct message_id id = {0};
    uint64_t consumer_id = UINT64_MAX;
    while (next_field(&cursor, &field)) {
        if (field.number == 1 && field.type == 0) consumer_id = field.value;
        else if (field.number == 2 && field.type == 2) id = id_in(field.bytes, field.size);
        else if (field.number == 3 && field.value > 0) load->counts.redelivered++;
    }
    if (!connection->consumer || consumer_id >= connection->endpoint_count) {
        fault(load, "a message for consumer %llu, which is not ours", (unsigned long long)consumer_id);
        return;
    }
    struct endpoint *consumer = &connection->endpoints[consumer_id];
    struct cursor entry = cursor_over(frame->tail, frame->tail_size);
    uint32_t messages = 0;
    bool sound = open_entry(&entry, &messages);
    if (sound)
        sound = messages ? take_batch(load, &entry, messages) : take_payload(load, entry.at, (size_t)(entry.end - entry.at));
    if (!sound) {
        load->counts.corrupt++;
        fault(load, "message %llu:%llu is corrupt", (unsigned long long)id.ledger, (unsigned long long)id.entry);
    }
    load->progress_ns = load->now;
    acknowledge(load, consumer, &id);
    consumer->own->taken += messages ? messages : 1;
    if (consumer->own->taken >= (load->options.permits + 1) / 2) {
        grant(consumer, consumer->own->taken);
        consumer->own->taken = 0;
    }
}

/* All read: send the last acknowledgements and a PING behind them; its PONG says that the server has handled them. */
void protocol_settle(struct load *load) {
    static const struct message nothing;
    for (uint32_t i = 0; i < load->connection_count && load->transport->connections[i].consumer; i++) {
        struct connection *connection = &load->transport->connections[i];
        for (uint32_t j = 0; j < connection->endpoint_count; j++) flush_acks(load, &connection->endpoints[j]);
        buffer_command(&connection->out, PING, &nothing);
        connection->ping_open = true;
        connection_flush(load, connection);
        if (load->phase == DONE) return;
    }
}
