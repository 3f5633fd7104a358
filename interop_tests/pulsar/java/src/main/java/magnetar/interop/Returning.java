package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.body;
import static magnetar.interop.Scene.errorOf;
import static magnetar.interop.Scene.map;
import static magnetar.interop.Scene.publish;
import static magnetar.interop.Scene.receive;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MultiplierRedeliveryBackoff;

/**
 * Scenes in whose middle the server goes away and comes back: they tell "midway" and wait to be told "on". The
 * clients, producers and consumers are the same before and after; nobody tells them anything.
 */
final class Returning {
    private static final int MIDWAY_SECONDS = 60;

    static void register(Map<String, Family<Scene>> families) {
        families.put("again.sync", scene -> goesOn(scene, scene.consumer().subscribe(), scene.producer().create()));
        families.put("again.batches", scene -> goesOn(scene, scene.consumer().subscribe(), batching(scene)));
        families.put("again.in_flight", Returning::inFlight);
        families.put("again.codec", Returning::codec);
        families.put("again.chunks", Returning::chunks);
        families.put("again.encryption", Returning::encryption);
        families.put("again.delayed", Returning::delayed);
        families.put("again.partitions", Returning::partitions);
        families.put("again.regex", Returning::regex);
        families.put("again.reader", Returning::reader);
        families.put("again.table", Returning::table);
        families.put("again.seek", Returning::seek);
        families.put("again.individual", Returning::individual);
        families.put("again.cumulative", Returning::cumulative);
        families.put("again.negative", Returning::negative);
        families.put("again.timeout", Returning::timeout);
        families.put("again.dead", Returning::dead);
        families.put("again.retry", Returning::retry);
        families.put("again.counts", Returning::counts);
        families.put("again.topics", Returning::topics);
        families.put("again.volatile", Returning::unstored);
        families.put("again.exclusive", Returning::exclusive);
        families.put("again.waiting", Returning::waiting);
        families.put("again.fencing", Returning::fencing);
    }

    private static void midway(Scene scene) throws Exception {
        scene.tell("midway", null);
        scene.await("on");
    }

    /**
     * Receives and acknowledges until so many different bodies have come; these, as they first came. That an
     * acknowledgement finds nobody to hear it, right after the return, is no harm: the message comes again.
     */
    private static List<String> gather(Consumer<byte[]> consumer, int count) throws Exception {
        Set<String> found = new LinkedHashSet<>();
        while (found.size() < count) {
            Message<byte[]> message = receive(consumer, 1).get(0);
            consumer.acknowledgeAsync(message);
            found.add(body(message));
        }
        return new ArrayList<>(found);
    }

    /** Ten messages before, ten after. */
    private static Object goesOn(Scene scene, Consumer<byte[]> consumer, Producer<byte[]> producer) throws Exception {
        try (consumer; producer) {
            for (int number = 0; number < 10; number++) {
                producer.send(Integer.toString(number).getBytes());
            }
            midway(scene);
            publish(producer, 10, 10);
            return gather(consumer, 20);
        }
    }

    private static Producer<byte[]> batching(Scene scene) throws Exception {
        return scene.producer().enableBatching(true).batchingMaxMessages(4).create();
    }

    /** What has no receipt yet when the server goes gets one later. */
    private static Object inFlight(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe();
                var producer = scene.producer().sendTimeout(0, TimeUnit.SECONDS).create()) {
            var last = producer.sendAsync("0".getBytes());
            for (int number = 1; number < 3_000; number++) {
                last = producer.sendAsync(Integer.toString(number).getBytes());
            }
            midway(scene);
            last.get(MIDWAY_SECONDS, TimeUnit.SECONDS);
            return gather(consumer, 3_000);
        }
    }

    private static Object codec(Scene scene) throws Exception {
        var codec = CompressionType.valueOf(scene.text("codec", "NONE"));
        return goesOn(scene, scene.consumer().subscribe(), scene.producer().compressionType(codec).create());
    }

    /** Some megabytes are under way, and the consumer may have got some of them. */
    private static Object chunks(Scene scene) throws Exception {
        byte[] large = new byte[34 * 1024 * 1024];
        new Random(2).nextBytes(large);
        try (var consumer = scene.consumer().ackTimeout(5, TimeUnit.SECONDS).subscribe();
                var producer = scene.producer().enableChunking(true).sendTimeout(0, TimeUnit.SECONDS).create()) {
            var sent = producer.sendAsync(large);
            midway(scene);
            sent.get(MIDWAY_SECONDS, TimeUnit.SECONDS);
            Message<byte[]> message = receive(consumer, 1).get(0);
            return Arrays.equals(message.getData(), large);
        }
    }

    private static Object encryption(Scene scene) throws Exception {
        var keys = Publishing.keys(scene);
        return goesOn(
                scene,
                scene.consumer().cryptoKeyReader(keys).subscribe(),
                scene.producer().addEncryptionKey("mine").cryptoKeyReader(keys).create());
    }

    private static Object delayed(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Shared).subscribe();
                var producer = scene.producer().create()) {
            long began = System.nanoTime();
            producer.newMessage().value("late".getBytes()).deliverAfter(5, TimeUnit.SECONDS).send();
            midway(scene);
            Message<byte[]> message = receive(consumer, 1).get(0);
            return map("body", body(message), "waited_ms", (System.nanoTime() - began) / 1_000_000);
        }
    }

    /** The test has made partitions of the topic. */
    private static Object partitions(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Failover).subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 30);
            midway(scene);
            publish(producer, 30, 30);
            return gather(consumer, 60);
        }
    }

    /** Also a topic that comes after the return is found. */
    private static Object regex(Scene scene) throws Exception {
        Pattern wanted = Pattern.compile("persistent://public/default/" + scene.topic + "-x.*");
        try (var there = scene.client().newProducer().topic(scene.topic + "-x1").create();
                var consumer = scene.client().newConsumer()
                        .topicsPattern(wanted)
                        .patternAutoDiscoveryPeriod(1, TimeUnit.HOURS)
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .subscriptionName("s")
                        .subscribe()) {
            there.send("before".getBytes());
            midway(scene);
            there.send("after".getBytes());
            try (var later = scene.client().newProducer().topic(scene.topic + "-x2").create()) {
                later.send("later".getBytes());
                return gather(consumer, 3);
            }
        }
    }

    private static Object reader(Scene scene) throws Exception {
        scene.keepAll();
        try (var producer = scene.producer().create();
                var reader = scene.client().newReader()
                        .topic(scene.topic).startMessageId(MessageId.earliest).create()) {
            publish(producer, 0, 10);
            List<String> read = new ArrayList<>();
            for (int number = 0; number < 20; number++) {
                if (number == 5) {
                    midway(scene);
                    publish(producer, 10, 10);
                }
                Message<byte[]> message = reader.readNext(DEADLINE_SECONDS, TimeUnit.SECONDS);
                if (message == null) {
                    throw new TimeoutException("read " + read + " and then nothing");
                }
                read.add(body(message));
            }
            return read;
        }
    }

    private static Object table(Scene scene) throws Exception {
        scene.keepAll();
        try (var producer = scene.producer().create()) {
            producer.newMessage().key("a").value("old".getBytes()).send();
            producer.newMessage().key("b").value("stays".getBytes()).send();
            try (var view = scene.client().newTableView().topic(scene.fullName()).create()) {
                midway(scene);
                producer.newMessage().key("a").value("new".getBytes()).send();
                view.refreshAsync().get(DEADLINE_SECONDS, TimeUnit.SECONDS);
                return map("a", new String(view.get("a")), "b", new String(view.get("b")));
            }
        }
    }

    private static Object seek(Scene scene) throws Exception {
        try (var consumer = scene.consumer().startMessageIdInclusive().subscribe();
                var producer = scene.producer().create()) {
            scene.keepAll();
            List<MessageId> ids = publish(producer, 0, 20);
            long began = receive(consumer, 20).get(0).getPublishTime();
            consumer.seek(ids.get(12));
            midway(scene);
            List<String> byId = gather(consumer, 8);
            consumer.seek(began);
            return map("by_id", byId, "by_time", gather(consumer, 20));
        }
    }

    private static ConsumerBuilder<byte[]> withReceipts(Scene scene) throws Exception {
        return scene.consumer(scene.type("Exclusive"))
                .enableBatchIndexAcknowledgment(scene.flag("batched"))
                .isAckReceiptEnabled(true);
    }

    private static List<Message<byte[]>> twenty(Scene scene, Consumer<byte[]> consumer) throws Exception {
        try (var producer = (scene.flag("batched") ? scene.batching(20) : scene.producer()).create()) {
            publish(producer, 0, 20);
        }
        return receive(consumer, 20);
    }

    /** What was acknowledged with a receipt does not come again, all else does. */
    private static Object individual(Scene scene) throws Exception {
        try (var consumer = withReceipts(scene).subscribe()) {
            for (Message<byte[]> message : twenty(scene, consumer)) {
                if (Integer.parseInt(body(message)) % 3 != 0) {
                    consumer.acknowledge(message);
                }
            }
            midway(scene);
            return theRest(scene, consumer);
        }
    }

    private static Object cumulative(Scene scene) throws Exception {
        try (var consumer = withReceipts(scene).subscribe()) {
            consumer.acknowledgeCumulative(twenty(scene, consumer).get(12));
            midway(scene);
            return theRest(scene, consumer);
        }
    }

    private static List<String> theRest(Scene scene, Consumer<byte[]> consumer) throws Exception {
        try (var producer = scene.producer().create()) {
            return Scene.leftovers(consumer, producer);
        }
    }

    private static Object negative(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Shared)
                        .negativeAckRedeliveryBackoff(MultiplierRedeliveryBackoff.builder()
                                .minDelayMs(100).maxDelayMs(1_000).multiplier(2).build())
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 5);
            receive(consumer, 5).forEach(consumer::negativeAcknowledge);
            midway(scene);
            List<Message<byte[]>> again = receive(consumer, 5);
            again.forEach(consumer::negativeAcknowledge);
            return gather(consumer, 5);
        }
    }

    private static Object timeout(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Shared)
                        .isAckReceiptEnabled(true)
                        .ackTimeout(2, TimeUnit.SECONDS)
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 3);
            for (Message<byte[]> message : receive(consumer, 3)) {
                if (body(message).equals("1")) {
                    consumer.acknowledge(message);
                }
            }
            midway(scene);
            receive(consumer, 2); // at once, as it is not acknowledged, and again after the timeout
            return gather(consumer, 2);
        }
    }

    private static DeadLetterPolicy deadLetters(Scene scene) {
        return DeadLetterPolicy.builder()
                .maxRedeliverCount(2)
                .retryLetterTopic(scene.topic + "-again")
                .deadLetterTopic(scene.topic + "-dead")
                .initialSubscriptionName("undertaker")
                .build();
    }

    /** The server forgets how often it sent what; in the end it is found among the dead. */
    private static Object dead(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Shared)
                        .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
                        .deadLetterPolicy(deadLetters(scene))
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 3);
            for (int number = 0; number < 3 * 2; number++) {
                consumer.negativeAcknowledge(receive(consumer, 1).get(0));
            }
            midway(scene);
            try (var reader = scene.client().newConsumer()
                    .topic(scene.topic + "-dead").subscriptionName("undertaker").subscribe()) {
                Set<String> found = new LinkedHashSet<>();
                long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
                while (found.size() < 3 && System.nanoTime() < deadline) {
                    Message<byte[]> alive = consumer.receive(50, TimeUnit.MILLISECONDS);
                    if (alive != null) {
                        consumer.negativeAcknowledge(alive);
                    }
                    Message<byte[]> buried = reader.receive(50, TimeUnit.MILLISECONDS);
                    if (buried != null) {
                        found.add(body(buried));
                    }
                }
                return new ArrayList<>(found);
            }
        }
    }

    /** How often a message was tried stands in the message: that is not forgotten. */
    private static Object retry(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Shared)
                        .enableRetry(true)
                        .isAckReceiptEnabled(true)
                        .deadLetterPolicy(deadLetters(scene))
                        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                        .subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 3);
            List<String> times = new ArrayList<>();
            Set<String> dead = new LinkedHashSet<>();
            try (var reader = scene.client().newConsumer()
                    .topic(scene.topic + "-dead").subscriptionName("undertaker").subscribe()) {
                for (Message<byte[]> message : receive(consumer, 3)) {
                    times.add(body(message) + " 0");
                    consumer.reconsumeLater(message, 200, TimeUnit.MILLISECONDS);
                }
                midway(scene);
                long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
                while (dead.size() < 3 && System.nanoTime() < deadline) {
                    Message<byte[]> message = consumer.receive(50, TimeUnit.MILLISECONDS);
                    if (message != null) {
                        times.add(body(message) + " " + message.getProperties().getOrDefault("RECONSUMETIMES", "0"));
                        // it had come before, and nobody is there to be told: then it comes again
                        errorOf(() -> consumer.reconsumeLater(message, 200, TimeUnit.MILLISECONDS));
                    }
                    Message<byte[]> buried = reader.receive(50, TimeUnit.MILLISECONDS);
                    if (buried != null) {
                        dead.add(body(buried));
                    }
                }
            }
            return map("times", times, "dead", new ArrayList<>(dead));
        }
    }

    /** They begin again, as they are kept in memory, and go up again. */
    private static Object counts(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Shared)
                        .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS)
                        .subscribe();
                var producer = scene.producer().create()) {
            producer.send("x".getBytes());
            List<Integer> before = threeCounts(consumer);
            midway(scene);
            return map("before", before, "after", threeCounts(consumer));
        }
    }

    private static List<Integer> threeCounts(Consumer<byte[]> consumer) throws Exception {
        List<Integer> found = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            Message<byte[]> message = receive(consumer, 1).get(0);
            found.add(message.getRedeliveryCount());
            consumer.negativeAcknowledge(message);
        }
        return found;
    }

    private static Object topics(Scene scene) throws Exception {
        List<String> names = List.of(scene.topic + "-1", scene.topic + "-2", scene.topic + "-3");
        try (var consumer = scene.client().newConsumer().topics(names).subscriptionName("s").subscribe()) {
            List<Producer<byte[]>> producers = new ArrayList<>();
            for (String name : names) {
                producers.add(scene.client().newProducer().topic(name).create());
                producers.get(producers.size() - 1).send((name + " before").getBytes());
            }
            midway(scene);
            for (Producer<byte[]> producer : producers) {
                producer.send((producer.getTopic() + " after").getBytes());
                producer.close();
            }
            return gather(consumer, 6).size();
        }
    }

    /** Who is attached first again is not said, and what nobody is there for is gone. */
    private static Object unstored(Scene scene) throws Exception {
        String name = "non-persistent://public/default/" + scene.topic;
        try (var consumer = scene.client().newConsumer().topic(name).subscriptionName("s").subscribe();
                var producer = scene.producer().topic(name).create()) {
            producer.send("before".getBytes());
            String before = body(receive(consumer, 1).get(0));
            midway(scene);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
            Message<byte[]> after = null;
            while (after == null && System.nanoTime() < deadline) {
                producer.send("after".getBytes());
                after = consumer.receive(200, TimeUnit.MILLISECONDS);
            }
            return List.of(before, after == null ? "nothing" : body(after));
        }
    }

    private static Object exclusive(Scene scene) throws Exception {
        var mode = ProducerAccessMode.Exclusive;
        try (var consumer = scene.consumer().subscribe(); var holder = scene.producer().accessMode(mode).create()) {
            holder.send("before".getBytes());
            midway(scene);
            holder.send("after".getBytes());
            String other = errorOf(() -> scene.producer().accessMode(mode).create());
            return map("other", other, "bodies", gather(consumer, 2));
        }
    }

    private static Object waiting(Scene scene) throws Exception {
        var mode = ProducerAccessMode.WaitForExclusive;
        try (var consumer = scene.consumer().subscribe()) {
            var holder = scene.producer().accessMode(mode).create();
            holder.send("holder".getBytes());
            var next = scene.producer().accessMode(mode).createAsync();
            midway(scene);
            // the server forgot the line: whoever is back first is let in, and the other one is next
            holder.sendAsync("holder again".getBytes());
            holder.closeAsync();
            try (var producer = next.get(MIDWAY_SECONDS, TimeUnit.SECONDS)) {
                producer.send("next".getBytes());
                List<String> found = gather(consumer, 2);
                return found.contains("next") || gather(consumer, 1).contains("next");
            }
        }
    }

    private static Object fencing(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe();
                var old = scene.producer().accessMode(ProducerAccessMode.Exclusive).create()) {
            old.send("old".getBytes());
            try (var young = scene.producer().accessMode(ProducerAccessMode.ExclusiveWithFencing).create()) {
                young.send("new".getBytes());
                midway(scene);
                String error = errorOf(() -> old.send("too late".getBytes()));
                young.send("newer".getBytes());
                return map("old", error, "bodies", gather(consumer, 3));
            }
        }
    }

    private Returning() {
    }
}
