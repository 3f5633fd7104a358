package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.get;
import static magnetar.interop.kafka.Scene.map;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import magnetar.interop.kafka.Scene.Action;
import magnetar.interop.stage.Stage.Family;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.RestService;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecordBuilder;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroSerializationSchema;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Confluent's Java client of registries, and Flink's serializers for Avro, which use it. */
final class Registry {
    private static final Map<String, String> NO_HEADERS = RestService.DEFAULT_REQUEST_PROPERTIES;
    private static final String LAMP =
            "{\"type\":\"record\",\"name\":\"Lamp\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"watts\",\"type\":\"int\"}]}";
    private static final String COLOURED = LAMP.replace(
            "}]}", "},{\"name\":\"colour\",\"type\":\"string\",\"default\":\"white\"}]}");

    static void register(Map<String, Family<Scene>> families) {
        families.put("registry.versions", Registry::versions);
        families.put("registry.subjects", Registry::subjects);
        families.put("registry.values", Registry::values);
    }

    /** Two versions of a language: what the test gives as `first`, `second`, `other` (which may not follow) and `broken`. */
    private static Object versions(Scene scene) throws Exception {
        String subject = scene.topic + "-value";
        String type = scene.text("type", "");
        String first = scene.text("first", "");
        String second = scene.text("second", "");
        Map<String, Object> seen = map();
        try (RestService rest = rest(scene)) {
            int id = add(rest, first, type, subject);
            seen.put("again", add(rest, first, type, subject) == id);
            seen.put("by id", rest.getId(id).getSchemaString().equals(first));
            seen.put("follows", verdict(rest, second, type, subject));
            seen.put("does not", verdict(rest, scene.text("other", ""), type, subject));
            int next = add(rest, second, type, subject);
            seen.put("refused", codeOf(() -> add(rest, scene.text("other", ""), type, subject)));
            seen.put("broken", codeOf(() -> add(rest, scene.text("broken", ""), type, subject)));
            seen.put("versions", rest.getAllVersions(subject));
            var one = rest.getVersion(subject, 1);
            seen.put("first", List.of(one.getId() == id, one.getSchema().equals(first)));
            var latest = rest.getLatestVersion(subject);
            seen.put("latest", List.of(latest.getVersion(), latest.getId() == next, latest.getSchema().equals(second)));
            // where an answer names none, the client takes it for Avro
            seen.put("types", List.of(one.getSchemaType(), latest.getSchemaType()));
            seen.put("found", rest.lookUpSubjectVersion(first, type, List.of(), subject, false).getVersion());
            seen.put("used", rest.getAllVersionsById(next).get(0).getVersion());
        }
        return seen;
    }

    /** Levels, references, and what is deleted. */
    private static Object subjects(Scene scene) throws Exception {
        String part = scene.topic + "-part";
        String whole = scene.topic + "-whole";
        Map<String, Object> seen = map();
        try (RestService rest = rest(scene)) {
            seen.put("nothing", List.of(
                    codeOf(() -> rest.getLatestVersion(part)),
                    codeOf(() -> rest.getAllVersions(part)),
                    codeOf(() -> rest.deleteSubject(NO_HEADERS, part)),
                    codeOf(() -> rest.getId(2_000_000_000)),
                    codeOf(() -> rest.getConfig(part))));
            add(rest, LAMP, "AVRO", part);
            var lamp = List.of(new SchemaReference("shop.Lamp", part, 1));
            String room = "{\"type\":\"array\",\"items\":\"shop.Lamp\"}";
            int id = rest.registerSchema(room, "AVRO", lamp, whole).getId();
            seen.put("refers", rest.getId(id).getReferences().equals(lamp));
            seen.put("used by", rest.getReferencedBy(part, 1).equals(List.of(id)));
            seen.put("in use", codeOf(() -> rest.deleteSchemaVersion(NO_HEADERS, part, "1")));
            seen.put("unknown", codeOf(() -> rest.registerSchema(room, "AVRO", List.of(), whole)));

            rest.updateCompatibility("NONE", part);
            seen.put("level", rest.getConfig(part).getCompatibilityLevel());
            add(rest, "\"string\"", "AVRO", part);
            rest.deleteConfig(part);
            seen.put("everyone's", everyones(rest, part));
            seen.put("no level", codeOf(() -> rest.updateCompatibility("SIDEWARDS", part)));

            seen.put("deleted", rest.deleteSchemaVersion(NO_HEADERS, part, "2"));
            seen.put("left", rest.getAllVersions(part));
            seen.put("too late", codeOf(() -> rest.getVersion(part, 2)));
            seen.put("too early", codeOf(() -> rest.deleteSubject(NO_HEADERS, whole, true)));
            seen.put("hidden", rest.deleteSubject(NO_HEADERS, whole));
            seen.put("listed", List.of(rest.getAllSubjects().contains(part), rest.getAllSubjects().contains(whole)));
            seen.put("gone", rest.deleteSubject(NO_HEADERS, whole, true));
            seen.put("free", rest.deleteSubject(NO_HEADERS, part));
        }
        return seen;
    }

    /** What holds for a subject without a level of its own, before, while and after one is set for all of them. */
    private static List<String> everyones(RestService rest, String subject) throws Exception {
        List<String> levels = new ArrayList<>();
        levels.add(rest.getConfig(NO_HEADERS, subject, true).getCompatibilityLevel());
        rest.updateCompatibility("FULL", null);
        try {
            levels.add(rest.getConfig(null).getCompatibilityLevel());
            levels.add(rest.getConfig(NO_HEADERS, subject, true).getCompatibilityLevel());
        } finally {
            rest.deleteConfig(null);
        }
        levels.add(rest.getConfig(null).getCompatibilityLevel());
        return levels;
    }

    /** Records of two versions in one topic, which a reader of the second one reads. */
    private static Object values(Scene scene) throws Exception {
        String subject = scene.topic + "-value";
        String url = scene.text("registry", "");
        Schema first = new Schema.Parser().parse(LAMP);
        Schema second = new Schema.Parser().parse(COLOURED);
        var client = new CachedSchemaRegistryClient(url, 10);
        int id = client.register(subject, new AvroSchema(first));
        try (var producer = scene.producer()) {
            var old = ConfluentRegistryAvroSerializationSchema.forGeneric(subject, first, url);
            var now = ConfluentRegistryAvroSerializationSchema.forGeneric(subject, second, url);
            GenericRecord dim = new GenericRecordBuilder(first).set("watts", 40).build();
            GenericRecord red = new GenericRecordBuilder(second).set("watts", 60).set("colour", "red").build();
            get(producer.send(new ProducerRecord<>(scene.topic, old.serialize(dim))));
            get(producer.send(new ProducerRecord<>(scene.topic, now.serialize(red))));
        }
        var reader = ConfluentRegistryAvroDeserializationSchema.forGeneric(second, url);
        List<Object> read = new ArrayList<>();
        for (var record : scene.everything(scene.topic, 0)) {
            GenericRecord value = reader.deserialize(record.value());
            read.add(List.of(value.get("watts"), value.get("colour").toString()));
        }
        var latest = client.getLatestSchemaMetadata(subject);
        var strings = new AvroSchema("\"string\"");
        return map(
                "read", read,
                "versions", client.getAllVersions(subject),
                "id", client.getId(subject, new AvroSchema(first)) == id,
                "version", client.getVersion(subject, new AvroSchema(second)) == latest.getVersion(),
                "text", new AvroSchema(latest.getSchema()).rawSchema().equals(second),
                "strings", List.of(client.testCompatibility(subject, strings), codeOf(() -> client.register(subject, strings))));
    }

    private static RestService rest(Scene scene) {
        return new RestService(scene.text("registry", ""));
    }

    private static int add(RestService rest, String text, String type, String subject) throws Exception {
        return rest.registerSchema(text, type, List.of(), subject).getId();
    }

    /** Whether a schema may follow the latest one: there are no reasons why not. */
    private static String verdict(RestService rest, String text, String type, String subject) throws Exception {
        List<String> reasons = rest.testCompatibility(text, type, List.of(), subject, "latest", true);
        return reasons.isEmpty() ? "yes" : "no";
    }

    /** The registry's code of the error that an action ends with, or 0. */
    private static int codeOf(Action action) throws Exception {
        try {
            action.run();
            return 0;
        } catch (RestClientException error) {
            return error.getErrorCode();
        }
    }

    private Registry() {
    }
}
