package magnetar.interop;

import static magnetar.interop.Scene.bodies;
import static magnetar.interop.Scene.body;
import static magnetar.interop.Scene.drain;
import static magnetar.interop.Scene.leftovers;
import static magnetar.interop.Scene.map;
import static magnetar.interop.Scene.publish;
import static magnetar.interop.Scene.receive;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MultiplierRedeliveryBackoff;

/** Acknowledgements of every kind, and what comes again without one. */
final class Acking {
    static void register(Map<String, Family<Scene>> families) {
        families.put("acks.individual", Acking::individual);
        families.put("acks.cumulative", Acking::cumulative);
        families.put("acks.negative", Acking::negative);
        families.put("acks.backoff", Acking::backoff);
        families.put("acks.timeout", Acking::timeout);
        families.put("acks.dead", Acking::dead);
        families.put("acks.retry", Acking::retry);
        families.put("acks.redeliver", Acking::redeliver);
    }

    private static ConsumerBuilder<byte[]> consumer(Scene scene) throws Exception {
        return scene.consumer(scene.type("Exclusive"))
                .enableBatchIndexAcknowledgment(scene.flag("index"))
                .isAckReceiptEnabled(scene.flag("receipt"));
    }

    /** Twenty messages, in one entry if batched, for each of which the test says whether it is acknowledged. */
    private static List<Message<byte[]>> twenty(Scene scene, Consumer<byte[]> consumer) throws Exception {
        try (var producer = (scene.flag("batched") ? scene.batching(20) : scene.producer()).create()) {
            publish(producer, 0, 20);
        }
        return receive(consumer, 20);
    }

    private static Object again(Scene scene, int count) throws Exception {
        try (var consumer = consumer(scene).subscribe(); var producer = scene.producer().create()) {
            return map("again", drain(consumer, count), "left", leftovers(consumer, producer));
        }
    }

    private static Object individual(Scene scene) throws Exception {
        var first = consumer(scene).subscribe();
        for (Message<byte[]> message : twenty(scene, first)) {
            if (Integer.parseInt(body(message)) % 3 != 0) {
                first.acknowledge(message);
            }
        }
        first.close();
        return again(scene, scene.number("expect", 7));
    }

    private static Object cumulative(Scene scene) throws Exception {
        var first = consumer(scene).subscribe();
        first.acknowledgeCumulative(twenty(scene, first).get(12));
        first.close();
        return again(scene, scene.number("expect", 7));
    }

    private static Object negative(Scene scene) throws Exception {
        try (var consumer = consumer(scene).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS).subscribe();
                var producer = scene.producer().create()) {
            for (Message<byte[]> message : twenty(scene, consumer)) {
                if (Integer.parseInt(body(message)) % 4 == 0) {
                    consumer.negativeAcknowledge(message);
                } else {
                    consumer.acknowledge(message);
                }
            }
            List<Message<byte[]>> again = receive(consumer, 5);
            List<Integer> counts = again.stream().map(Message::getRedeliveryCount).toList();
            for (Message<byte[]> message : again) {
                consumer.acknowledge(message);
            }
            return map("again", bodies(again), "counts", counts, "left", leftovers(consumer, producer));
        }
    }

    /** The pauses between deliveries grow, and the server counts them. */
    private static Object backoff(Scene scene) throws Exception {
        try (var consumer = consumer(scene)
                        .negativeAckRedeliveryBackoff(MultiplierRedeliveryBackoff.builder()
                                .minDelayMs(100).maxDelayMs(10_000).multiplier(3).build())
                        .subscribe();
                var producer = scene.producer().create()) {
            producer.send("x".getBytes());
            List<Integer> counts = new ArrayList<>();
            List<Long> pauses = new ArrayList<>();
            for (int round = 0; round < 4; round++) {
                long began = System.nanoTime();
                Message<byte[]> message = receive(consumer, 1).get(0);
                pauses.add((System.nanoTime() - began) / 1_000_000);
                counts.add(message.getRedeliveryCount());
                consumer.negativeAcknowledge(message);
            }
            return map("counts", counts, "pauses", pauses);
        }
    }

    private static Object timeout(Scene scene) throws Exception {
        try (var consumer = consumer(scene)
                        .ackTimeout(1, TimeUnit.SECONDS)
                        .ackTimeoutTickTime(200, TimeUnit.MILLISECONDS)
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 3);
            consumer.acknowledge(receive(consumer, 3).get(0));
            return map("again", drain(consumer, 2), "left", leftovers(consumer, producer));
        }
    }

    private static Object dead(Scene scene) throws Exception {
        var policy = DeadLetterPolicy.builder()
                .maxRedeliverCount(2)
                .initialSubscriptionName("undertaker")
                .build();
        try (var consumer = consumer(scene)
                        .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
                        .deadLetterPolicy(policy)
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 5);
            for (int number = 0; number < 5 * 3; number++) {
                consumer.negativeAcknowledge(receive(consumer, 1).get(0));
            }
            try (var reader = scene.client().newConsumer()
                    .topic(scene.topic + "-s-DLQ").subscriptionName("undertaker").subscribe()) {
                List<Message<byte[]>> found = receive(reader, 5);
                return map(
                        "bodies", bodies(found),
                        "real", found.get(0).getProperty("REAL_TOPIC"),
                        "left", leftovers(consumer, producer));
            }
        }
    }

    /** What is to be tried later goes to a topic of its own, and in the end to the dead letters. */
    private static Object retry(Scene scene) throws Exception {
        var policy = DeadLetterPolicy.builder()
                .maxRedeliverCount(2)
                .retryLetterTopic(scene.topic + "-again")
                .deadLetterTopic(scene.topic + "-dead")
                .initialSubscriptionName("undertaker")
                .build();
        try (var consumer = scene.consumer(SubscriptionType.Shared)
                        .enableRetry(true)
                        .deadLetterPolicy(policy)
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 3);
            List<String> times = new ArrayList<>();
            for (int number = 0; number < 3 * 3; number++) {
                Message<byte[]> message = receive(consumer, 1).get(0);
                times.add(body(message) + " " + message.getProperties().getOrDefault("RECONSUMETIMES", "0"));
                consumer.reconsumeLater(message, 200, TimeUnit.MILLISECONDS);
            }
            try (var reader = scene.client().newConsumer()
                    .topic(scene.topic + "-dead").subscriptionName("undertaker").subscribe()) {
                return map("times", times, "dead", drain(reader, 3), "left", leftovers(consumer, producer));
            }
        }
    }

    private static Object redeliver(Scene scene) throws Exception {
        try (var consumer = consumer(scene).subscribe(); var producer = scene.producer().create()) {
            List<Message<byte[]>> all = twenty(scene, consumer);
            for (Message<byte[]> message : all.subList(0, 15)) {
                consumer.acknowledge(message);
            }
            consumer.redeliverUnacknowledgedMessages();
            return map("again", drain(consumer, 5), "left", leftovers(consumer, producer));
        }
    }

    private Acking() {
    }
}
