package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.DEADLINE;
import static magnetar.interop.kafka.Scene.bytes;
import static magnetar.interop.kafka.Scene.errorOf;
import static magnetar.interop.kafka.Scene.get;
import static magnetar.interop.kafka.Scene.values;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import magnetar.interop.stage.Stage.Family;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Transactions of producers, alone and with the offsets of a group. */
final class Transactions {
    static void register(Map<String, Family<Scene>> families) {
        families.put("transactions.ends", Transactions::ends);
        families.put("transactions.fenced", Transactions::fenced);
        families.put("transactions.offsets", Transactions::offsets);
    }

    /** What is committed, aborted and still open, to both kinds of readers. */
    private static Object ends(Scene scene) throws Exception {
        try (var producer = scene.producer("transactional.id", scene.topic)) {
            producer.initTransactions();
            for (int number = 0; number < 4; number++) {
                producer.beginTransaction();
                get(producer.send(new ProducerRecord<>(scene.topic, bytes(number))));
                if (number == 1) {
                    producer.abortTransaction();
                } else if (number < 3) {
                    producer.commitTransaction();
                }
            }
            var read = List.of(
                    values(scene.everything(scene.topic, 0, "isolation.level", "read_uncommitted")),
                    values(scene.everything(scene.topic, 0, "isolation.level", "read_committed")));
            producer.abortTransaction();
            return read;
        }
    }

    private static Object fenced(Scene scene) throws Exception {
        try (var zombie = scene.producer("transactional.id", scene.topic);
                var heir = scene.producer("transactional.id", scene.topic)) {
            zombie.initTransactions();
            zombie.beginTransaction();
            get(zombie.send(new ProducerRecord<>(scene.topic, bytes("zombie"))));
            heir.initTransactions();
            String error = errorOf(zombie::commitTransaction);
            heir.beginTransaction();
            get(heir.send(new ProducerRecord<>(scene.topic, bytes("heir"))));
            heir.commitTransaction();
            return List.of(error, committed(scene));
        }
    }

    /** What is committed, once something is: a commit is answered before its markers are written. */
    private static List<String> committed(Scene scene) throws Exception {
        long deadline = System.nanoTime() + DEADLINE.toNanos();
        List<String> seen = List.of();
        while (seen.isEmpty() && System.nanoTime() < deadline) {
            seen = values(scene.everything(scene.topic, 0, "isolation.level", "read_committed"));
        }
        return seen;
    }

    /** A group's offsets after a commit, and after an abort. */
    private static Object offsets(Scene scene) throws Exception {
        TopicPartition one = new TopicPartition(scene.topic, 0);
        Object[] options = {"group.id", scene.topic, "group.protocol", scene.text("protocol", "classic")};
        List<Long> seen = new ArrayList<>();
        try (var plain = scene.producer();
                var consumer = scene.consumer(options);
                var producer = scene.producer("transactional.id", scene.topic)) {
            get(plain.send(new ProducerRecord<>(scene.topic, bytes("v"))));
            consumer.subscribe(List.of(scene.topic));
            while (consumer.poll(DEADLINE).isEmpty()) {
                continue;
            }
            producer.initTransactions();
            for (long offset = 1; offset < 4; offset++) {
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> said = new HashMap<>();
                said.put(one, new OffsetAndMetadata(offset));
                producer.sendOffsetsToTransaction(said, consumer.groupMetadata());
                if (offset == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                seen.add(consumer.committed(Set.of(one)).get(one).offset());
            }
        }
        return seen;
    }

    private Transactions() {
    }
}
