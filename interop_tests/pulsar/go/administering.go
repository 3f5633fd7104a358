package main

import (
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsaradmin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"

	. "magnetar/interop/stage"
)

func registerAdministering(families Families) {
	families["admin.tenants"] = administerTenants
	families["admin.topics"] = administerTopics
	families["admin.policies"] = administerPolicies
	families["admin.subscriptions"] = administerSubscriptions
	families["admin.schemas"] = administerSchemas
	families["admin.brokers"] = administerBrokers
	families["admin.refused"] = administerWhatIsRefused
}

// The admin library that pulsarctl is made of.
func administrator(scene *Scene, version config.APIVersion) pulsaradmin.Client {
	return Must(pulsaradmin.NewClient(&pulsaradmin.Config{
		WebServiceURL: scene.Text("http", ""), PulsarAPIVersion: version}))
}

func named(scene *Scene) utils.TopicName {
	return *Must(utils.GetTopicName(scene.Topic))
}

// A tenant and a namespace from their creation to their end.
func administerTenants(scene *Scene) any {
	client := administrator(scene, config.V2)
	tenants, spaces := client.Tenants(), client.Namespaces()
	name := scene.Topic + "-tenant"
	Check(tenants.Create(utils.TenantData{Name: name, AdminRoles: []string{"one"}, AllowedClusters: []string{"standalone"}}))
	Check(tenants.Update(utils.TenantData{Name: name, AdminRoles: []string{"two"}, AllowedClusters: []string{"standalone"}}))
	space := name + "/space"
	Check(spaces.CreateNsWithNumBundles(space, 4))
	Check(spaces.SetNamespaceMessageTTL(space, 60))
	Check(spaces.SetRetention(space, utils.NewRetentionPolicies(10, 20)))
	Check(spaces.SetDeduplicationStatus(space, true))
	found := map[string]any{
		"tenant":     Must(tenants.Get(name)),
		"listed":     strings.Contains(strings.Join(Must(tenants.List()), " "), name),
		"namespaces": Must(spaces.GetNamespaces(name)),
		"ttl":        Must(spaces.GetNamespaceMessageTTL(space)),
		"retention":  Must(spaces.GetRetention(space)),
		"topics":     len(Must(spaces.GetTopics(space))),
	}
	role := utils.AuthAction("produce")
	of := *Must(utils.GetNamespaceName(space))
	Check(spaces.GrantNamespacePermission(of, "writer", []utils.AuthAction{role}))
	found["permissions"] = Must(spaces.GetNamespacePermissions(of))
	Check(spaces.RevokeNamespacePermission(of, "writer"))
	Check(spaces.Unload(space))
	Check(spaces.RemoveRetention(space))
	Check(spaces.DeleteNamespace(space))
	Check(tenants.Delete(name))
	return found
}

// Topics, with partitions and without.
func administerTopics(scene *Scene) any {
	topics := administrator(scene, config.V2).Topics()
	single, parted := named(scene), *Must(utils.GetTopicName(scene.Topic + "-parted"))
	Check(topics.Create(single, 0))
	Check(topics.Create(parted, 2))
	Check(topics.Update(parted, 4))
	Check(topics.UpdateProperties(single, map[string]string{"owner": "me"}))
	client := connect(scene)
	defer client.Close()
	producer := Must(client.CreateProducer(pulsar.ProducerOptions{Topic: scene.Topic, DisableBatching: true}))
	for number := range 3 {
		Must(producer.Send(scene.Ctx, body(number)))
	}
	stats := Must(topics.GetStats(single))
	found := map[string]any{
		"partitions": Must(topics.GetMetadata(parted)).Partitions,
		"properties": Must(topics.GetProperties(single)),
		"stored":     stats.StorageSize > 0,
		"publishers": len(stats.Publishers),
		"entries":    Must(topics.GetInternalStats(single)).NumberOfEntries,
		"ledgers":    len(Must(topics.GetInternalInfo(single)).Ledgers),
		"parts":      len(Must(topics.GetPartitionedStats(parted, true)).Partitions),
		"last":       Must(topics.GetLastMessageID(single)).EntryID,
		"broker":     Must(topics.Lookup(single)).BrokerURL == scene.URL,
		"bundle":     Must(topics.GetBundleRange(single)),
	}
	partitioned, others := Must2(topics.List(*Must(utils.GetNamespaceName("public/default"))))
	found["listed"] = []bool{contains(partitioned, parted.String()), contains(others, single.String())}
	Check(topics.Unload(single))
	Check(topics.Compact(single))
	found["end"] = Must(topics.Terminate(single)).EntryID
	Check(topics.Delete(parted, true, false))
	Check(topics.Delete(single, true, true))
	_, err := topics.GetStats(single)
	found["gone"] = ErrorOf(err)
	return found
}

func contains(names []string, name string) bool {
	for _, each := range names {
		if each == name {
			return true
		}
	}
	return false
}

// Must2 is Must for functions with two results.
func Must2[A, B any](a A, b B, err error) (A, B) {
	Check(err)
	return a, b
}

// Policies of a topic: set, as they are then, and removed.
func administerPolicies(scene *Scene) any {
	topics, topic := administrator(scene, config.V2).Topics(), named(scene)
	Check(topics.Create(topic, 0))
	Check(topics.SetMessageTTL(topic, 30))
	Check(topics.SetMaxProducers(topic, 3))
	Check(topics.SetPublishRate(topic, utils.PublishRateData{PublishThrottlingRateInMsg: 100}))
	Check(topics.SetDispatchRate(topic, utils.DispatchRateData{DispatchThrottlingRateInMsg: 50, RatePeriodInSecond: 1}))
	Check(topics.SetRetention(topic, utils.NewRetentionPolicies(5, 6)))
	Check(topics.SetDeduplicationStatus(topic, true))
	Check(topics.SetCompactionThreshold(topic, 1<<20))
	Check(topics.SetDelayedDelivery(topic, utils.DelayedDeliveryData{Active: true, TickTime: 2000}))
	Check(topics.SetBacklogQuota(topic, utils.NewBacklogQuota(1<<20, -1, utils.ProducerException), utils.DestinationStorage))
	found := map[string]any{
		"ttl":        Must(topics.GetMessageTTL(topic)),
		"producers":  Must(topics.GetMaxProducers(topic)),
		"rate":       Must(topics.GetPublishRate(topic)).PublishThrottlingRateInMsg,
		"dispatch":   Must(topics.GetDispatchRate(topic)).DispatchThrottlingRateInMsg,
		"retention":  Must(topics.GetRetention(topic, false)).RetentionSizeInMB,
		"dedup":      Must(topics.GetDeduplicationStatus(topic)),
		"compaction": Must(topics.GetCompactionThreshold(topic, false)),
		"delays":     Must(topics.GetDelayedDelivery(topic)).TickTime,
		"quota":      Must(topics.GetBacklogQuotaMap(topic, false))[utils.DestinationStorage].LimitSize,
	}
	Check(topics.RemoveMessageTTL(topic))
	Check(topics.RemoveMaxProducers(topic))
	Check(topics.RemoveRetention(topic))
	Check(topics.RemoveBacklogQuota(topic, utils.DestinationStorage))
	found["removed"] = []any{Must(topics.GetMessageTTL(topic)), Must(topics.GetMaxProducers(topic))}
	return found
}

// Subscriptions and their cursors.
func administerSubscriptions(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	producer := Must(client.CreateProducer(pulsar.ProducerOptions{Topic: scene.Topic, DisableBatching: true}))
	for number := range 5 {
		Must(producer.Send(scene.Ctx, body(number)))
	}
	all, topic := administrator(scene, config.V2), named(scene)
	subscriptions := all.Subscriptions()
	backlog := func() int64 { return Must(all.Topics().GetStats(topic)).Subscriptions["s"].MsgBacklog }
	Check(subscriptions.Create(topic, "s", utils.Earliest))
	found := map[string]any{"names": Must(subscriptions.List(topic)), "at first": backlog()}
	peeked := []string{}
	for _, message := range Must(subscriptions.PeekMessages(topic, "s", 2)) {
		peeked = append(peeked, string(message.Payload))
	}
	found["peeked"] = peeked
	Check(subscriptions.SkipMessages(topic, "s", 2))
	found["skipped"] = backlog()
	last := Must(all.Topics().GetLastMessageID(topic))
	found["by id"] = string(Must(subscriptions.GetMessageByID(topic, last.LedgerID, last.EntryID)).Payload)
	Check(subscriptions.ResetCursorToMessageID(topic, "s", utils.MessageID{LedgerID: last.LedgerID, EntryID: 1}))
	found["reset"] = backlog()
	Check(subscriptions.ResetCursorToTimestamp(topic, "s", time.Now().Add(-time.Hour).UnixMilli()))
	found["to a time"] = backlog()
	Check(subscriptions.ClearBacklog(topic, "s"))
	found["cleared"] = backlog()
	Check(subscriptions.Delete(topic, "s"))
	found["left"] = len(Must(subscriptions.List(topic)))
	return found
}

// Schemas of a topic.
func administerSchemas(scene *Scene) any {
	schemas := administrator(scene, config.V2).Schemas()
	payload := utils.PostSchemaPayload{SchemaType: "AVRO", Properties: map[string]string{},
		Schema: `{"type":"record","name":"A","fields":[{"name":"a","type":"long"}]}`}
	Check(schemas.CreateSchemaByPayload(scene.Topic, payload))
	found := map[string]any{
		"type":     Must(schemas.GetSchemaInfo(scene.Topic)).Type,
		"version":  Must(schemas.GetSchemaInfoWithVersion(scene.Topic)).Version,
		"by one":   string(Must(schemas.GetSchemaInfoByVersion(scene.Topic, 0)).Schema) == payload.Schema,
		"all":      len(Must(schemas.GetAllSchemas(scene.Topic))),
		"which":    Must(schemas.GetVersionByPayload(scene.Topic, payload)),
		"may come": Must(schemas.TestCompatibilityWithPostSchemaPayload(scene.Topic, payload)).IsCompatibility,
	}
	Check(schemas.DeleteSchema(scene.Topic))
	_, err := schemas.GetSchemaInfo(scene.Topic)
	found["gone"] = ErrorOf(err)
	return found
}

// What there is of brokers and clusters.
func administerBrokers(scene *Scene) any {
	client := administrator(scene, config.V2)
	brokers := client.Brokers()
	Check(brokers.HealthCheck())
	active := Must(brokers.GetActiveBrokers("standalone"))
	return map[string]any{
		"brokers":  len(active),
		"leader":   Must(brokers.GetLeaderBroker()).BrokerID == active[0],
		"owned":    len(Must(brokers.GetOwnedNamespaces("standalone", active[0]))) > 0,
		"settings": len(Must(brokers.GetRuntimeConfigurations())) > 0,
		"dynamic":  len(Must(brokers.GetAllDynamicConfigurations())),
		"clusters": contains(Must(client.Clusters().List()), "standalone"),
		"metrics":  len(Must(client.BrokerStats().GetMetrics())) > 0,
		"report":   Must(client.BrokerStats().GetLoadReport()) != nil,
	}
}

// The reasons of refusals, as this library tells them.
func administerWhatIsRefused(scene *Scene) any {
	client, topic := administrator(scene, config.V2), named(scene)
	Check(client.Topics().Create(topic, 0))
	_, functions := administrator(scene, config.V3).Functions().GetFunctions("public", "default")
	_, quotas := client.ResourceQuotas().GetDefaultResourceQuota()
	return map[string]string{
		"offload":   ErrorOf(client.Topics().Offload(topic, utils.Latest)),
		"dynamic":   ErrorOf(client.Brokers().UpdateDynamicConfiguration("a", "1")),
		"missing":   ErrorOf(client.Tenants().Delete("missing")),
		"functions": ErrorOf(functions),
		"quotas":    ErrorOf(quotas),
	}
}
