#include "../loadkit/options.h"

const char PROGRAM[] = "kafkaraw";
const char PROGRAM_USAGE[] =
    "kafkaraw --mode publish|idle --port PORT --topic NAME [options]\n"
    "  load:     --connections N --producers N (per connection) --topics N (for %d) --partitions N (of a new topic)\n"
    "            --depth N (requests in flight per connection) --bytes N --batch N (messages per request)\n"
    "            --messages N | --seconds S, --warmup S, --rate N (messages a second, open loop)\n"
    "  running:  --host HOST --wait S --stall S --run N --watch-pid PID --histogram\n"
    "`idle` prints {\"event\": \"idle\"} when all are attached and stays until --seconds have passed or SIGTERM.";

const struct setting PROGRAM_SETTINGS[] = {
    NUMBER("topics", COUNT32, topics, 1, 1e6),
    NUMBER("producers", COUNT32, producers, 0, 1e6),
    NUMBER("batch", COUNT32, batch, 1, 1e5),
    NUMBER("partitions", COUNT32, partitions, 1, 1e5),
    {.name = NULL},
};

const char *program_completes(struct options *options) {
    return options->mode == MODE_PUBLISH || options->mode == MODE_IDLE ? NULL : "it only publishes, or stays idle";
}
