/* The JSON line. Rates count messages that were published (and, in mode both, also read back) in the measured phase. */
#include "load.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

double own_cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* User and system time of all threads of another process: fields 14 and 15 of /proc/PID/stat, counted after the
 * closing parenthesis because the name may hold spaces. */
double watched_cpu_seconds(int pid) {
    if (pid == 0) return 0;
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *rest = strrchr(text, ')');
    unsigned long user = 0, system = 0;
    if (rest == NULL || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void print_count(const char *name, uint64_t value) { printf("\"%s\": %llu, ", name, (unsigned long long)value); }

static void print_latency(const struct load *load, const char *name, const struct histogram *histogram) {
    if (histogram->total == 0) return;
    printf(", \"%s\": ", name);
    if (load->options.histogram) {
        histogram_print(histogram, stdout);
        return;
    }
    printf("{\"count\": %llu, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f}",
           (unsigned long long)histogram->total, histogram_quantile_ms(histogram, 0.50),
           histogram_quantile_ms(histogram, 0.99), histogram_quantile_ms(histogram, 0.999), (double)histogram->largest / 1e6);
}

/* A measurement by time that took less than was asked for is none, whatever ended it. */
static bool cut_short(const struct load *load) {
    const struct options *options = &load->options;
    bool by_time = options->messages == 0 && (options->mode == MODE_PUBLISH || options->mode == MODE_BOTH);
    return by_time && load->seconds < options->seconds;
}

static bool went_wrong(const struct load *load, uint64_t missing) {
    const struct counts *counts = &load->counts;
    bool ordered = load->options.consumers <= 1 || load->options.subscription_type == 0;
    bool interrupted = load->stop_asked && load->options.mode != MODE_IDLE;
    return load->errors || load->stalled || interrupted || cut_short(load) || counts->corrupt || counts->refused || counts->duplicates || missing ||
           (ordered && counts->late) || (load->attached < load->connection_count);
}

int report(const struct load *load) {
    const struct options *options = &load->options;
    const struct counts *now = &load->counts, *base = &load->base;
    uint64_t published = now->receipts - base->receipts, consumed = now->unique - base->unique;
    bool reads = options->mode == MODE_CONSUME || (options->mode == MODE_BOTH && options->consumers > 0);
    uint64_t messages = reads ? consumed : published;
    uint64_t missing = check_missing(load);
    bool wrong = went_wrong(load, missing);
    double seconds = load->seconds > 0 ? load->seconds : 1e-9;
    printf("{\"mode\": \"%s\", \"ok\": %s, ", MODES[options->mode], wrong ? "false" : "true");
    print_count("connections", load->connection_count);
    print_count("depth", options->depth);
    print_count("bytes", options->bytes);
    print_count("batch", options->batch);
    print_count("published", published);
    print_count("consumed", consumed);
    print_count("acked_entries", now->acked - base->acked);
    printf("\"seconds\": %.4f, \"msg_per_s\": %.1f, \"mb_per_s\": %.3f, ", load->seconds, (double)messages / seconds,
           (double)messages * options->bytes / seconds / 1e6);
    print_count("refused", now->refused);
    print_count("missing", missing);
    print_count("duplicates", now->duplicates);
    print_count("reordered", now->late);
    print_count("foreign", now->foreign);
    print_count("redelivered", now->redelivered);
    print_count("corrupt", now->corrupt);
    print_count("errors", load->errors);
    print_count("attach_retries", load->errors_at_attach);
    printf("\"interrupted\": %s, \"stalled\": %s, \"cut_short\": %s, ", load->stop_asked ? "true" : "false",
           load->stalled ? "true" : "false", cut_short(load) ? "true" : "false");
    printf("\"own_cpu_s\": %.4f, \"own_us_per_msg\": %.4f, ", load->own_cpu,
           messages ? load->own_cpu * 1e6 / (double)messages : 0);
    printf("\"server_cpu_s\": %.4f, \"server_us_per_msg\": %.4f", load->watched_cpu,
           messages ? load->watched_cpu * 1e6 / (double)messages : 0);
    if (load->attached == load->connection_count)
        printf(", \"attach_s\": %.4f, \"attach_cpu_s\": %.4f", load->attach_seconds, load->attach_cpu);
    print_latency(load, "publish_latency", &load->publish_latency);
    print_latency(load, "end_to_end", &load->end_to_end);
    printf("}\n");
    return wrong ? 1 : 0;
}
