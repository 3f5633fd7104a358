package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.bodies;
import static magnetar.interop.Scene.drain;
import static magnetar.interop.Scene.errorOf;
import static magnetar.interop.Scene.leftovers;
import static magnetar.interop.Scene.map;
import static magnetar.interop.Scene.publish;
import static magnetar.interop.Scene.receive;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Stage.Family;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/** Publishing in every way the client has, and what arrives. */
final class Publishing {
    static void register(Map<String, Family<Scene>> families) {
        families.put("publish.sync", Publishing::sync);
        families.put("publish.async", Publishing::async);
        families.put("publish.carries", Publishing::carries);
        families.put("publish.compressed", Publishing::compressed);
        families.put("publish.chunks", Publishing::chunks);
        families.put("publish.encrypted", Publishing::encrypted);
        families.put("publish.too_big", Publishing::tooBig);
        families.put("publish.largest", Publishing::largest);
        families.put("publish.later", Publishing::later);
        families.put("publish.records", Publishing::records);
        families.put("publish.nothing", Publishing::nothing);
        families.put("publish.volatile", Publishing::unstored);
    }

    private static Object sync(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe();
                var producer = scene.producer().create()) {
            List<String> sent = new ArrayList<>();
            for (int number = 0; number < 20; number++) {
                sent.add(producer.send(Integer.toString(number).getBytes()).toString());
            }
            List<Message<byte[]>> messages = receive(consumer, 20);
            return map(
                    "sent", sent,
                    "ids", messages.stream().map(each -> each.getMessageId().toString()).toList(),
                    "bodies", bodies(messages));
        }
    }

    private static Object async(Scene scene) throws Exception {
        int count = scene.number("count", 5_000);
        var builder = scene.flag("batched")
                ? scene.producer().enableBatching(true).batchingMaxMessages(100)
                : scene.producer();
        try (var consumer = scene.consumer().subscribe(); var producer = builder.create()) {
            List<MessageId> ids = publish(producer, 0, count);
            boolean rising = true;
            for (int at = 1; at < count; at++) {
                rising &= ids.get(at - 1).compareTo(ids.get(at)) < 0;
            }
            return map("rising", rising, "bodies", drain(consumer, count));
        }
    }

    private static Object carries(Scene scene) throws Exception {
        var builder = scene.flag("batched") ? scene.batching(2) : scene.producer();
        try (var consumer = scene.consumer().subscribe();
                var producer = builder.producerName(scene.topic + "-sender").create()) {
            TypedMessageBuilder<byte[]> message = producer.newMessage()
                    .value("body".getBytes())
                    .key("the key")
                    .orderingKey("the order".getBytes())
                    .property("one", "1")
                    .property("zwei", "ü")
                    .eventTime(1_234_567)
                    .sequenceId(41);
            var sent = message.sendAsync();
            producer.newMessage().keyBytes(new byte[] {0, (byte) 0xff}).value(new byte[0]).sendAsync();
            producer.flush();
            sent.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
            List<Message<byte[]>> got = receive(consumer, 2);
            Message<byte[]> first = got.get(0);
            return map(
                    "key", first.getKey(),
                    "ordering_key", new String(first.getOrderingKey()),
                    "properties", first.getProperties(),
                    "event_time", first.getEventTime(),
                    "sequence", first.getSequenceId(),
                    "producer", first.getProducerName(),
                    "topic", first.getTopicName(),
                    "bytes_key", Arrays.equals(got.get(1).getKeyBytes(), new byte[] {0, (byte) 0xff}),
                    "empty", got.get(1).size() == 0);
        }
    }

    private static Object compressed(Scene scene) throws Exception {
        var builder = scene.flag("batched") ? scene.batching(50) : scene.producer();
        builder.compressionType(CompressionType.valueOf(scene.text("codec", "NONE")));
        try (var consumer = scene.consumer().subscribe(); var producer = builder.create()) {
            List<String> sent = new ArrayList<>();
            for (int number = 0; number < 50; number++) {
                sent.add((number + " ").repeat(500));
                producer.sendAsync(sent.get(number).getBytes());
            }
            producer.flush();
            return sent.equals(drain(consumer, 50));
        }
    }

    /** Large messages of two producers at once, for several consumers if the type allows. */
    private static Object chunks(Scene scene) throws Exception {
        byte[] large = new byte[34 * 1024 * 1024];
        new Random(1).nextBytes(large);
        SubscriptionType type = scene.type("Exclusive");
        var one = scene.consumer(type).subscribe();
        var two = type == SubscriptionType.Shared ? scene.consumer(type).subscribe() : null;
        try (var producer = scene.producer().enableChunking(true).create();
                var other = scene.producer().enableChunking(true).create()) {
            var first = producer.sendAsync(large);
            var second = other.sendAsync(large);
            first.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
            second.get(DEADLINE_SECONDS, TimeUnit.SECONDS);
            int whole = 0;
            for (int attempt = 0; attempt < 200 && whole < 2; attempt++) {
                for (var consumer : two == null ? List.of(one) : List.of(one, two)) {
                    Message<byte[]> message = consumer.receive(100, TimeUnit.MILLISECONDS);
                    if (message != null) {
                        whole += Arrays.equals(message.getData(), large) ? 1 : 100;
                        consumer.acknowledge(message);
                    }
                }
            }
            one.close();
            if (two != null) {
                two.close();
            }
            try (var again = scene.consumer(type).subscribe(); var small = scene.producer().create()) {
                return map("whole", whole, "left", leftovers(again, small));
            }
        }
    }

    static CryptoKeyReader keys(Scene scene) {
        return new CryptoKeyReader() {
            @Override
            public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
                return new EncryptionKeyInfo(scene.text("public", "").getBytes(), null);
            }

            @Override
            public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
                return new EncryptionKeyInfo(scene.text("private", "").getBytes(), null);
            }
        };
    }

    private static Object encrypted(Scene scene) throws Exception {
        CryptoKeyReader keys = keys(scene);
        var builder = scene.flag("batched") ? scene.batching(10) : scene.producer();
        builder.addEncryptionKey("mine").cryptoKeyReader(keys).compressionType(CompressionType.LZ4);
        try (var consumer = scene.consumer().cryptoKeyReader(keys).subscribe();
                var producer = builder.create()) {
            publish(producer, 0, 10);
            return drain(consumer, 10);
        }
    }

    private static Object tooBig(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe(); var producer = scene.producer().create()) {
            String error = errorOf(() -> producer.send(new byte[17 * 1024 * 1024]));
            return map("error", error, "left", leftovers(consumer, producer));
        }
    }

    /** The limit is for metadata and payload together. */
    private static Object largest(Scene scene) throws Exception {
        byte[] body = new byte[16 * 1024 * 1024 - 1024];
        new Random(3).nextBytes(body);
        try (var consumer = scene.consumer().subscribe(); var producer = scene.producer().create()) {
            producer.send(body);
            return Arrays.equals(receive(consumer, 1).get(0).getData(), body);
        }
    }

    private static Object later(Scene scene) throws Exception {
        try (var consumer = scene.consumer(SubscriptionType.Shared).subscribe();
                var producer = scene.producer().create()) {
            long began = System.nanoTime();
            producer.newMessage().value("late".getBytes()).deliverAfter(1500, TimeUnit.MILLISECONDS).send();
            producer.send("now".getBytes());
            List<String> got = drain(consumer, 2);
            return map("bodies", got, "waited_ms", (System.nanoTime() - began) / 1_000_000);
        }
    }

    public static final class Order {
        public int number;
        public String article;
    }

    /** Schemas are taken as they are declared. */
    private static Object records(Scene scene) throws Exception {
        Schema<Order> schema = scene.flag("avro") ? Schema.AVRO(Order.class) : Schema.JSON(Order.class);
        try (var consumer = scene.client().newConsumer(schema).topic(scene.topic).subscriptionName("s").subscribe();
                var producer = scene.client().newProducer(schema).topic(scene.topic).create()) {
            Order order = new Order();
            order.number = 7;
            order.article = "lamp";
            producer.send(order);
            Order got = consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS).getValue();
            return got.number + " " + got.article;
        }
    }

    /** A null value is not an empty one. */
    private static Object nothing(Scene scene) throws Exception {
        try (var consumer = scene.consumer().subscribe(); var producer = scene.producer().create()) {
            producer.newMessage().key("k").value(null).send();
            producer.newMessage().key("k").value(new byte[0]).send();
            List<Message<byte[]>> got = receive(consumer, 2);
            return List.of(got.get(0).getValue() == null, got.get(1).getValue() == null);
        }
    }

    private static Object unstored(Scene scene) throws Exception {
        String name = "non-persistent://public/default/" + scene.topic;
        try (var consumer = scene.client().newConsumer().topic(name).subscriptionName("s").subscribe();
                var producer = scene.producer().topic(name).create()) {
            publish(producer, 0, 10);
            return drain(consumer, 10);
        }
    }

    private Publishing() {
    }
}
