package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.drain;
import static magnetar.interop.Scene.errorOf;
import static magnetar.interop.Scene.map;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;

/** Who may write: the access modes of producers. */
final class Access {
    static void register(Map<String, Family<Scene>> families) {
        families.put("access.exclusive", Access::exclusive);
        families.put("access.queue", Access::queue);
        families.put("access.fencing", Access::fencing);
        families.put("access.create", Access::create);
        families.put("access.taken", Access::taken);
        families.put("access.expiring", Access::expiring);
    }

    private static Object exclusive(Scene scene) throws Exception {
        try (var holder = scene.producer().accessMode(ProducerAccessMode.Exclusive).create()) {
            String second = errorOf(
                    () -> scene.producer().accessMode(ProducerAccessMode.Exclusive).create());
            holder.send("mine".getBytes());
            return second;
        }
    }

    /** What the attempt to write ends with, as a policy may forbid it. */
    private static Object create(Scene scene) throws Exception {
        return errorOf(() -> scene.producer().create().close());
    }

    /** What a producer's message ends with after its right is taken, and what another attempt does. */
    private static Object taken(Scene scene) throws Exception {
        try (var producer = scene.producer().sendTimeout(3, TimeUnit.SECONDS).create()) {
            producer.send("while I may".getBytes());
            scene.tell("sent", null);
            scene.await("taken");
            return map(
                    "late", errorOf(() -> producer.send("too late".getBytes())),
                    "again", errorOf(() -> scene.producer().create().close()));
        }
    }

    /** How many messages are sent in so many milliseconds, in which the token expires. */
    private static Object expiring(Scene scene) throws Exception {
        long end = System.currentTimeMillis() + scene.number("milliseconds", 0);
        int sent = 0;
        try (var producer = scene.producer().create()) {
            scene.tell("attached", null);
            while (System.currentTimeMillis() < end) {
                producer.send("on and on".getBytes());
                sent++;
            }
            scene.tell("over", null);
            scene.await("looked");
        }
        return sent;
    }

    /** Four wait in line; one is let in whenever the one before it leaves. Who is first only the server knows. */
    private static Object queue(Scene scene) throws Exception {
        List<CompletableFuture<Producer<byte[]>>> line = new ArrayList<>();
        try (var consumer = scene.consumer().subscribe()) {
            List<Integer> early = new ArrayList<>();
            Producer<byte[]> holder = scene.producer()
                    .producerName("0")
                    .accessMode(ProducerAccessMode.WaitForExclusive)
                    .create();
            for (int number = 1; number <= 4; number++) {
                line.add(scene.producer()
                        .producerName(Integer.toString(number))
                        .accessMode(ProducerAccessMode.WaitForExclusive)
                        .createAsync());
            }
            holder.send("0".getBytes());
            while (!line.isEmpty()) {
                early.add((int) line.stream().filter(CompletableFuture::isDone).count());
                holder.close();
                CompletableFuture.anyOf(line.toArray(new CompletableFuture<?>[0]))
                        .get(DEADLINE_SECONDS, TimeUnit.SECONDS);
                var next = line.stream().filter(CompletableFuture::isDone).findFirst().orElseThrow();
                line.remove(next);
                holder = next.join();
                holder.send(holder.getProducerName().getBytes());
            }
            holder.close();
            return map("early", early, "bodies", drain(consumer, 5));
        }
    }

    private static Object fencing(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe();
                var old = scene.producer().accessMode(ProducerAccessMode.Exclusive).create()) {
            var waiting = scene.producer().accessMode(ProducerAccessMode.WaitForExclusive).createAsync();
            scene.tell("one waits", null);
            scene.await("it is in line");
            old.send("old".getBytes());
            try (var young = scene.producer().accessMode(ProducerAccessMode.ExclusiveWithFencing).create()) {
                young.send("new".getBytes());
                return map(
                        "waiting", errorOf(() -> waiting.get(DEADLINE_SECONDS, TimeUnit.SECONDS)),
                        "old", errorOf(() -> old.send("too late".getBytes())),
                        "bodies", drain(consumer, 2));
            }
        }
    }

    private Access() {
    }
}
