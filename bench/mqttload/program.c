#include "mqttload.h"

const char PROGRAM[] = "mqttload";
const char PROGRAM_USAGE[] =
    "mqttload --mode publish|consume|both|idle|subscribe --port PORT --topic NAME [options]\n"
    "  load:     --connections N (for publishers) --consumers N (each gets all messages) --qos 0|1|2 --level 4|5\n"
    "            --depth N (messages in flight per connection; without meaning for QoS 0) --bytes N\n"
    "            --messages N | --seconds S, --warmup S, --rate N (messages a second, open loop), --lead N\n"
    "  sessions: --retain (publish; each message to a topic of its own) --keep (clean session 0, without expiry)\n"
    "            --subscriptions N (idle, subscribe; each client to filters of its own) --wildcards (in them)\n"
    "  running:  --host HOST --token JWT --wait S --stall S --run N --watch-pid PID --histogram\n"
    "QoS 0 is neither acknowledged nor held back, so publishing is at most --lead messages (500) ahead of reading.\n"
    "`consume` subscribes and counts --messages retained ones. `subscribe` ends when every client (--consumers) has\n"
    "subscribed and disconnected. `idle` prints {\"event\": \"idle\"} when all are attached and stays until --seconds have passed or SIGTERM.";

static const char *const LEVELS[] = {"4", "5", NULL};

const struct setting PROGRAM_SETTINGS[] = {
    NUMBER("qos", COUNT32, qos, 0, 2),
    ONE_OF("level", protocol_level, LEVELS),
    NUMBER("subscriptions", COUNT32, subscriptions, 0, SUBSCRIPTIONS_MAX),
    SETTING("retain", FLAG, retain),
    SETTING("keep", FLAG, keep),
    SETTING("wildcards", FLAG, wildcards),
    SETTING("token", TEXT, token),
    NUMBER("producers", COUNT32, producers, 0, 1),
    {.name = NULL},
};

const char *program_completes(struct options *options) {
    options->protocol_level += 4; /* the place in the list until now */
    options->writers = options->connections;
    options->copies = options->consumers ? options->consumers : 1;
    options->unconfirmed = options->qos == 0;
    if (options->unconfirmed && options->mode == MODE_BOTH && options->lead == 0) options->lead = 500;
    if (strlen(options->topic) > TOPIC_SIZE_MAX) return "--topic is too long";
    if (options->token && strlen(options->token) > TOKEN_SIZE_MAX) return "--token is too long";
    if (options->retain && (options->mode != MODE_PUBLISH || options->warmup_seconds > 0))
        return "--retain is for publishing, without warm-up";
    if (options->subscriptions && options->mode != MODE_IDLE && options->mode != MODE_SUBSCRIBE)
        return "--subscriptions is for clients that only attach";
    if (options->mode == MODE_CONSUME && (options->consumers != 1 || options->messages == 0))
        return "what is retained is counted by one consumer, as --messages";
    return NULL;
}
