package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.body;
import static magnetar.interop.Scene.drain;
import static magnetar.interop.Scene.leftovers;
import static magnetar.interop.Scene.map;
import static magnetar.interop.Scene.publish;
import static magnetar.interop.Scene.receive;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.ReaderBuilder;

/** Readers, table views, seeking, and the questions about where one is. */
final class Reading {
    static void register(Map<String, Family<Scene>> families) {
        families.put("read.from", Reading::from);
        families.put("read.time", Reading::time);
        families.put("read.seek", Reading::seek);
        families.put("read.table", Reading::table);
        families.put("read.last", Reading::last);
        families.put("read.consumer_seek", Reading::consumerSeek);
        families.put("read.empty", Reading::empty);
        families.put("read.expired", Reading::expired);
        families.put("read.retained", Reading::retained);
    }

    private static List<MessageId> fill(Scene scene, int count) throws Exception {
        scene.keepAll();
        try (var producer = (scene.flag("batched") ? scene.batching(10) : scene.producer()).create()) {
            return publish(producer, 0, count);
        }
    }

    private static ReaderBuilder<byte[]> reader(Scene scene) throws Exception {
        return scene.client().newReader().topic(scene.topic).startMessageId(MessageId.earliest);
    }

    /** Reads until the reader says that there is no more. */
    private static List<String> readAll(Reader<byte[]> reader) throws Exception {
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

    private static Object from(Scene scene) throws Exception {
        List<MessageId> ids = fill(scene, 50);
        var builder = reader(scene).receiverQueueSize(scene.number("queue", 1000));
        switch (scene.text("start", "earliest")) {
            case "earliest" -> builder.startMessageId(MessageId.earliest);
            case "latest" -> builder.startMessageId(MessageId.latest);
            default -> builder.startMessageId(ids.get(scene.number("start", 0)));
        }
        if (scene.flag("inclusive")) {
            builder.startMessageIdInclusive();
        }
        try (var reader = builder.create()) {
            return readAll(reader);
        }
    }

    /** From so long ago: what was published before does not come. */
    private static Object time(Scene scene) throws Exception {
        fill(scene, 10);
        long between = afterNow();
        try (var producer = scene.producer().create()) {
            publish(producer, 10, 5);
            while (System.currentTimeMillis() / 1000 == between / 1000) {
                Thread.onSpinWait(); // this start is in whole seconds
            }
            try (var all = reader(scene).startMessageFromRollbackDuration(1, TimeUnit.HOURS).create();
                    var reader = reader(scene).create()) {
                List<String> hour = readAll(all);
                reader.seek(between);
                return map("hour", hour, "since", readAll(reader));
            }
        }
    }

    /** A moment that is later than all that was published so far. */
    static long afterNow() {
        long now = System.currentTimeMillis();
        while (System.currentTimeMillis() <= now + 1) {
            Thread.onSpinWait();
        }
        return now + 1;
    }

    private static Object seek(Scene scene) throws Exception {
        List<MessageId> ids = fill(scene, 50);
        try (var reader = reader(scene).create()) {
            List<String> all = readAll(reader);
            reader.seek(ids.get(33));
            List<String> some = readAll(reader);
            reader.seek(MessageId.latest);
            List<String> none = readAll(reader);
            reader.seek(MessageId.earliest);
            return map("all", all, "some", some, "none", none, "again", readAll(reader).size());
        }
    }

    private static Object table(Scene scene) throws Exception {
        scene.keepAll();
        try (Producer<byte[]> producer = scene.producer().create()) {
            for (int number = 0; number < 30; number++) {
                producer.newMessage().key("k" + number % 3).value(("" + number).getBytes()).send();
            }
            try (var view = scene.client().newTableView().topic(scene.fullName()).create()) {
                Map<String, String> before = new HashMap<>();
                view.forEach((key, value) -> before.put(key, new String(value)));
                var changed = new LinkedBlockingQueue<String>();
                view.listen((key, value) -> changed.add(key + "=" + (value == null ? "gone" : new String(value))));
                producer.newMessage().key("k1").value("new".getBytes()).send();
                String told = changed.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
                producer.newMessage().key("k2").value(null).send();
                String gone = changed.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
                return map("before", before, "told", told, "gone", gone, "size", view.size());
            }
        }
    }

    private static Object last(Scene scene) throws Exception {
        MessageIdAdv sent = (MessageIdAdv) fill(scene, 20).get(19);
        try (var consumer = scene.consumer().subscribe()) {
            MessageIdAdv found = (MessageIdAdv) consumer.getLastMessageIds().get(0);
            return map(
                    "same", found.getLedgerId() == sent.getLedgerId() && found.getEntryId() == sent.getEntryId(),
                    "index", found.getBatchIndex());
        }
    }

    private static Object consumerSeek(Scene scene) throws Exception {
        var builder = scene.consumer(scene.type("Exclusive"));
        if (scene.flag("inclusive")) {
            builder.startMessageIdInclusive();
        }
        try (var consumer = builder.subscribe()) {
            List<MessageId> ids = fill(scene, 30);
            int all = drain(consumer, 30).size();
            consumer.seek(ids.get(14));
            List<String> rest = drain(consumer, scene.flag("inclusive") ? 16 : 15);
            long between = afterNow();
            try (var producer = scene.producer().create()) {
                publish(producer, 30, 5);
                drain(consumer, 5);
                consumer.seek(between);
                List<String> since = drain(consumer, 5);
                consumer.seek(MessageId.earliest);
                receive(consumer, 35);
                consumer.seek(MessageId.latest);
                return map("all", all, "rest", rest, "since", since, "left", leftovers(consumer, producer));
            }
        }
    }

    /** The test says when all that was published has expired. */
    private static Object expired(Scene scene) throws Exception {
        scene.consumer().subscribe().close();
        try (var producer = scene.producer().create()) {
            publish(producer, 0, 10);
            scene.tell("published", null);
            scene.await("expired");
            try (var consumer = scene.consumer().subscribe()) {
                return leftovers(consumer, producer);
            }
        }
    }

    private static Object retained(Scene scene) throws Exception {
        try (var consumer = scene.consumer().isAckReceiptEnabled(true).subscribe();
                var producer = scene.producer().create()) {
            publish(producer, 0, 20);
            drain(consumer, 20);
        }
        if (scene.flag("midway")) {
            scene.tell("midway", null);
            scene.await("on");
        }
        try (var reader = reader(scene).create()) {
            return readAll(reader);
        }
    }

    private static Object empty(Scene scene) throws Exception {
        try (var reader = reader(scene).create()) {
            boolean before = reader.hasMessageAvailable();
            try (var producer = scene.producer().create()) {
                producer.send("x".getBytes());
            }
            return List.of(before, reader.hasMessageAvailable());
        }
    }

    private Reading() {
    }
}
