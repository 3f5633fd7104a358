#include "../loadkit/options.h"

const char PROGRAM[] = "kafkaload";
const char PROGRAM_USAGE[] =
    "kafkaload --mode publish|consume|both --port PORT --topic NAME [options]\n"
    "  load:     --connections N (handles that publish) --consumers 0|1 --partitions N (of a new topic)\n"
    "            --depth N (messages in flight per handle) --bytes N\n"
    "            --messages N | --seconds S, --warmup S, --rate N (messages a second, open loop), --lead N\n"
    "  batches:  --linger MS --batch-bytes N (at most)\n"
    "  reading:  --passes N (the same messages that often, from the first one)\n"
    "  running:  --remove (the topic, in the end) --host HOST --token JWT --wait S --stall S --run N --watch-pid PID --histogram";

const struct setting PROGRAM_SETTINGS[] = {
    NUMBER("partitions", COUNT32, partitions, 1, 1e5),
    NUMBER("linger", REAL, linger_ms, 0, 1e5),
    NUMBER("batch-bytes", COUNT32, batch_bytes, 100, 1 << 30),
    NUMBER("passes", COUNT32, passes, 1, 1e6),
    SETTING("remove", FLAG, remove),
    SETTING("token", TEXT, token),
    {.name = NULL},
};

const char *program_completes(struct options *options) {
    if (options->mode == MODE_IDLE || options->mode == MODE_SUBSCRIBE) return "--mode idle and subscribe are not its";
    if (options->consumers > 1) return "--consumers may be 0 or 1";
    if (options->passes > 1 && options->messages == 0) return "--passes needs --messages";
    return NULL;
}
