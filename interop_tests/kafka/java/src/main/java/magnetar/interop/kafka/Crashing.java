package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.bytes;
import static magnetar.interop.kafka.Scene.map;
import static magnetar.interop.kafka.Scene.text;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Stage.Family;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Work that goes on while the test stops, kills and starts the server: an idempotent producer and a member of a
 * group, which note what they did for the judge. The test asks now and then whether more was done, and tells when to
 * end.
 */
final class Crashing {
    private static final int PARTITIONS = 3;
    private static final int IN_FLIGHT_MAX = 200;
    /** The producer sends so many more than it was asked for, and then waits until it is asked again. */
    private static final int AHEAD_MAX = 500;
    private static final int DRAIN_SECONDS = 45;

    static void register(Map<String, Family<Scene>> families) {
        families.put("crash.work", scene -> new Crashing(scene).work());
    }

    private final Scene scene;
    private final List<List<Long>> acknowledged = Collections.synchronizedList(new ArrayList<>());
    private final List<List<Long>> events = Collections.synchronizedList(new ArrayList<>());
    private final long[] ends = new long[PARTITIONS];
    private volatile Exception failed;
    private volatile long read;
    private volatile boolean stop;

    private Crashing(Scene scene) {
        this.scene = scene;
    }

    private Object work() throws Exception {
        Thread reading = new Thread(this::read);
        reading.start();
        long count = send();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DRAIN_SECONDS);
        while (read < count && System.nanoTime() < deadline) {
            reading.join(20);
        }
        stop = true;
        reading.join();
        if (failed != null) {
            throw failed;
        }
        List<List<Long>> found = new ArrayList<>();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            for (ConsumerRecord<byte[], byte[]> one : scene.everything(scene.topic, partition)) {
                found.add(stored(one));
            }
        }
        return map("acknowledged", acknowledged, "events", events, "found", found, "count", count);
    }

    private static List<Long> stored(ConsumerRecord<byte[], byte[]> record) {
        return List.of((long) record.partition(), record.offset(), Long.parseLong(text(record.value())));
    }

    private long send() throws Exception {
        Semaphore room = new Semaphore(IN_FLIGHT_MAX);
        int more = scene.number("more", 300);
        long goal = 0, count = 0;
        boolean asked = false;
        try (var producer = scene.producer("delivery.timeout.ms", Integer.MAX_VALUE, "linger.ms", 2,
                "compression.type", scene.text("codec", "none"), "request.timeout.ms", 5_000)) {
            while (failed == null && !scene.isTold("end")) {
                if (!asked && scene.isTold("more")) {
                    asked = true;
                    goal = acknowledged.size() + more;
                }
                if (asked && acknowledged.size() >= goal) {
                    asked = false;
                    scene.tell("more", acknowledged.size());
                }
                if (count >= goal + AHEAD_MAX || !room.tryAcquire(20, TimeUnit.MILLISECONDS)) {
                    Thread.sleep(1);
                    continue;
                }
                long number = count / PARTITIONS;
                int partition = (int) (count++ % PARTITIONS);
                producer.send(new ProducerRecord<>(scene.topic, partition, null, bytes(number)), (stored, error) -> {
                    room.release();
                    if (error == null) {
                        acknowledged.add(List.of((long) partition, stored.offset(), number));
                    } else {
                        failed = error;
                    }
                });
            }
        }
        return count;
    }

    private void read() {
        try (var consumer = scene.consumer("group.id", scene.topic, "group.protocol",
                scene.text("protocol", "classic"), "max.poll.records", 100, "default.api.timeout.ms", 10_000)) {
            consumer.subscribe(List.of(scene.topic));
            while (!stop) {
                for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(50))) {
                    events.add(stored(one));
                    ends[one.partition()] = Math.max(ends[one.partition()], one.offset() + 1);
                }
                read = ends[0] + ends[1] + ends[2];
                commit(consumer);
            }
        } catch (Exception error) {
            failed = error;
        }
    }

    private void commit(KafkaConsumer<byte[], byte[]> consumer) {
        Map<TopicPartition, OffsetAndMetadata> said = new java.util.HashMap<>();
        for (TopicPartition one : consumer.assignment()) {
            if (ends[one.partition()] > 0) {
                said.put(one, new OffsetAndMetadata(consumer.position(one)));
            }
        }
        try {
            consumer.commitSync(said);
        } catch (KafkaException error) {
            return; // the server is away, or has forgotten us: some later commit will tell
        }
        said.forEach((one, offset) -> events.add(List.of((long) one.partition(), offset.offset())));
    }
}
