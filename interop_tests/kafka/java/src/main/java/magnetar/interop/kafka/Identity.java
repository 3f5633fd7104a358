package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.bytes;
import static magnetar.interop.kafka.Scene.errorOf;
import static magnetar.interop.kafka.Scene.get;
import static magnetar.interop.kafka.Scene.text;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import magnetar.interop.stage.Stage.Family;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;

/** Who a client is: the test gives the settings that prove it. */
final class Identity {
    private static final String ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls";

    static void register(Map<String, Family<Scene>> families) {
        families.put("identity.exchange", Identity::exchange);
        families.put("identity.taken", Identity::taken);
        families.put("identity.expiring", Identity::expiring);
    }

    private static KafkaProducer<byte[], byte[]> producer(Scene scene) {
        if (!scene.text("issuer", "").isEmpty()) {
            System.setProperty(ALLOWED, scene.text("issuer", ""));  // KIP-1139: who may be asked for tokens
        }
        return scene.producer("delivery.timeout.ms", 10_000, "request.timeout.ms", 5_000, "linger.ms", 0,
                "max.block.ms", 10_000, "acks", "all");
    }

    private static String sent(Scene scene, KafkaProducer<byte[], byte[]> producer, Object value) {
        return errorOf(() -> get(producer.send(new ProducerRecord<>(scene.topic, bytes(value)))));
    }

    /** One record to oneself by a group; what that ends with. */
    private static Object exchange(Scene scene) throws Exception {
        try (var producer = producer(scene)) {
            String error = sent(scene, producer, "x");
            if (!error.equals("none")) {
                return error;
            }
        } catch (KafkaException error) {
            return error.getClass().getSimpleName();
        }
        long deadline = System.nanoTime() + Scene.DEADLINE.toNanos();
        try (var consumer = scene.consumer("group.id", scene.topic)) {
            consumer.subscribe(List.of(scene.topic));
            while (System.nanoTime() < deadline) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    return List.of(text(record.value()));
                }
            }
        }
        throw new TimeoutException("nothing to read");
    }

    /** What records end with before the right is taken, after, and when it is given back. */
    private static Object taken(Scene scene) throws Exception {
        try (var producer = producer(scene)) {
            String before = sent(scene, producer, "0");
            scene.tell("sent", null);
            scene.await("taken");
            String after = sent(scene, producer, "1");
            scene.tell("refused", null);
            scene.await("given");
            return List.of(before, after, sent(scene, producer, "2"));
        }
    }

    /** The errors of records that are sent until the test says so, while tokens expire; and how often it proved anew. */
    private static Object expiring(Scene scene) throws Exception {
        try (var producer = producer(scene)) {
            String first = sent(scene, producer, "first");
            scene.tell("attached", null);
            int sent = 0;
            while (!scene.isTold("over")) {
                String error = sent(scene, producer, sent++);
                if (!error.equals("none")) {
                    return List.of(first, error, sent);
                }
            }
            Object again = producer.metrics().entrySet().stream()
                    .filter(one -> one.getKey().name().equals("successful-reauthentication-total"))
                    .map(one -> one.getValue().metricValue())
                    .findFirst().orElseThrow();
            return List.of(first, "none", again);
        }
    }

    private Identity() {
    }
}
