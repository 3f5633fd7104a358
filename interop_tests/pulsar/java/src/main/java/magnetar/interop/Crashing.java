package magnetar.interop;

import static magnetar.interop.Scene.body;
import static magnetar.interop.Scene.map;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;

/**
 * Work that goes on while the test stops, kills and starts the server: a producer and a consumer that note
 * what they did and when. The test tells when to end, and judges the notes.
 */
final class Crashing {
    private static final int IN_FLIGHT_MAX = 200;

    static void register(Map<String, Main.Family> families) {
        families.put("crash.work", Crashing::work);
    }

    private static Object work(Scene scene) throws Exception {
        Consumer<byte[]> consumer = scene.consumer(scene.type("Shared"))
                .isAckReceiptEnabled(true)
                .subscribe();
        Producer<byte[]> producer = (scene.flag("batched")
                        ? scene.producer().enableBatching(true).batchingMaxMessages(20)
                        : scene.producer())
                .sendTimeout(0, TimeUnit.SECONDS)
                .create();
        List<List<Object>> sent = Collections.synchronizedList(new ArrayList<>());
        List<List<Object>> got = Collections.synchronizedList(new ArrayList<>());
        AtomicBoolean stop = new AtomicBoolean();
        Thread receiving = new Thread(() -> receive(consumer, got, stop));
        receiving.start();
        int count = send(scene, producer, sent);
        producer.close();
        scene.tell("sent", count);
        scene.await("drained");
        stop.set(true);
        receiving.join();
        consumer.close();
        return map("sent", sent, "got", got);
    }

    private static double now() {
        return System.currentTimeMillis() / 1000.0;
    }

    /** Sends until told to end; notes number, when it was sent, when its receipt came, and its id. */
    private static int send(Scene scene, Producer<byte[]> producer, List<List<Object>> sent) throws Exception {
        Semaphore room = new Semaphore(IN_FLIGHT_MAX);
        int number = 0;
        while (!scene.isTold("end")) {
            room.acquire();
            int mine = number++;
            double began = now();
            producer.newMessage()
                    .key("k" + mine % 10)
                    .value(Integer.toString(mine).getBytes())
                    .sendAsync()
                    .whenComplete((id, error) -> {
                        if (error == null) {
                            sent.add(List.of(mine, began, now(), id.toString()));
                        }
                        room.release();
                    });
            if (mine == scene.number("mark", 500)) {
                scene.tell("under way", null);
            }
        }
        producer.flush();
        room.acquire(IN_FLIGHT_MAX);
        return number;
    }

    /** Notes number, id, when it came, and when the receipt of its acknowledgement came (0: none yet). */
    private static void receive(Consumer<byte[]> consumer, List<List<Object>> got, AtomicBoolean stop) {
        Semaphore acks = new Semaphore(1_000);
        try {
            while (!stop.get()) {
                Message<byte[]> message = consumer.receive(200, TimeUnit.MILLISECONDS);
                if (message == null) {
                    continue;
                }
                int number = Integer.parseInt(body(message));
                double came = now();
                acks.acquire();
                consumer.acknowledgeAsync(message).whenComplete((done, error) -> {
                    got.add(List.of(number, message.getMessageId().toString(), came, error == null ? now() : 0.0));
                    acks.release();
                });
            }
            acks.acquire(1_000);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private Crashing() {
    }
}
