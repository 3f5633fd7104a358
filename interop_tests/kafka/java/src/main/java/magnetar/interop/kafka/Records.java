package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.DEADLINE;
import static magnetar.interop.kafka.Scene.bytes;
import static magnetar.interop.kafka.Scene.errorOf;
import static magnetar.interop.kafka.Scene.get;
import static magnetar.interop.kafka.Scene.text;
import static magnetar.interop.kafka.Scene.values;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;
import magnetar.interop.stage.Stage.Family;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Records in and out, and groups that share them. */
final class Records {
    static void register(Map<String, Family<Scene>> families) {
        families.put("records.codec", Records::codec);
        families.put("records.nothing", Records::nothing);
        families.put("records.offsets", Records::offsets);
        families.put("records.sizes", Records::sizes);
        families.put("groups.share", Records::share);
        families.put("groups.move", Records::move);
    }

    /** Offsets as they were told, and values as they came. */
    private static Object codec(Scene scene) throws Exception {
        List<Long> offsets = new ArrayList<>();
        try (var producer = scene.producer("compression.type", scene.text("codec", ""), "linger.ms", 10)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < 1_000; number++) {
                sent.add(producer.send(new ProducerRecord<>(scene.topic, bytes(number))));
            }
            for (var one : sent) {
                offsets.add(get(one).offset());
            }
        }
        return List.of(offsets, values(scene.everything(scene.topic, 0)));
    }

    /** Keys, values and headers that are null or empty or twice there. */
    private static Object nothing(Scene scene) throws Exception {
        try (var producer = scene.producer()) {
            byte[][][] pairs = {{bytes("k"), null}, {null, bytes("")}, {bytes(""), bytes("v")}};
            for (byte[][] pair : pairs) {
                var record = new ProducerRecord<>(scene.topic, 0, 1_600_000_000_000L, pair[0], pair[1]);
                record.headers().add(new RecordHeader("a", bytes("1")));
                record.headers().add(new RecordHeader("a", (byte[]) null));
                get(producer.send(record));
            }
        }
        List<Object> seen = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> one : scene.everything(scene.topic, 0)) {
            List<String> headers = new ArrayList<>();
            one.headers().forEach(header -> headers.add(header.key() + "=" + text(header.value())));
            List<Object> said = new ArrayList<>(List.of(one.timestamp(), one.timestampType().name, headers));
            said.add(text(one.key()));
            said.add(text(one.value()));
            seen.add(said);
        }
        return seen;
    }

    private static Object offsets(Scene scene) throws Exception {
        long base = 1_600_000_000_000L;
        TopicPartition one = new TopicPartition(scene.topic, 0);
        try (var producer = scene.producer(); var consumer = scene.consumer()) {
            for (int number = 0; number < 10; number++) {
                get(producer.send(new ProducerRecord<>(scene.topic, 0, base + number, null, bytes(number))));
            }
            consumer.assign(List.of(one));
            consumer.seek(one, 1_000_000);
            var reset = consumer.poll(DEADLINE).iterator().next().offset();
            var late = consumer.offsetsForTimes(Map.of(one, base + 99)).get(one);
            return List.of(
                    consumer.beginningOffsets(List.of(one)).get(one),
                    consumer.endOffsets(List.of(one)).get(one),
                    consumer.offsetsForTimes(Map.of(one, base + 4)).get(one).offset(),
                    late == null ? -1 : late.offset(),
                    reset);
        }
    }

    private static Object sizes(Scene scene) throws Exception {
        try (var producer = scene.producer("max.request.size", 10_000_000)) {
            List<String> errors = new ArrayList<>();
            for (int size : new int[] {1_000_000, 3_000_000, 1}) {
                byte[] value = new byte[size];
                errors.add(errorOf(() -> get(producer.send(new ProducerRecord<>(scene.topic, value)))));
            }
            return errors;
        }
    }

    /** Members come and go; who has what in the end, and every number that came to anybody. */
    private static Object share(Scene scene) throws Exception {
        int count = scene.number("count", 0);
        Object[] options = {
            "group.id", scene.topic, "group.protocol", scene.text("protocol", "classic"), "client.id", "m"
        };
        if (!scene.text("assignor", "").isEmpty()) {
            options = List.of(
                    "group.id", scene.topic, "heartbeat.interval.ms", 300,
                    "partition.assignment.strategy", scene.text("assignor", "")).toArray();
        }
        Set<Integer> seen = Collections.synchronizedSet(new TreeSet<>());
        List<Member> members = new ArrayList<>();
        try (var producer = scene.producer()) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(scene.topic, bytes(number), bytes(number)));
            }
        }
        for (int number = 0; number < 3; number++) {
            members.add(new Member(scene.consumer(options), scene.topic, seen));
        }
        Member.until(members, () -> members.stream().allMatch(one -> one.holds == 2));
        members.remove(0).end();
        Member.until(members, () -> members.stream().allMatch(one -> one.holds == 3));
        Member.until(members, () -> seen.size() == count);
        for (Member one : members) {
            one.end();
        }
        return seen.size();
    }

    /** An application moves over to the newer protocol one by one, and back again; every number that came. */
    private static Object move(Scene scene) throws Exception {
        int count = scene.number("count", 0);
        Set<Integer> seen = Collections.synchronizedSet(new TreeSet<>());
        List<Member> members = new ArrayList<>();
        try (var producer = scene.producer()) {
            int number = 0;
            for (String step : List.of("+classic", "+classic", "+consumer", "-", "+consumer", "-", "+classic", "-", "-")) {
                if (step.equals("-")) {
                    members.remove(0).end();
                } else {
                    members.add(new Member(scene.consumer(speaking(scene, step.substring(1))), scene.topic, seen));
                }
                int share = 6 / members.size();
                Member.until(members, () -> members.stream().allMatch(one -> one.holds == share));
                for (int end = number + count; number < end; number++) {
                    producer.send(new ProducerRecord<>(scene.topic, bytes(number), bytes(number)));
                }
            }
            int all = number;
            Member.until(members, () -> seen.size() == all);
        }
        members.remove(0).end();
        return seen.size();
    }

    private static Object[] speaking(Scene scene, String protocol) {
        List<Object> options = new ArrayList<>(List.of("group.id", scene.topic, "group.protocol", protocol));
        if (protocol.equals("classic")) {
            options.addAll(List.of("heartbeat.interval.ms", 300));
        }
        return options.toArray();
    }

    /** One consumer of a group, with a thread of its own; it commits all that it reads. */
    private static final class Member extends Thread {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Set<Integer> seen;
        volatile int holds;
        private volatile boolean ends;
        private volatile Exception error;

        Member(KafkaConsumer<byte[], byte[]> consumer, String topic, Set<Integer> seen) {
            this.consumer = consumer;
            this.seen = seen;
            consumer.subscribe(List.of(topic));
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try {
                while (!ends) {
                    consumer.poll(Duration.ofMillis(50)).forEach(one -> seen.add(Integer.parseInt(text(one.value()))));
                    holds = consumer.assignment().size();
                    consumer.commitAsync();
                }
                consumer.close();
            } catch (Exception failed) {
                error = failed;
            }
        }

        void end() throws Exception {
            ends = true;
            join();
        }

        interface Condition {
            boolean holds();
        }

        static void until(List<Member> members, Condition condition) throws Exception {
            long deadline = System.nanoTime() + DEADLINE.toNanos();
            while (!condition.holds()) {
                for (Member one : members) {
                    if (one.error != null) {
                        throw one.error;
                    }
                }
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("they hold " + members.stream().map(one -> one.holds).toList());
                }
                Thread.sleep(20);
            }
        }
    }

    private Records() {
    }
}
