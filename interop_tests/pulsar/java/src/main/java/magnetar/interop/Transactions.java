package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
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
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Transactions: what is published and acknowledged in them. The client of the scene has them enabled. */
final class Transactions {
    static void register(Map<String, Family<Scene>> families) {
        families.put("transactions.publish", Transactions::published);
        families.put("transactions.acknowledge", Transactions::acknowledged);
        families.put("transactions.batch", Transactions::partOfBatch);
        families.put("transactions.cumulative", Transactions::cumulative);
        families.put("transactions.conflict", Transactions::conflict);
        families.put("transactions.timeout", Transactions::timeout);
        families.put("transactions.ended", Transactions::ended);
        families.put("transactions.process", Transactions::process);
        families.put("transactions.read", Transactions::read);
        families.put("transactions.open", Transactions::open);
    }

    private static Transaction begin(Scene scene, int seconds) throws Exception {
        return get(scene.client().newTransaction().withTransactionTimeout(seconds, TimeUnit.SECONDS).build());
    }

    private static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
    }

    /** Java's transactions want producers without a timeout. */
    private static Producer<byte[]> producer(Scene scene) throws Exception {
        ProducerBuilder<byte[]> builder = scene.flag("batched") ? scene.batching(3) : scene.producer();
        return builder.sendTimeout(0, TimeUnit.SECONDS).create();
    }

    private static void send(Producer<byte[]> producer, Transaction txn, int first, int count) throws Exception {
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int number = first; number < first + count; number++) {
            sent.add(producer.newMessage(txn).value(Integer.toString(number).getBytes()).sendAsync());
        }
        producer.flush();
        for (var each : sent) {
            get(each);
        }
    }

    private static void end(Transaction txn, boolean commit) throws Exception {
        get(commit ? txn.commit() : txn.abort());
    }

    /** Messages of a transaction, and one behind them that belongs to none: both wait for its end. */
    private static Object published(Scene scene) throws Exception {
        boolean commit = scene.flag("commit");
        try (var consumer = scene.consumer(scene.type("Exclusive")).subscribe(); var producer = producer(scene)) {
            Transaction txn = begin(scene, 60);
            send(producer, txn, 0, 3);
            Message<byte[]> early;
            try (var other = scene.producer().create()) {
                other.send("behind".getBytes());
                early = consumer.receive(300, TimeUnit.MILLISECONDS);
                end(txn, commit);
                List<String> found = drain(consumer, commit ? 4 : 1);
                return map("early", early == null, "found", found, "left", leftovers(consumer, other),
                        "state", txn.getState().name());
            }
        }
    }

    /** Every second message is acknowledged in a transaction; what comes again afterwards. */
    private static Object acknowledged(Scene scene) throws Exception {
        try (var producer = producer(scene); var plain = scene.producer().create()) {
            var consumer = scene.consumer(scene.type("Exclusive")).subscribe();
            publish(producer, 0, 6);
            Transaction txn = begin(scene, 60);
            List<Message<byte[]>> found = receive(consumer, 6);
            for (int at = 0; at < 6; at += 2) {
                get(consumer.acknowledgeAsync(found.get(at).getMessageId(), txn));
            }
            consumer.close();
            consumer = scene.consumer(scene.type("Exclusive")).subscribe();
            List<String> meanwhile = new ArrayList<>();
            List<Message<byte[]>> others = receive(consumer, 3);
            others.forEach(each -> meanwhile.add(body(each)));
            boolean commit = scene.flag("commit");
            end(txn, commit);
            if (!commit) {
                consumer.close();
                consumer = scene.consumer(scene.type("Exclusive")).subscribe();
                List<String> again = drain(consumer, 6);
                again.sort(null);
                return map("meanwhile", meanwhile, "again", again, "left", leftovers(consumer, plain));
            }
            for (var each : others) {
                consumer.acknowledge(each);
            }
            consumer.close();
            consumer = scene.consumer(scene.type("Exclusive")).subscribe();
            return map("meanwhile", meanwhile, "left", leftovers(consumer, plain));
        }
    }

    /** Messages of one batch in two transactions, one of which is given up. */
    private static Object partOfBatch(Scene scene) throws Exception {
        try (var producer = scene.batching(4).sendTimeout(0, TimeUnit.SECONDS).create()) {
            var consumer = indexed(scene);
            publish(producer, 0, 4);
            List<Message<byte[]>> found = receive(consumer, 4);
            Transaction kept = begin(scene, 60);
            Transaction lost = begin(scene, 60);
            get(consumer.acknowledgeAsync(found.get(0).getMessageId(), kept));
            get(consumer.acknowledgeAsync(found.get(1).getMessageId(), lost));
            get(consumer.acknowledgeAsync(found.get(3).getMessageId(), kept));
            Transaction third = begin(scene, 60);
            String taken = Scene.errorOf(() -> get(consumer.acknowledgeAsync(found.get(1).getMessageId(), third)));
            end(third, false);
            end(kept, true);
            end(lost, false);
            consumer.close();
            var again = indexed(scene);
            List<String> left = drain(again, 2);
            again.close();
            return map("taken", taken, "again", left);
        }
    }

    private static Consumer<byte[]> indexed(Scene scene) throws Exception {
        return scene.consumer(scene.type("Shared")).enableBatchIndexAcknowledgment(true).subscribe();
    }

    private static Object cumulative(Scene scene) throws Exception {
        try (var producer = producer(scene)) {
            var consumer = scene.consumer().subscribe();
            publish(producer, 0, 6);
            List<Message<byte[]>> found = receive(consumer, 6);
            Transaction first = begin(scene, 60);
            get(consumer.acknowledgeCumulativeAsync(found.get(2).getMessageId(), first));
            Transaction second = begin(scene, 60);
            String taken = Scene.errorOf(
                    () -> get(consumer.acknowledgeCumulativeAsync(found.get(4).getMessageId(), second)));
            end(first, false);
            List<String> again = bodies(receive(consumer, 6));
            Transaction third = begin(scene, 60);
            get(consumer.acknowledgeCumulativeAsync(found.get(3).getMessageId(), third));
            end(third, true);
            end(second, false);
            consumer.close();
            try (var last = scene.consumer().subscribe()) {
                return map("taken", taken, "again", again, "left", drain(last, 2));
            }
        }
    }

    private static Object conflict(Scene scene) throws Exception {
        try (var producer = producer(scene); var consumer = scene.consumer(scene.type("Shared")).subscribe()) {
            publish(producer, 0, 1);
            MessageId id = receive(consumer, 1).get(0).getMessageId();
            Transaction first = begin(scene, 60);
            Transaction second = begin(scene, 60);
            get(consumer.acknowledgeAsync(id, first));
            String open = Scene.errorOf(() -> get(consumer.acknowledgeAsync(id, second)));
            end(first, true);
            Transaction third = begin(scene, 60);
            String over = Scene.errorOf(() -> get(consumer.acknowledgeAsync(id, third)));
            return map("open", open, "over", over);
        }
    }

    /** A transaction that its client forgets is aborted, and the message comes again. */
    private static Object timeout(Scene scene) throws Exception {
        try (var producer = producer(scene); var consumer = scene.consumer(scene.type("Shared")).subscribe()) {
            publish(producer, 0, 1);
            MessageId id = receive(consumer, 1).get(0).getMessageId();
            Transaction txn = begin(scene, 1);
            get(consumer.acknowledgeAsync(id, txn));
            send(producer, txn, 1, 1);
            List<String> again = drain(consumer, 1);
            String late = Scene.errorOf(() -> end(txn, true));
            return map("again", again, "late", late, "left", leftovers(consumer, producer));
        }
    }

    /** What a client gets that goes on with a transaction after its end, and an empty one. */
    private static Object ended(Scene scene) throws Exception {
        try (var producer = producer(scene)) {
            Transaction txn = begin(scene, 60);
            end(txn, true);
            String again = Scene.errorOf(() -> end(txn, true));
            String send = Scene.errorOf(() -> send(producer, txn, 0, 1));
            Transaction other = begin(scene, 60);
            end(other, false);
            return map("again", again, "send", send, "rises",
                    other.getTxnID().getLeastSigBits() != txn.getTxnID().getLeastSigBits());
        }
    }

    /** From one topic to another, which may have partitions, in transactions of which some are given up. */
    private static Object process(Scene scene) throws Exception {
        String target = scene.text("to", "");
        int count = scene.number("count", 20);
        try (var source = scene.producer().create();
                var consumer = scene.consumer(scene.type("Shared")).subscribe();
                var sink = scene.client().newProducer().topic(target)
                        .sendTimeout(0, TimeUnit.SECONDS).enableBatching(scene.flag("batched")).create();
                var reader = scene.client().newConsumer().topic(target).subscriptionName("t").subscribe()) {
            publish(source, 0, count);
            int done = 0;
            for (int turn = 0; done < count; turn++) {
                Message<byte[]> message = receive(consumer, 1).get(0);
                Transaction txn = begin(scene, 60);
                var sent = sink.newMessage(txn).value(message.getData()).sendAsync();
                get(consumer.acknowledgeAsync(message.getMessageId(), txn));
                get(sent);
                boolean commit = turn % 3 != 2;
                end(txn, commit);
                done += commit ? 1 : 0;
            }
            List<String> found = drain(reader, count);
            found.sort((left, right) -> Integer.parseInt(left) - Integer.parseInt(right));
            Message<byte[]> more = reader.receive(200, TimeUnit.MILLISECONDS);
            return map("found", found, "more", more != null, "left", leftovers(consumer, source));
        }
    }

    /** A reader sees the end of the topic where the open transaction begins. */
    private static Object read(Scene scene) throws Exception {
        try (var producer = producer(scene);
                var reader = scene.client().newReader().topic(scene.topic).startMessageId(MessageId.earliest).create()) {
            publish(producer, 0, 1);
            List<Boolean> available = new ArrayList<>();
            List<String> found = new ArrayList<>();
            available.add(reader.hasMessageAvailable());
            found.add(body(reader.readNext(DEADLINE_SECONDS, TimeUnit.SECONDS)));
            Transaction txn = begin(scene, 60);
            send(producer, txn, 1, 1);
            available.add(reader.hasMessageAvailable());
            end(txn, true);
            available.add(reader.hasMessageAvailable());
            found.add(body(reader.readNext(DEADLINE_SECONDS, TimeUnit.SECONDS)));
            Transaction lost = begin(scene, 60);
            send(producer, lost, 2, 1);
            end(lost, false);
            available.add(reader.hasMessageAvailable());
            return map("available", available, "found", found);
        }
    }

    /** Leaves a transaction open with messages, and tells its id, until the test says to end it. */
    private static Object open(Scene scene) throws Exception {
        Transaction txn = begin(scene, 60);
        try (var producer = producer(scene)) {
            send(producer, txn, scene.number("first", 0), scene.number("count", 3));
        }
        scene.tell("open", List.of(txn.getTxnID().getMostSigBits(), txn.getTxnID().getLeastSigBits()));
        scene.await("end");
        end(txn, scene.flag("commit"));
        return true;
    }

    private Transactions() {
    }
}
