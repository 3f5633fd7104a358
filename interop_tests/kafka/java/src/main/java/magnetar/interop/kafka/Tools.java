package magnetar.interop.kafka;

import static magnetar.interop.kafka.Scene.bytes;
import static magnetar.interop.kafka.Scene.errorOf;
import static magnetar.interop.kafka.Scene.get;
import static magnetar.interop.kafka.Scene.map;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import magnetar.interop.stage.Stage.Family;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The admin client: everything that it can ask of this server. */
final class Tools {
    static void register(Map<String, Family<Scene>> families) {
        families.put("tools.topics", Tools::topics);
        families.put("tools.offsets", Tools::offsets);
        families.put("tools.groups", Tools::groups);
        families.put("tools.producers", Tools::producers);
        families.put("tools.cluster", Tools::cluster);
    }

    private static String config(Admin admin, ConfigResource resource, String name) throws Exception {
        return get(admin.describeConfigs(Set.of(resource)).all()).get(resource).get(name).value();
    }

    private static Object topics(Scene scene) throws Exception {
        String topic = scene.topic;
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<String, Object> seen = new TreeMap<>();
        try (Admin admin = scene.admin()) {
            NewTopic wanted = new NewTopic(topic, Optional.of(3), Optional.empty())
                    .configs(Map.of("retention.ms", "100000", "cleanup.policy", "compact"));
            var made = admin.createTopics(Set.of(wanted));
            get(made.all());
            seen.put("made", List.of(
                    get(made.numPartitions(topic)),
                    get(made.replicationFactor(topic)),
                    get(made.config(topic)).get("retention.ms").value()));
            seen.put("again", errorOf(() -> get(admin.createTopics(Set.of(wanted)).all())));
            var described = get(admin.describeTopics(Set.of(topic)).allTopicNames()).get(topic);
            seen.put("same id", described.topicId().equals(get(made.topicId(topic))));
            seen.put("partitions", described.partitions().size());
            get(admin.incrementalAlterConfigs(Map.of(resource, List.of(
                    new AlterConfigOp(new ConfigEntry("retention.ms", "5000"), AlterConfigOp.OpType.SET),
                    new AlterConfigOp(new ConfigEntry("cleanup.policy", "delete"), AlterConfigOp.OpType.APPEND))))
                    .all());
            seen.put("retention.ms", config(admin, resource, "retention.ms"));
            seen.put("cleanup.policy", config(admin, resource, "cleanup.policy"));
            get(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all());
            seen.put("grown", get(admin.describeTopics(Set.of(topic)).allTopicNames()).get(topic).partitions().size());
            seen.put("listed", get(admin.listTopics().names()).contains(topic));
            get(admin.deleteTopics(Set.of(topic)).all());
            seen.put("gone", errorOf(() -> get(admin.deleteTopics(Set.of(topic)).all())));
        }
        return seen;
    }

    private static Object offsets(Scene scene) throws Exception {
        TopicPartition one = new TopicPartition(scene.topic, 0);
        try (Admin admin = scene.admin(); var producer = scene.producer()) {
            for (int number = 0; number < 10; number++) {
                long at = 1_600_000_000_000L + number;
                get(producer.send(new ProducerRecord<>(scene.topic, 0, at, null, bytes(number))));
            }
            Map<String, Object> seen = new TreeMap<>();
            Map<String, OffsetSpec> asked = Map.of(
                    "latest", OffsetSpec.latest(),
                    "highest", OffsetSpec.maxTimestamp(),
                    "at", OffsetSpec.forTimestamp(1_600_000_000_004L),
                    "after", OffsetSpec.forTimestamp(1_600_000_000_040L),
                    "local", OffsetSpec.earliestLocal());
            for (var each : asked.entrySet()) {
                seen.put(each.getKey(), get(admin.listOffsets(Map.of(one, each.getValue())).all()).get(one).offset());
            }
            var deleted = admin.deleteRecords(Map.of(one, RecordsToDelete.beforeOffset(6)));
            seen.put("low", get(deleted.lowWatermarks().get(one)).lowWatermark());
            seen.put("earliest", get(admin.listOffsets(Map.of(one, OffsetSpec.earliest())).all()).get(one).offset());
            return seen;
        }
    }

    private static Object groups(Scene scene) throws Exception {
        TopicPartition one = new TopicPartition(scene.topic, 0);
        String protocol = scene.text("protocol", "classic");
        Map<String, Object> seen = new TreeMap<>();
        Object[] options = {"group.id", scene.topic, "group.protocol", protocol};
        try (Admin admin = scene.admin(); var producer = scene.producer(); var consumer = scene.consumer(options)) {
            get(producer.send(new ProducerRecord<>(scene.topic, 0, null, bytes("v"))));
            consumer.subscribe(List.of(scene.topic));
            while (consumer.poll(Scene.DEADLINE).isEmpty()) {
                continue;
            }
            consumer.commitSync();
            var described = get(admin.describeConsumerGroups(Set.of(scene.topic)).all()).get(scene.topic);
            seen.put("state", described.groupState().toString());
            seen.put("type", described.type().toString());
            seen.put("reads", described.members().iterator().next().assignment().topicPartitions().size());
            seen.put("in use", errorOf(() -> get(admin.deleteConsumerGroups(Set.of(scene.topic)).all())));
            consumer.close();
            var listed = get(admin.listGroups().all()).stream().filter(each -> each.groupId().equals(scene.topic));
            seen.put("listed", listed.findFirst().orElseThrow().type().orElseThrow().toString());
            get(admin.alterConsumerGroupOffsets(scene.topic, Map.of(one, new OffsetAndMetadata(7, "note"))).all());
            var offset = get(admin.listConsumerGroupOffsets(scene.topic).partitionsToOffsetAndMetadata()).get(one);
            seen.put("offset", List.of(offset.offset(), offset.metadata()));
            get(admin.deleteConsumerGroupOffsets(scene.topic, Set.of(one)).all());
            offset = get(admin.listConsumerGroupOffsets(scene.topic).partitionsToOffsetAndMetadata()).get(one);
            seen.put("deleted", offset == null);
        }
        return seen;
    }

    private static Object producers(Scene scene) throws Exception {
        TopicPartition one = new TopicPartition(scene.topic, 0);
        Map<String, Object> seen = new TreeMap<>();
        try (Admin admin = scene.admin(); var producer = scene.producer("transactional.id", scene.topic)) {
            producer.initTransactions();
            producer.beginTransaction();
            get(producer.send(new ProducerRecord<>(scene.topic, bytes("open"))));
            var described = get(admin.describeTransactions(Set.of(scene.topic)).all()).get(scene.topic);
            seen.put("state", described.state().toString());
            seen.put("partitions", described.topicPartitions().size());
            var listed = get(admin.listTransactions().all()).stream()
                    .filter(each -> each.transactionalId().equals(scene.topic))
                    .findFirst().orElseThrow();
            seen.put("same", listed.producerId() == described.producerId());
            var active = get(admin.describeProducers(Set.of(one)).all()).get(one).activeProducers();
            seen.put("begins", active.get(0).currentTransactionStartOffset().getAsLong());
            get(admin.fenceProducers(Set.of(scene.topic)).all());
            seen.put("fenced", errorOf(producer::commitTransaction));
        }
        return seen;
    }

    private static Object cluster(Scene scene) throws Exception {
        TopicPartition one = new TopicPartition(scene.topic, 0);
        try (Admin admin = scene.admin(); var producer = scene.producer()) {
            get(producer.send(new ProducerRecord<>(scene.topic, bytes("v"))));
            var found = admin.describeCluster();
            var folders = get(admin.describeLogDirs(Set.of(0)).allDescriptions()).get(0).values().iterator().next();
            var elected = get(admin.electLeaders(ElectionType.PREFERRED, Set.of(one)).partitions()).get(one);
            return map(
                    "nodes", get(found.nodes()).size(),
                    "controller", get(found.controller()).id(),
                    "size", folders.replicaInfos().get(one).size() > 0,
                    "elected", elected.map(error -> error.getClass().getSimpleName()).orElse("none"),
                    "moving", get(admin.listPartitionReassignments().reassignments()).size());
        }
    }

    private Tools() {
    }
}
