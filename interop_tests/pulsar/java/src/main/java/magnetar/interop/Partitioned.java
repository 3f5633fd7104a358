package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.body;
import static magnetar.interop.Scene.map;
import static magnetar.interop.Scene.publish;
import static magnetar.interop.Scene.receive;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageRoutingMode;
import org.apache.pulsar.client.api.SubscriptionType;

/** Topics of several partitions, which the test or the server's settings have made. */
final class Partitioned {
    static void register(Map<String, Family<Scene>> families) {
        families.put("partitions.all", Partitioned::all);
        families.put("partitions.keys", Partitioned::keys);
        families.put("partitions.single", Partitioned::single);
        families.put("partitions.spread", Partitioned::spread);
        families.put("partitions.seek", Partitioned::seek);
        families.put("partitions.reader", Partitioned::reader);
        families.put("partitions.grown", Partitioned::grown);
    }

    /** Receives and acknowledges; which numbers came from which partition. */
    private static Map<String, List<Integer>> byPartition(Consumer<byte[]> consumer, int count) throws Exception {
        Map<String, List<Integer>> found = new HashMap<>();
        for (Message<byte[]> message : receive(consumer, count)) {
            found.computeIfAbsent(message.getTopicName(), name -> new ArrayList<>())
                    .add(Integer.valueOf(body(message)));
            consumer.acknowledge(message);
        }
        return found;
    }

    /** How many partitions there are, what arrives, each partition in order. */
    private static Object all(Scene scene) throws Exception {
        try (var consumer = scene.consumer(scene.type("Exclusive")).subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 100);
            Object got = byPartition(consumer, 100);
            return map("partitions", scene.client().getPartitionsForTopic(scene.topic).get(), "got", got);
        }
    }

    /** Each of twenty keys has its partition; in how many partitions each came. */
    private static Object keys(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe(); var producer = scene.producer().create()) {
            for (int number = 0; number < 100; number++) {
                producer.newMessage().key("key-" + number % 20).value("x".getBytes()).sendAsync();
            }
            producer.flush();
            Map<String, Set<String>> where = new HashMap<>();
            for (Message<byte[]> message : receive(consumer, 100)) {
                where.computeIfAbsent(message.getKey(), key -> new HashSet<>()).add(message.getTopicName());
            }
            return where;
        }
    }

    private static Object single(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe();
                var producer = scene.producer()
                        .messageRoutingMode(MessageRoutingMode.SinglePartition)
                        .create()) {
            publish(producer, 0, 50);
            return byPartition(consumer, 50);
        }
    }

    /** Of two consumers each is served half of the partitions; the partitions of each. */
    private static Object spread(Scene scene) throws Exception {
        try (var one = scene.consumer(SubscriptionType.Failover).consumerName("a").subscribe();
                var two = scene.consumer(SubscriptionType.Failover).consumerName("b").subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 100);
            return List.of(byPartition(one, 50).keySet(), byPartition(two, 50).keySet());
        }
    }

    /** All partitions at once: to the start, and to a time. */
    private static Object seek(Scene scene) throws Exception {
        scene.keepAll();
        try (var consumer = scene.consumer().subscribe(); var producer = scene.producer().create()) {
            publish(producer, 0, 40);
            byPartition(consumer, 40);
            consumer.seek(MessageId.earliest);
            int again = receive(consumer, 40).size();
            long between = Reading.afterNow();
            publish(producer, 40, 20);
            receive(consumer, 20);
            consumer.seek(between);
            List<Integer> since = new ArrayList<>();
            byPartition(consumer, 20).values().forEach(since::addAll);
            return map("again", again, "since", since);
        }
    }

    private static Object reader(Scene scene) throws Exception {
        scene.keepAll();
        try (var producer = scene.producer().create();
                var reader = scene.client().newReader()
                        .topic(scene.topic).startMessageId(MessageId.earliest).create()) {
            publish(producer, 0, 40);
            List<String> found = new ArrayList<>();
            while (reader.hasMessageAvailable()) {
                Message<byte[]> message = reader.readNext(DEADLINE_SECONDS, TimeUnit.SECONDS);
                if (message == null) {
                    throw new TimeoutException("read " + found + " and then nothing");
                }
                found.add(body(message));
            }
            return found;
        }
    }

    /** The test adds partitions in between: who is there finds them by looking again every second. */
    private static Object grown(Scene scene) throws Exception {
        try (var consumer = scene.consumer().autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).subscribe();
                var producer = scene.producer().autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).create()) {
            publish(producer, 0, 20);
            Set<String> before = byPartition(consumer, 20).keySet();
            scene.tell("consumed", null);
            scene.await("grown");
            Set<String> after = new HashSet<>();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
            while (after.size() < scene.number("partitions", 0) && System.nanoTime() < deadline) {
                publish(producer, 0, 5);
                after.addAll(byPartition(consumer, 5).keySet());
            }
            return map("before", before, "after", after);
        }
    }

    private Partitioned() {
    }
}
