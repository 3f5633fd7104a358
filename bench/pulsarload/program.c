#include "../loadkit/options.h"

const char PROGRAM[] = "pulsarload";
const char PROGRAM_USAGE[] =
    "pulsarload --mode publish|consume|both|idle|subscribe --port PORT --topic NAME [options]\n"
    "  load:     --connections N --producers N (per connection) --consumers N (per topic) --topics N (for %d)\n"
    "            --depth N (entries in flight per connection) --bytes N --batch N (messages per entry)\n"
    "            --messages N | --seconds S, --warmup S, --rate N (messages a second, open loop), --lead N\n"
    "            --delay S (until messages are due) --schema JSON (an AVRO definition, the topic's first; payloads stay what they are)\n"
    "  reading:  --subscription NAME --type exclusive|shared|failover|key_shared --position latest|earliest\n"
    "            --ack grouped|single|cumulative|none --permits N\n"
    "  running:  --host HOST --token JWT --wait S --stall S --run N --watch-pid PID --histogram\n"
    "`idle` prints {\"event\": \"idle\"} when all are attached and stays until --seconds have passed or SIGTERM.";

static const char *const TYPES[] = {"exclusive", "shared", "failover", "key_shared", NULL};
static const char *const POSITIONS[] = {"latest", "earliest", NULL};
static const char *const ACK_STYLES[] = {"grouped", "single", "cumulative", "none", NULL};

const struct setting PROGRAM_SETTINGS[] = {
    NUMBER("topics", COUNT32, topics, 1, 1e6),
    NUMBER("producers", COUNT32, producers, 0, 1e6),
    NUMBER("batch", COUNT32, batch, 1, 1e5),
    SETTING("subscription", TEXT, subscription),
    ONE_OF("type", subscription_type, TYPES),
    ONE_OF("position", initial_position, POSITIONS),
    ONE_OF("ack", ack, ACK_STYLES),
    NUMBER("permits", COUNT32, permits, 1, 1e9),
    SETTING("token", TEXT, token),
    SETTING("schema", TEXT, schema),
    NUMBER("delay", REAL, delay_seconds, 0, 1e9),
    {.name = NULL},
};

/* 1000 is the queue of stock clients; a queue of one batch would make every batch a round trip. */
const char *program_completes(struct options *options) {
    if (options->permits == 0) options->permits = options->batch > 20 ? 50 * options->batch : 1000;
    return NULL;
}
