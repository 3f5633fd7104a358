package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.body;
import static magnetar.interop.Scene.drain;
import static magnetar.interop.Scene.errorOf;
import static magnetar.interop.Scene.leftovers;
import static magnetar.interop.Scene.map;
import static magnetar.interop.Scene.publish;
import static magnetar.interop.Scene.receive;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.BatchReceivePolicy;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerEventListener;
import org.apache.pulsar.client.api.KeySharedPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageListener;
import org.apache.pulsar.client.api.Messages;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** Who gets what: the four types, several topics at once, coming and leaving. */
final class Subscribing {
    static void register(Map<String, Family<Scene>> families) {
        families.put("subscribe.busy", Subscribing::busy);
        families.put("subscribe.spread", Subscribing::spread);
        families.put("subscribe.failover", Subscribing::failover);
        families.put("subscribe.keys", Subscribing::keys);
        families.put("subscribe.sticky", Subscribing::sticky);
        families.put("subscribe.priority", Subscribing::priority);
        families.put("subscribe.topics", Subscribing::topics);
        families.put("subscribe.pattern", Subscribing::pattern);
        families.put("subscribe.leave", Subscribing::leave);
        families.put("subscribe.unsubscribe", Subscribing::unsubscribe);
        families.put("subscribe.queue", Subscribing::queue);
        families.put("subscribe.pause", Subscribing::pause);
        families.put("subscribe.properties", Subscribing::properties);
        families.put("subscribe.terminated", Subscribing::terminated);
        families.put("subscribe.async", Subscribing::async);
        families.put("subscribe.together", Subscribing::together);
    }

    /** What came, and to whom. */
    private record Delivery(String name, String key, String body) {
    }

    private static final class Inbox {
        private final BlockingQueue<Delivery> came = new LinkedBlockingQueue<>();

        MessageListener<byte[]> of(String name) {
            return (consumer, message) -> {
                // in this order: who takes the last one may close its consumer at once
                consumer.acknowledgeAsync(message);
                came.add(new Delivery(name, message.getKey(), body(message)));
            };
        }

        List<Delivery> take(int count) throws Exception {
            List<Delivery> found = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                Delivery next = came.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
                if (next == null) {
                    throw new TimeoutException("came " + found + " and then nothing");
                }
                found.add(next);
            }
            return found;
        }
    }

    private static Map<String, List<Integer>> byName(List<Delivery> deliveries) {
        Map<String, List<Integer>> found = new HashMap<>();
        for (Delivery each : deliveries) {
            found.computeIfAbsent(each.name, name -> new ArrayList<>()).add(Integer.valueOf(each.body));
        }
        return found;
    }

    private static Object busy(Scene scene) throws Exception {
        try (var first = scene.consumer().subscribe()) {
            return List.of(
                    errorOf(() -> scene.consumer().subscribe()),
                    errorOf(() -> scene.consumer(SubscriptionType.Shared)
                            .subscriptionName("t").readCompacted(true).subscribe()));
        }
    }

    private static Object spread(Scene scene) throws Exception {
        Inbox inbox = new Inbox();
        for (String name : List.of("a", "b", "c")) {
            scene.consumer(SubscriptionType.Shared).messageListener(inbox.of(name)).subscribe();
        }
        try (var producer = scene.producer().create()) {
            publish(producer, 0, 300);
            return byName(inbox.take(300));
        }
    }

    /** The active one is told so, and the next one when it leaves. */
    private static Object failover(Scene scene) throws Exception {
        Inbox inbox = new Inbox();
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        Map<String, Consumer<byte[]>> consumers = new HashMap<>();
        for (String name : List.of("a", "b")) {
            ConsumerEventListener listener = new ConsumerEventListener() {
                @Override
                public void becameActive(Consumer<?> consumer, int partition) {
                    told.add(name);
                }

                @Override
                public void becameInactive(Consumer<?> consumer, int partition) {
                }
            };
            consumers.put(name, scene.consumer(SubscriptionType.Failover)
                    .consumerName(name)
                    .consumerEventListener(listener)
                    .messageListener(inbox.of(name))
                    .subscribe());
        }
        try (var producer = scene.producer().create()) {
            publish(producer, 0, 50);
            List<Delivery> before = inbox.take(50);
            String active = before.get(49).name;
            consumers.get(active).close();
            publish(producer, 50, 50);
            List<Delivery> after = inbox.take(50);
            return map("before", byName(before), "after", byName(after), "active", active, "told", told);
        }
    }

    private static Object deliveries(Scene scene, Inbox inbox, int count, int keys, boolean batched)
            throws Exception {
        var builder = batched
                ? scene.batching(100).batcherBuilder(BatcherBuilder.KEY_BASED)
                : scene.producer();
        try (var producer = builder.create()) {
            for (int number = 0; number < count; number++) {
                producer.newMessage().key("key-" + number % keys).value(("" + number).getBytes()).sendAsync();
            }
            producer.flush();
        }
        Map<String, Set<String>> owners = new HashMap<>();
        Map<String, List<Integer>> order = new HashMap<>();
        for (Delivery each : inbox.take(count)) {
            owners.computeIfAbsent(each.key, key -> new HashSet<>()).add(each.name);
            order.computeIfAbsent(each.key, key -> new ArrayList<>()).add(Integer.valueOf(each.body));
        }
        return map("owners", owners, "order", order);
    }

    private static Object keys(Scene scene) throws Exception {
        Inbox inbox = new Inbox();
        for (String name : List.of("a", "b", "c")) {
            scene.consumer(SubscriptionType.Key_Shared).messageListener(inbox.of(name)).subscribe();
        }
        return deliveries(scene, inbox, 600, 60, scene.flag("batched"));
    }

    private static Object sticky(Scene scene) throws Exception {
        Inbox inbox = new Inbox();
        int middle = 1 << 15;
        for (var half : Map.of("low", Range.of(0, middle - 1), "high", Range.of(middle, 65535)).entrySet()) {
            scene.consumer(SubscriptionType.Key_Shared)
                    .keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(half.getValue()))
                    .messageListener(inbox.of(half.getKey()))
                    .subscribe();
        }
        String overlap = errorOf(() -> scene.consumer(SubscriptionType.Key_Shared)
                .keySharedPolicy(KeySharedPolicy.stickyHashRange().ranges(Range.of(10, 20)))
                .subscribe());
        return map("overlap", overlap, "got", deliveries(scene, inbox, 200, 50, false));
    }

    /** Those of lower priority get what those before them have no room for. */
    private static Object priority(Scene scene) throws Exception {
        try (var first = scene.consumer(SubscriptionType.Shared).priorityLevel(0).receiverQueueSize(10).subscribe();
                var second = scene.consumer(SubscriptionType.Shared).priorityLevel(1).subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 30);
            return map("second", drain(second, 20), "first", drain(first, 10));
        }
    }

    private static Object topics(Scene scene) throws Exception {
        List<String> names = List.of(scene.topic + "-1", scene.topic + "-2", scene.topic + "-3");
        try (var consumer = scene.client().newConsumer()
                .topics(names).subscriptionName("s").subscriptionType(scene.type("Shared")).subscribe()) {
            for (String name : names) {
                try (var producer = scene.client().newProducer().topic(name).create()) {
                    producer.send(name.getBytes());
                }
            }
            return drain(consumer, 3);
        }
    }

    /** Topics that match are found, also those that come later: the server tells of them. */
    private static Object pattern(Scene scene) throws Exception {
        Pattern wanted = Pattern.compile("persistent://public/default/" + scene.topic + "-x.*");
        try (var there = scene.client().newProducer().topic(scene.topic + "-x1").create();
                var other = scene.client().newProducer().topic(scene.topic + "-y").create();
                var consumer = scene.client().newConsumer()
                        .topicsPattern(wanted)
                        .patternAutoDiscoveryPeriod(1, TimeUnit.HOURS)
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .subscriptionName("s")
                        .subscribe();
                var later = scene.client().newProducer().topic(scene.topic + "-x2").create()) {
            other.send("not for you".getBytes());
            there.send("there".getBytes());
            List<String> got = new ArrayList<>(drain(consumer, 1));
            later.send("later".getBytes());
            got.addAll(drain(consumer, 1));
            return got;
        }
    }

    private static Object leave(Scene scene) throws Exception {
        SubscriptionType type = scene.type("Shared");
        var leaving = scene.consumer(type).subscribe();
        try (var producer = scene.producer().create()) {
            publish(producer, 0, 10);
            List<Message<byte[]>> held = receive(leaving, 10);
            leaving.acknowledge(held.get(3));
            leaving.close();
            try (var again = scene.consumer(type).subscribe()) {
                return map("bodies", drain(again, 9), "left", leftovers(again, producer));
            }
        }
    }

    private static Object unsubscribe(Scene scene) throws Exception {
        var one = scene.consumer(SubscriptionType.Shared).subscribe();
        var two = scene.consumer(SubscriptionType.Shared).subscribe();
        try (var producer = scene.producer().create()) {
            producer.send("never read".getBytes());
            String refused = errorOf(one::unsubscribe);
            two.close();
            one.unsubscribe();
            try (var again = scene.consumer().subscribe()) {
                return map("refused", refused, "left", leftovers(again, producer));
            }
        }
    }

    private static Object queue(Scene scene) throws Exception {
        try (var consumer = scene.consumer(scene.type("Exclusive"))
                        .receiverQueueSize(scene.number("size", 1))
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 50);
            List<String> got = new ArrayList<>();
            for (int number = 0; number < 50; number++) {
                Message<byte[]> message = scene.number("size", 1) == 0
                        ? consumer.receive()
                        : consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS);
                got.add(body(message));
                consumer.acknowledge(message);
            }
            return got;
        }
    }

    private static Object pause(Scene scene) throws Exception {
        try (var consumer = scene.consumer().receiverQueueSize(5).subscribe();
                var producer = scene.producer().create()) {
            consumer.pause();
            publish(producer, 0, 20);
            List<String> got = drain(consumer, 5); // what the queue had asked for before
            consumer.resume();
            got.addAll(drain(consumer, 15));
            return got;
        }
    }

    private static Object properties(Scene scene) throws Exception {
        try (var consumer = scene.consumer()
                        .consumerName("named")
                        .property("of the consumer", "1")
                        .subscriptionProperties(Map.of("of the subscription", "2"))
                        .subscribe();
                var producer = scene.producer().create()) {
            return map("name", consumer.getConsumerName(), "left", leftovers(consumer, producer));
        }
    }

    /** The test terminates the topic in between. */
    private static Object terminated(Scene scene) throws Exception {
        BlockingQueue<String> ended = new LinkedBlockingQueue<>();
        var consumer = scene.client().newConsumer()
                .topic(scene.topic)
                .subscriptionName("s")
                .messageListener(new MessageListener<byte[]>() {
                    @Override
                    public void received(Consumer<byte[]> which, Message<byte[]> message) {
                        which.acknowledgeAsync(message);
                    }

                    @Override
                    public void reachedEndOfTopic(Consumer<byte[]> which) {
                        ended.add("ended");
                    }
                })
                .subscribe();
        try (var producer = scene.producer().create()) {
            publish(producer, 0, 5);
            scene.tell("published", null);
            scene.await("terminated");
            String sending = errorOf(() -> producer.send("too late".getBytes()));
            String creating = errorOf(() -> scene.producer().create());
            String end = ended.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
            return map("sending", sending, "creating", creating, "ended", end, "has", consumer.hasReachedEndOfTopic());
        } finally {
            consumer.close();
        }
    }

    /** Nobody waits: each message is asked for before it is there, and acknowledged without a wait. */
    private static Object async(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe(); var producer = scene.producer().create()) {
            List<CompletableFuture<String>> got = new ArrayList<>();
            for (int number = 0; number < 100; number++) {
                got.add(consumer.receiveAsync().thenCompose(
                        message -> consumer.acknowledgeAsync(message).thenApply(done -> body(message))));
            }
            publish(producer, 0, 100);
            List<String> bodies = new ArrayList<>();
            for (var each : got) {
                bodies.add(each.get(DEADLINE_SECONDS, TimeUnit.SECONDS));
            }
            return map("bodies", bodies, "left", leftovers(consumer, producer));
        }
    }

    private static Object together(Scene scene) throws Exception {
        try (var consumer = scene.consumer()
                        .batchReceivePolicy(BatchReceivePolicy.builder()
                                .maxNumMessages(10).maxNumBytes(0).timeout(5, TimeUnit.SECONDS).build())
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 30);
            List<List<String>> got = new ArrayList<>();
            for (int number = 0; number < 3; number++) {
                Messages<byte[]> some = consumer.batchReceive();
                List<String> bodies = new ArrayList<>();
                some.forEach(message -> bodies.add(body(message)));
                consumer.acknowledge(some);
                got.add(bodies);
            }
            return map("got", got, "left", leftovers(consumer, producer));
        }
    }

    private Subscribing() {
    }
}
