package magnetar.interop.kafka;

import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import magnetar.interop.stage.Dialogue;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What a family plays with: a server, a fresh topic, and words for what all of them do. */
final class Scene extends Dialogue {
    static final int DEADLINE_SECONDS = 30;
    static final Duration DEADLINE = Duration.ofSeconds(DEADLINE_SECONDS);

    Scene(long id, JsonObject request) {
        super(id, request);
    }

    // -- clients; `pairs` are settings, name after name with its value

    Map<String, Object> settings(Object... pairs) {
        Map<String, Object> made = map(
                "bootstrap.servers", url,
                "reconnect.backoff.ms", 20,
                "reconnect.backoff.max.ms", 200,
                "retry.backoff.ms", 20,
                "retry.backoff.max.ms", 200);
        made.putAll(map(pairs));
        if (args.has("settings")) {  // of the test, for all its clients
            args.getAsJsonObject("settings").asMap().forEach((name, value) -> made.put(name, value.getAsString()));
        }
        return made;
    }

    Admin admin(Object... pairs) {
        return Admin.create(settings(pairs));
    }

    KafkaProducer<byte[], byte[]> producer(Object... pairs) {
        return new KafkaProducer<>(settings(pairs), new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaConsumer<byte[], byte[]> consumer(Object... pairs) {
        Map<String, Object> made = settings("auto.offset.reset", "earliest", "enable.auto.commit", false);
        made.putAll(map(pairs));
        return new KafkaConsumer<>(made, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Of one partition, from its beginning to its end as it is now. */
    List<ConsumerRecord<byte[], byte[]>> everything(String name, int partition, Object... pairs) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        try (var consumer = consumer(pairs)) {
            TopicPartition one = new TopicPartition(name, partition);
            consumer.assign(List.of(one));
            consumer.seekToBeginning(List.of(one));
            long end = consumer.endOffsets(List.of(one)).get(one);
            long deadline = System.nanoTime() + DEADLINE.toNanos();
            while (consumer.position(one) < end) {
                consumer.poll(Duration.ofMillis(100)).forEach(found::add);
                if (System.nanoTime() > deadline) {
                    throw new TimeoutException("at " + consumer.position(one) + " of " + end);
                }
            }
        }
        return found;
    }

    // -- words

    static <T> T get(Future<T> future) throws Exception {
        return future.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
    }

    static byte[] bytes(Object value) {
        return value.toString().getBytes();
    }

    static String text(byte[] value) {
        return value == null ? null : new String(value);
    }

    static List<String> values(List<ConsumerRecord<byte[], byte[]>> records) {
        return new ArrayList<>(records.stream().map(one -> text(one.value())).toList());
    }

    /** The name of the error that an action ends with, or "none". */
    static String errorOf(Action action) {
        try {
            action.run();
            return "none";
        } catch (Exception error) {
            Throwable cause = error instanceof java.util.concurrent.ExecutionException ? error.getCause() : error;
            return cause.getClass().getSimpleName();
        }
    }

    interface Action {
        void run() throws Exception;
    }
}
