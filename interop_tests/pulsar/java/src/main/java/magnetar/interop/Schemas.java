package magnetar.interop;

import static magnetar.interop.Scene.DEADLINE_SECONDS;
import static magnetar.interop.Scene.errorOf;
import static magnetar.interop.Scene.map;

import com.google.gson.JsonElement;
import com.google.protobuf.Duration;
import com.google.protobuf.Timestamp;
import java.sql.Time;
import java.time.Instant;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Stage.Family;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;
import org.apache.avro.SchemaValidatorBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;
import org.apache.pulsar.client.api.schema.SchemaDefinition;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;
import org.apache.pulsar.common.schema.SchemaInfo;

/** Schemas of every kind with a real registry, and the verdicts of Avro's own judges. */
final class Schemas {
    static void register(Map<String, Family<Scene>> families) {
        families.put("schemas.verdicts", Schemas::verdicts);
        families.put("schemas.kinds", Schemas::kinds);
        families.put("schemas.primitives", Schemas::primitives);
        families.put("schemas.pairs", Schemas::pairs);
        families.put("schemas.evolution", Schemas::evolution);
        families.put("schemas.automatic", Schemas::automatic);
    }

    /** For each pair of a writer's and a reader's definition what Avro says of it, a letter each. */
    private static Object verdicts(Scene scene) {
        List<String> found = new ArrayList<>();
        for (JsonElement pair : scene.pairs()) {
            String writer = pair.getAsJsonArray().get(0).getAsString();
            String reader = pair.getAsJsonArray().get(1).getAsString();
            found.add(verdict(writer, reader));
        }
        return found;
    }

    private static String verdict(String writing, String reading) {
        org.apache.avro.Schema writer;
        org.apache.avro.Schema reader;
        try {
            writer = parsed(writing);
            reader = parsed(reading);
        } catch (Exception error) {
            return "unreadable";
        }
        String read = "read";
        try {
            new SchemaValidatorBuilder().canReadStrategy().validateLatest().validate(reader, List.of(writer));
        } catch (Exception error) {
            read = "not read";
        }
        String compatible = "compatible";
        try {
            var judged = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer);
            if (judged.getType() != SchemaCompatibilityType.COMPATIBLE) {
                compatible = "incompatible";
            }
        } catch (Exception error) {
            compatible = "incompatible";
        }
        return read + ", " + compatible + ", " + (writer.equals(reader) ? "same" : "other");
    }

    private static org.apache.avro.Schema parsed(String definition) {
        var parser = new org.apache.avro.Schema.Parser();
        parser.setValidateDefaults(false);
        return parser.parse(definition);
    }

    // -- kinds

    static final class Lamp {
        public String name;
        public int watts;

        Lamp() {
        }

        Lamp(String name, int watts) {
            this.name = name;
            this.watts = watts;
        }

        @Override
        public String toString() {
            return name + " " + watts;
        }
    }

    /** A value of each kind through a topic of its own, and the version that it came with. */
    private static Object kinds(Scene scene) throws Exception {
        var seconds = Timestamp.newBuilder().setSeconds(7).build();
        return map(
                "string", one(scene, "string", Schema.STRING, "grün"),
                "int64", one(scene, "int64", Schema.INT64, 7L),
                "json", one(scene, "json", Schema.JSON(Lamp.class), new Lamp("desk", 40)),
                "avro", one(scene, "avro", Schema.AVRO(Lamp.class), new Lamp("desk", 40)),
                "protobuf", one(scene, "protobuf", Schema.PROTOBUF_NATIVE(Timestamp.class), seconds),
                "protobuf by Avro", one(scene, "by-avro", Schema.PROTOBUF(Timestamp.class), seconds),
                "pair", one(scene, "pair",
                        Schema.KeyValue(Schema.STRING, Schema.AVRO(Lamp.class), KeyValueEncodingType.INLINE),
                        new KeyValue<>("k", new Lamp("desk", 40))),
                "separate", one(scene, "separate",
                        Schema.KeyValue(Schema.INT32, Schema.JSON(Lamp.class), KeyValueEncodingType.SEPARATED),
                        new KeyValue<>(7, new Lamp("desk", 40))),
                "other protobuf", errorOf(() -> scene.client()
                        .newProducer(Schema.PROTOBUF_NATIVE(Duration.class))
                        .topic(scene.topic + "-protobuf").create().close()),
                "other kind", errorOf(() -> scene.client()
                        .newProducer(Schema.STRING).topic(scene.topic + "-int64").create().close()));
    }

    /** Of each kind what its own consumer says of a value, and one that asks what there is. */
    private static Object primitives(Scene scene) throws Exception {
        Instant now = Instant.ofEpochSecond(1_700_000_000, 123_456_789);
        LocalDateTime local = LocalDateTime.of(2024, 2, 29, 23, 59, 58, 7);
        Map<String, Object> found = new TreeMap<>();
        primitive(scene, found, Schema.BOOL, true);
        primitive(scene, found, Schema.INT8, (byte) -8);
        primitive(scene, found, Schema.INT16, (short) -16);
        primitive(scene, found, Schema.INT32, Integer.MIN_VALUE);
        primitive(scene, found, Schema.INT64, Long.MIN_VALUE);
        primitive(scene, found, Schema.FLOAT, 0.1f);
        primitive(scene, found, Schema.DOUBLE, Double.NaN);
        primitive(scene, found, Schema.STRING, "");
        primitive(scene, found, Schema.DATE, new Date(1_700_000_000_123L));
        primitive(scene, found, Schema.TIME, new Time(86_399_000L));
        primitive(scene, found, Schema.TIMESTAMP, new java.sql.Timestamp(1_700_000_000_123L));
        primitive(scene, found, Schema.INSTANT, now);
        primitive(scene, found, Schema.LOCAL_DATE, local.toLocalDate());
        primitive(scene, found, Schema.LOCAL_TIME, local.toLocalTime());
        primitive(scene, found, Schema.LOCAL_DATE_TIME, local);
        return found;
    }

    private static <T> void primitive(Scene scene, Map<String, Object> found, Schema<T> schema, T value)
            throws Exception {
        String kind = schema.getSchemaInfo().getType().name();
        String topic = scene.topic + "-" + kind;
        try (var consumer = scene.client().newConsumer(schema).topic(topic).subscriptionName("s").subscribe();
                var producer = scene.client().newProducer(schema).topic(topic).create();
                var asking = scene.client().newConsumer(Schema.AUTO_CONSUME())
                        .topic(topic).subscriptionName("asking").subscribe()) {
            producer.send(value);
            Message<T> got = consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS);
            Message<GenericRecord> asked = asking.receive(DEADLINE_SECONDS, TimeUnit.SECONDS);
            GenericRecord record = asked.getValue();
            found.put(kind, List.of(
                    value.equals(got.getValue()), version(got),
                    record.getSchemaType().name(), value.equals(record.getNativeObject())));
        }
    }

    private static <T> String one(Scene scene, String kind, Schema<T> schema, T value) throws Exception {
        String topic = scene.topic + "-" + kind;
        try (var consumer = scene.client().newConsumer(schema).topic(topic).subscriptionName("s").subscribe();
                var producer = scene.client().newProducer(schema).topic(topic).create()) {
            producer.send(value);
            Message<T> got = consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS);
            T read = got.getValue();
            String text = read instanceof KeyValue<?, ?> pair ? pair.getKey() + "=" + pair.getValue() : shown(read);
            return text + " at " + version(got);
        }
    }

    /** Pairs of which a side is null, inline and with their keys apart. */
    private static Object pairs(Scene scene) throws Exception {
        var inline = Schema.KeyValue(Schema.STRING, Schema.AVRO(Lamp.class), KeyValueEncodingType.INLINE);
        var apart = Schema.KeyValue(Schema.INT32, Schema.JSON(Lamp.class), KeyValueEncodingType.SEPARATED);
        Lamp desk = new Lamp("desk", 40);
        send(scene, "inline", inline, new KeyValue<>("k", desk), new KeyValue<>(null, desk), new KeyValue<>("k", null));
        send(scene, "apart", apart, new KeyValue<>(7, desk), new KeyValue<>(null, desk), new KeyValue<>(7, null));
        return map();
    }

    @SafeVarargs
    private static <T> void send(Scene scene, String kind, Schema<T> schema, T... values) throws Exception {
        try (var producer = scene.client().newProducer(schema).topic(scene.topic + "-" + kind).create()) {
            for (T value : values) {
                producer.sendAsync(value);
            }
            producer.flush();
        }
    }

    private static String shown(Object value) {
        return value.toString().strip();
    }

    private static long version(Message<?> message) {
        byte[] bytes = message.getSchemaVersion();
        return bytes == null || bytes.length == 0 ? -1 : java.nio.ByteBuffer.wrap(bytes).getLong();
    }

    // -- versions

    private static final String V1 = record("");
    private static final String V2 =
            record(",{\"name\":\"colour\",\"type\":[\"null\",\"string\"],\"default\":null}");
    private static final String OTHER = record(",{\"name\":\"size\",\"type\":\"int\"}");

    private static String record(String more) {
        return "{\"type\":\"record\",\"name\":\"Lamp\",\"fields\":[{\"name\":\"name\",\"type\":\"string\"}" + more + "]}";
    }

    private static Schema<GenericRecord> generic(String definition) {
        return Schema.generic(SchemaInfo.builder()
                .name("Lamp")
                .type(org.apache.pulsar.common.schema.SchemaType.AVRO)
                .schema(definition.getBytes())
                .properties(Map.of())
                .build());
    }

    /** Two versions in one topic, a third that may not be, and one consumer who reads both. */
    private static Object evolution(Scene scene) throws Exception {
        List<String> seen = new ArrayList<>();
        Schema<GenericRecord> first = generic(V1);
        Schema<GenericRecord> second = generic(V2);
        try (var consumer = scene.client().newConsumer(Schema.AUTO_CONSUME())
                        .topic(scene.topic).subscriptionName("s").subscribe();
                var old = scene.client().newProducer(first).topic(scene.topic).create();
                var fresh = scene.client().newProducer(second).topic(scene.topic).create()) {
            old.send(((org.apache.pulsar.client.api.schema.GenericSchema<GenericRecord>) first)
                    .newRecordBuilder().set("name", "desk").build());
            fresh.send(((org.apache.pulsar.client.api.schema.GenericSchema<GenericRecord>) second)
                    .newRecordBuilder().set("name", "wall").set("colour", "red").build());
            for (int number = 0; number < 2; number++) {
                Message<GenericRecord> got = consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS);
                List<String> fields = got.getValue().getFields().stream().map(each -> each.getName()).toList();
                seen.add(version(got) + " " + got.getValue().getField("name") + " " + fields);
            }
            String refused = errorOf(() -> scene.client()
                    .newProducer(generic(OTHER)).topic(scene.topic).create().close());
            String reader = errorOf(() -> scene.client()
                    .newConsumer(generic(OTHER)).topic(scene.topic).subscriptionName("t").subscribe().close());
            String again = errorOf(() -> scene.client()
                    .newProducer(generic(V1)).topic(scene.topic).create().close());
            return map("seen", seen, "refused", refused, "reader", reader, "again", again);
        }
    }

    // -- the schema that the topic has

    /** AUTO_PRODUCE_BYTES takes what fits the topic's schema; one producer sends several schemas. */
    private static Object automatic(Scene scene) throws Exception {
        Schema<Lamp> schema = Schema.AVRO(SchemaDefinition.<Lamp>builder().withPojo(Lamp.class).build());
        byte[] encoded = schema.encode(new Lamp("desk", 40));
        try (Consumer<Lamp> consumer = scene.client().newConsumer(schema)
                        .topic(scene.topic).subscriptionName("s").subscribe();
                var producer = scene.client().newProducer(Schema.AUTO_PRODUCE_BYTES()).topic(scene.topic).create();
                var several = scene.client().newProducer(Schema.BYTES)
                        .topic(scene.topic).enableBatching(false).create()) {
            producer.send(encoded);
            String first = consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS).getValue().toString();
            String wrong = errorOf(() -> {
                try {
                    producer.send(new byte[] {1, 2, 3});
                } catch (RuntimeException error) {
                    throw new PulsarClientException.InvalidMessageException(error.getMessage());
                }
            });
            several.newMessage(schema).value(new Lamp("wall", 60)).send();
            Message<Lamp> second = consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS);
            String refused = errorOf(() -> several.newMessage(Schema.STRING).value("x").send());
            return map(
                    "first", first,
                    "wrong", wrong,
                    "second", second.getValue() + " at " + version(second),
                    "refused", refused);
        }
    }

    private Schemas() {
    }
}
