package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.map;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.ReaderBuilder;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** Compacted topics: consumers, readers and table views that ask for the last values. */
final class Compacting {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final int KEYS = 7;

    static void register(Map<String, Family<Scene>> families) {
        families.put("compact.read", Compacting::read);
        families.put("compact.meanwhile", Compacting::meanwhile);
    }

    // -- words

    private static String ask(Scene scene, String method, String path) throws Exception {
        var uri = URI.create(scene.text("http", "") + "/admin/v2/persistent/public/default/" + scene.topic + path);
        var request = HttpRequest.newBuilder(uri).method(method, HttpRequest.BodyPublishers.noBody()).build();
        var response = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() >= 300) {
            throw new IllegalStateException(method + " " + path + ": " + response.statusCode() + response.body());
        }
        return response.body();
    }

    private static void compact(Scene scene) throws Exception {
        ask(scene, "PUT", "/compaction");
        String last = ask(scene, "GET", "/compaction");
        while (last.contains("RUNNING")) {
            Thread.sleep(20);
            last = ask(scene, "GET", "/compaction");
        }
        if (!last.contains("SUCCESS")) {
            throw new IllegalStateException(last);
        }
    }

    /** Numbers as values of keys in turn; then one key is deleted. The last id of each key. */
    private static Map<String, MessageId> fill(Scene scene, Producer<byte[]> producer, int count) throws Exception {
        Map<String, CompletableFuture<MessageId>> sent = new LinkedHashMap<>();
        for (int number = 0; number < count; number++) {
            String key = "k" + number % KEYS;
            sent.remove(key);
            sent.put(key, producer.newMessage().key(key).value(("" + number).getBytes()).sendAsync());
        }
        producer.newMessage().value("without a key".getBytes()).sendAsync();
        var end = producer.newMessage().key("k3").value(null).sendAsync();
        producer.flush();
        end.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
        sent.remove("k3");
        Map<String, MessageId> ids = new LinkedHashMap<>();
        for (var each : sent.entrySet()) {
            ids.put(each.getKey(), each.getValue().get(DEADLINE_SECONDS, TimeUnit.SECONDS));
        }
        return ids;
    }

    private static String told(Message<byte[]> message) {
        return message.getKey() + "=" + (message.getValue() == null ? "gone" : new String(message.getData()));
    }

    private static ReaderBuilder<byte[]> reader(Scene scene) throws Exception {
        return scene.client().newReader().topic(scene.topic).readCompacted(true).startMessageId(MessageId.earliest);
    }

    private static List<Message<byte[]>> readAll(Reader<byte[]> reader) throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        while (reader.hasMessageAvailable()) {
            Message<byte[]> message = reader.readNext(DEADLINE_SECONDS, TimeUnit.SECONDS);
            if (message == null) {
                throw new TimeoutException("read " + found + " and then nothing");
            }
            found.add(message);
        }
        return found;
    }

    private static List<String> texts(List<Message<byte[]>> messages) {
        return messages.stream().map(Compacting::told).toList();
    }

    private static boolean same(MessageId one, MessageId other) {
        MessageIdAdv a = (MessageIdAdv) one;
        MessageIdAdv b = (MessageIdAdv) other;
        return a.getLedgerId() == b.getLedgerId() && a.getEntryId() == b.getEntryId()
                && a.getBatchIndex() == b.getBatchIndex();
    }

    private static Consumer<byte[]> consumer(Scene scene, SubscriptionType type, String name) throws Exception {
        return scene.consumer(type)
                .subscriptionName(name)
                .readCompacted(true)
                .enableBatchIndexAcknowledgment(true)
                .isAckReceiptEnabled(true)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .subscribe();
    }

    // -- scenes

    private static Object read(Scene scene) throws Exception {
        scene.keepAll();
        var codec = CompressionType.valueOf(scene.text("codec", "NONE"));
        try (var producer = (scene.flag("batched") ? scene.batching(10) : scene.producer())
                .compressionType(codec).create()) {
            Map<String, MessageId> ids = fill(scene, producer, 60);
            compact(scene);
            if (scene.flag("trimmed")) {
                ask(scene, "DELETE", "/truncate");
            }
            List<Message<byte[]>> found;
            List<String> sought;
            boolean last;
            try (var reader = reader(scene).create()) {
                found = readAll(reader);
                reader.seek(ids.get("k0"));
                sought = texts(readAll(reader));
                reader.seek(MessageId.earliest);
                last = readAll(reader).size() == found.size() && !reader.hasMessageAvailable();
            }
            List<String> inclusive;
            try (var reader = reader(scene).startMessageId(ids.get("k0")).startMessageIdInclusive().create()) {
                inclusive = texts(readAll(reader));
            }
            boolean original = found.stream().allMatch(one -> same(one.getMessageId(), ids.get(one.getKey())));
            List<String> consumed = new ArrayList<>();
            for (var type : List.of(SubscriptionType.Exclusive, SubscriptionType.Failover)) {
                try (var consumer = consumer(scene, type, type.name())) {
                    List<Message<byte[]>> got = Scene.receive(consumer, found.size());
                    consumed.addAll(texts(got));
                    for (var message : got) {
                        consumer.acknowledge(message);
                    }
                }
            }
            Map<String, String> table = new TreeMap<>();
            try (var view = scene.client().newTableView().topic(scene.fullName()).create()) {
                view.forEach((key, value) -> table.put(key, new String(value)));
            }
            producer.newMessage().key("k9").value("new".getBytes()).send();
            List<String> again = new ArrayList<>();
            for (var type : List.of(SubscriptionType.Exclusive, SubscriptionType.Failover)) {
                try (var consumer = consumer(scene, type, type.name())) {
                    again.add(told(Scene.receive(consumer, 1).get(0)));
                }
            }
            return map("found", texts(found), "sought", sought, "inclusive", inclusive, "original", original,
                    "last", last, "consumed", consumed, "table", table, "again", again);
        }
    }

    /** Compacts again and again while messages are published; what readers and a table view have then. */
    private static Object meanwhile(Scene scene) throws Exception {
        scene.keepAll();
        int count = scene.number("count", 2_000);
        try (var producer = scene.batching(20).batchingMaxPublishDelay(1, TimeUnit.MILLISECONDS).create();
                var view = scene.client().newTableView().topic(scene.fullName()).create()) {
            var sent = CompletableFuture.runAsync(() -> {
                for (int number = 0; number < count; number++) {
                    String key = "k" + number % 50;
                    var message = producer.newMessage().key(key);
                    message.value(number % 50 == 49 ? null : ("" + number).getBytes()).sendAsync();
                }
            });
            int compactions = 0;
            while (!sent.isDone() || compactions < 3) {
                compact(scene);
                compactions++;
            }
            sent.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
            producer.flush();
            Map<String, String> expected = new HashMap<>();
            for (int number = count - 50; number < count; number++) {
                if (number % 50 != 49) {
                    expected.put("k" + number % 50, "" + number);
                }
            }
            Map<String, String> before = last(scene);
            compact(scene);
            Map<String, String> after = last(scene);
            var seen = new LinkedBlockingQueue<String>();
            view.listen((key, value) -> seen.add(key));
            producer.newMessage().key("end").value("1".getBytes()).send();
            while (!"end".equals(seen.poll(DEADLINE_SECONDS, TimeUnit.SECONDS))) {
                Thread.onSpinWait();
            }
            Map<String, String> table = new HashMap<>();
            view.forEach((key, value) -> table.put(key, new String(value)));
            table.remove("end");
            return map("before", before.equals(expected), "after", after.equals(expected),
                    "table", table.equals(expected), "keys", expected.size());
        }
    }

    private static Map<String, String> last(Scene scene) throws Exception {
        Map<String, String> found = new HashMap<>();
        try (var reader = reader(scene).create()) {
            for (var message : readAll(reader)) {
                if (message.getValue() == null || message.getValue().length == 0) {
                    found.remove(message.getKey());
                } else {
                    found.put(message.getKey(), new String(message.getValue()));
                }
            }
        }
        return found;
    }

    private Compacting() {
    }
}
