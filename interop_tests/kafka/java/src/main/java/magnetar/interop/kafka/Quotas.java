package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.bytes;
import static magnetar.interop.kafka.Scene.errorOf;
import static magnetar.interop.kafka.Scene.get;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import magnetar.interop.stage.Stage.Family;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterClientQuotasOptions;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/** Quotas by user and client id: set, shown, felt, removed. */
final class Quotas {
    private static final String USER = ClientQuotaEntity.USER;
    private static final String CLIENT_ID = ClientQuotaEntity.CLIENT_ID;
    private static final int RATE = 100_000;
    private static final byte[] VALUE = new byte[RATE];

    static void register(Map<String, Family<Scene>> families) {
        families.put("quotas.set", Quotas::set);
        families.put("quotas.felt", Quotas::felt);
        families.put("quotas.mutations", Quotas::mutations);
    }

    private static void alter(Admin admin, Map<String, String> entity, String key, Double value) throws Exception {
        var op = new ClientQuotaAlteration.Op(key, value);
        get(admin.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(entity), List.of(op)))).all());
    }

    private static Object set(Scene scene) throws Exception {
        Map<String, Object> seen = new TreeMap<>();
        Map<String, String> both = Map.of(USER, scene.topic, CLIENT_ID, scene.topic);
        Map<String, String> client = Map.of(CLIENT_ID, scene.topic);
        Map<String, String> everyone = new TreeMap<>();
        everyone.put(USER, scene.topic);
        everyone.put(CLIENT_ID, null);
        try (Admin admin = scene.admin()) {
            alter(admin, both, "producer_byte_rate", 1024.0);
            alter(admin, everyone, "request_percentage", 12.5);
            alter(admin, client, "consumer_byte_rate", 2048.0);
            var ofUser = ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity(USER, scene.topic)));
            var found = get(admin.describeClientQuotas(ofUser).entities());
            seen.put("both", found.get(new ClientQuotaEntity(both)));
            seen.put("everyone", found.get(new ClientQuotaEntity(everyone)));
            seen.put("of the user", found.size());
            var strict = ClientQuotaFilter.containsOnly(List.of(
                    ClientQuotaFilterComponent.ofEntity(CLIENT_ID, scene.topic)));
            seen.put("strictly", get(admin.describeClientQuotas(strict).entities()).values().toString());
            var defaults = ClientQuotaFilter.containsOnly(List.of(
                    ClientQuotaFilterComponent.ofEntity(USER, scene.topic),
                    ClientQuotaFilterComponent.ofDefaultEntity(CLIENT_ID)));
            seen.put("defaults", get(admin.describeClientQuotas(defaults).entities()).size());
            seen.put("unknown", errorOf(() -> alter(admin, client, "bytes", 1.0)));
            seen.put("negative", errorOf(() -> alter(admin, client, "producer_byte_rate", -1.0)));
            var op = new ClientQuotaAlteration.Op("producer_byte_rate", 1.0);
            var tried = new ClientQuotaAlteration(new ClientQuotaEntity(client), List.of(op));
            get(admin.alterClientQuotas(List.of(tried), new AlterClientQuotasOptions().validateOnly(true)).all());
            seen.put("only tried", get(admin.describeClientQuotas(strict).entities()).values().toString());
            alter(admin, both, "producer_byte_rate", null);
            alter(admin, everyone, "request_percentage", null);
            alter(admin, client, "consumer_byte_rate", null);
            seen.put("removed", get(admin.describeClientQuotas(ofUser).entities()).size());
        }
        return seen;
    }

    /** The largest throttle time that a client was told. */
    private static double told(Map<MetricName, ? extends Metric> metrics, String name) {
        return metrics.values().stream()
                .filter(one -> one.metricName().name().equals(name))
                .mapToDouble(one -> (Double) one.metricValue())
                .filter(value -> !Double.isNaN(value))
                .max().orElse(0);
    }

    private static Object felt(Scene scene) throws Exception {
        Map<String, Object> seen = new TreeMap<>();
        Map<String, String> client = Map.of(CLIENT_ID, scene.topic);
        Object[] one = {"client.id", scene.topic, "batch.size", 0, "max.in.flight.requests.per.connection", 1};
        try (Admin admin = scene.admin(); var producer = scene.producer(one); var other = scene.producer()) {
            alter(admin, client, "producer_byte_rate", (double) RATE);
            for (int number = 0; number < 12; number++) {
                get(producer.send(new ProducerRecord<>(scene.topic, VALUE)));
                get(other.send(new ProducerRecord<>(scene.topic, bytes("v"))));
            }
            seen.put("producer", told(producer.metrics(), "produce-throttle-time-max") > 500);
            seen.put("other", told(other.metrics(), "produce-throttle-time-max"));
            alter(admin, client, "producer_byte_rate", null);
            alter(admin, client, "consumer_byte_rate", (double) RATE);
            try (var consumer = scene.consumer("client.id", scene.topic, "max.partition.fetch.bytes", RATE)) {
                TopicPartition part = new TopicPartition(scene.topic, 0);
                consumer.assign(List.of(part));
                int count = 0;
                while (count < 24) {
                    count += consumer.poll(Scene.DEADLINE).count();
                }
                seen.put("records", count);
                seen.put("consumer", told(consumer.metrics(), "fetch-throttle-time-max") > 500);
            }
            alter(admin, client, "consumer_byte_rate", null);
        }
        return seen;
    }

    /** Java's client tries again what is refused beyond the quota. */
    private static Object mutations(Scene scene) throws Exception {
        try (Admin admin = scene.admin("client.id", scene.topic)) {
            Map<String, String> client = Map.of(CLIENT_ID, scene.topic);
            alter(admin, client, "controller_mutation_rate", 10.0);
            long begun = System.nanoTime();
            for (String name : List.of("a", "b")) {
                var topic = new org.apache.kafka.clients.admin.NewTopic(scene.topic + name, 120, (short) 1);
                get(admin.createTopics(List.of(topic)).all());
            }
            boolean waited = System.nanoTime() - begun > 900_000_000L;
            alter(admin, client, "controller_mutation_rate", null);
            return waited;
        }
    }

    private Quotas() {
    }
}
