package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.text;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import magnetar.interop.stage.Stage.Family;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams counts words, each exactly once: from the topic to the one whose name ends in `-counts`, through a
 * repartition topic and a store with a changelog. It counts until it is told to end; then it tells what it said.
 */
final class Counting {
    static void register(Map<String, Family<Scene>> families) {
        families.put("streams.count", Counting::count);
        families.put("streams.counts", Counting::counts);
    }

    private static Object count(Scene scene) throws Exception {
        Path folder = Files.createTempDirectory("counting");
        Properties settings = new Properties();
        settings.putAll(scene.settings(
                StreamsConfig.APPLICATION_ID_CONFIG, scene.topic + "-app",
                StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
                StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class,
                StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class,
                StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100,
                StreamsConfig.STATE_DIR_CONFIG, folder.toString(),
                StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest",
                StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 300,
                StreamsConfig.consumerPrefix("session.timeout.ms"), 6_000));
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(scene.topic, Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> List.of(line.split(" ")))
                .groupBy((key, word) -> word)
                .count()
                .toStream()
                .to(scene.topic + "-counts", Produced.with(Serdes.String(), Serdes.Long()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
            streams.start();
            scene.tell("started", null);
            scene.await("end");
        }
        return true;
    }

    /** What is committed of the counts so far: the last of each word, and by how much each went up in all. */
    private static Object counts(Scene scene) throws Exception {
        Map<String, Long> last = new HashMap<>();
        long backwards = 0;
        for (int partition = 0; partition < scene.number("partitions", 1); partition++) {
            for (var one : scene.everything(scene.topic + "-counts", partition, "isolation.level", "read_committed")) {
                long count = java.nio.ByteBuffer.wrap(one.value()).getLong();
                Long before = last.put(text(one.key()), count);
                backwards += before != null && count <= before ? 1 : 0;
            }
        }
        return Scene.map("last", last, "backwards", backwards);
    }

    private Counting() {
    }
}
