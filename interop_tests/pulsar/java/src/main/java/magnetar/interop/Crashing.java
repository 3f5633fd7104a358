package magnetar.interop;

import static magnetar.interop.Scene.body;
import static magnetar.interop.Scene.map;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;

/**
 * Work that goes on while the test stops, kills and starts the server: a producer and a consumer that note what
 * they did and when. The test asks now and then whether more was done, tells when to end, and judges the notes.
 */
final class Crashing {
    private static final int IN_FLIGHT_MAX = 100;
    /** The producer waits for the consumer when it is so many messages ahead. */
    private static final int AHEAD_MAX = 1_000;
    private static final int ACKS_MAX = 1_000;
    private static final int DRAIN_SECONDS = 45;

    static void register(Map<String, Family<Scene>> families) {
        families.put("crash.work", scene -> new Crashing(scene).work());
    }

    private final Scene scene;
    private final List<List<Object>> sent = Collections.synchronizedList(new ArrayList<>());
    private final List<List<Object>> got = Collections.synchronizedList(new ArrayList<>());
    private final Set<Integer> seen = ConcurrentHashMap.newKeySet();
    private volatile boolean stop;

    private Crashing(Scene scene) {
        this.scene = scene;
    }

    private Object work() throws Exception {
        Consumer<byte[]> consumer = scene.consumer(scene.type("Shared")).isAckReceiptEnabled(true).subscribe();
        var builder = scene.flag("batched")
                ? scene.producer().enableBatching(true).batchingMaxMessages(10)
                : scene.producer();
        Producer<byte[]> producer = builder.sendTimeout(0, TimeUnit.SECONDS).create();
        Thread receiving = new Thread(() -> receive(consumer));
        receiving.start();
        int count = send(producer);
        producer.close();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DRAIN_SECONDS);
        while (seen.size() < count && System.nanoTime() < deadline) {
            receiving.join(20);
        }
        stop = true;
        receiving.join();
        consumer.close();
        return map("sent", sent, "got", got, "count", count);
    }

    private static double now() {
        return System.currentTimeMillis() / 1000.0;
    }

    /** Sends until told to end; notes number, when it was sent, when its receipt came, and its id. */
    private int send(Producer<byte[]> producer) throws Exception {
        Semaphore room = new Semaphore(IN_FLIGHT_MAX);
        int number = 0;
        int goal = Integer.MAX_VALUE;
        while (!scene.isTold("end")) {
            if (scene.isTold("more")) {
                goal = sent.size() + scene.number("more", 200);
            }
            if (sent.size() >= goal) {
                goal = Integer.MAX_VALUE;
                scene.tell("more", sent.size());
            }
            if (number - seen.size() > AHEAD_MAX || !room.tryAcquire(10, TimeUnit.MILLISECONDS)) {
                Thread.onSpinWait();
                continue;
            }
            int mine = number++;
            double began = now();
            producer.newMessage()
                    .key("k" + mine % 10)
                    .value(Integer.toString(mine).getBytes())
                    .sendAsync()
                    .whenComplete((id, error) -> {
                        if (error == null) {
                            sent.add(List.of(mine, began, now(), id.toString()));
                        } else {
                            System.err.println("not sent: " + mine + ": " + error);
                        }
                        room.release();
                    });
        }
        producer.flush();
        room.acquire(IN_FLIGHT_MAX);
        return number;
    }

    /** Notes number, id, when it came, and when the receipt of its acknowledgement came (0: never). */
    private void receive(Consumer<byte[]> consumer) {
        Semaphore acks = new Semaphore(ACKS_MAX);
        double last = 0;
        try {
            while (!stop) {
                Message<byte[]> message = consumer.receive(100, TimeUnit.MILLISECONDS);
                if (message == null) {
                    continue;
                }
                int number = Integer.parseInt(body(message));
                // each later than the one before, whatever the clock's steps: the judge sorts by it
                last = Math.max(now(), last + 1e-6);
                double came = last;
                seen.add(number);
                acks.acquire();
                consumer.acknowledgeAsync(message).whenComplete((done, error) -> {
                    got.add(List.of(number, message.getMessageId().toString(), came, error == null ? now() : 0.0));
                    acks.release();
                });
            }
            acks.acquire(ACKS_MAX);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
