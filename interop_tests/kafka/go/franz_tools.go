package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	. "magnetar/interop/stage"
)

func registerFranzTools(families Families) {
	families["franz.topics"] = franzTopics
	families["franz.offsets"] = franzOffsets
	families["franz.committed"] = franzCommitted
	families["franz.cluster"] = franzCluster
}

func franzTopics(scene *Scene) any {
	client := franz(scene)
	defer client.Close()
	tool, name, seen := kadm.NewClient(client), scene.Topic, map[string]any{}
	made := Must(tool.CreateTopic(scene.Ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("100000")}, name))
	seen["made"] = []any{made.NumPartitions, made.ReplicationFactor}
	_, err := tool.CreateTopic(scene.Ctx, 3, 1, nil, name)
	seen["again"] = errorName(err)
	_, err = tool.ValidateCreateTopics(scene.Ctx, 3, 1, nil, name+"-dry")
	Check(err)
	_, err = tool.CreateTopic(scene.Ctx, 1, 1, nil, "no such name!")
	seen["bad name"] = errorName(err)
	Check(Must(tool.CreatePartitions(scene.Ctx, 2, name))[name].Err)
	Check(Must(tool.AlterTopicConfigs(scene.Ctx, []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("5000")},
		{Op: kadm.SetConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")},
	}, name))[0].Err)
	configs := Must(Must(tool.DescribeTopicConfigs(scene.Ctx, name)).On(name, nil))
	for _, one := range configs.Configs {
		if one.Key == "retention.ms" || one.Key == "cleanup.policy" {
			seen[one.Key] = one.MaybeValue()
		}
	}
	topics := Must(tool.ListTopics(scene.Ctx))
	seen["partitions"] = len(topics[name].Partitions)
	seen["dry"] = topics.Has(name + "-dry")
	dirs := Must(tool.DescribeAllLogDirs(scene.Ctx, kadm.TopicsSet{name: nil}))
	seen["dirs"] = len(dirs)
	Check(Must(tool.DeleteTopic(scene.Ctx, name)).Err)
	scene.Until("it is gone", func() bool { return !Must(tool.ListTopics(scene.Ctx)).Has(name) })
	seen["gone"] = errorName(Must(tool.ListTopics(scene.Ctx, name))[name].Err)
	return seen
}

func franzOffsets(scene *Scene) any {
	client := franz(scene, kgo.DefaultProduceTopic(scene.Topic))
	defer client.Close()
	makeTopic(scene, client, scene.Topic, 1)
	tool, seen := kadm.NewClient(client), map[string]any{}
	for at := range 10 {
		record := &kgo.Record{Value: []byte{byte('0' + at)}, Timestamp: time.UnixMilli(int64(1_000 * at))}
		Check(client.ProduceSync(scene.Ctx, record).FirstErr())
	}
	at := func(listed kadm.ListedOffsets, err error) int64 {
		Check(err)
		Check(listed.Error())
		found, _ := listed.Lookup(scene.Topic, 0)
		return found.Offset
	}
	seen["start"] = at(tool.ListStartOffsets(scene.Ctx, scene.Topic))
	seen["end"] = at(tool.ListEndOffsets(scene.Ctx, scene.Topic))
	seen["at"] = at(tool.ListOffsetsAfterMilli(scene.Ctx, 3_500, scene.Topic))
	seen["beyond"] = at(tool.ListOffsetsAfterMilli(scene.Ctx, 99_000, scene.Topic))
	seen["highest"] = at(tool.ListMaxTimestampOffsets(scene.Ctx, scene.Topic))
	seen["local"] = at(tool.ListLocalLogStartOffsets(scene.Ctx, scene.Topic))
	from := func(offset kgo.Offset) string {
		reader := franz(scene, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{scene.Topic: {0: offset}}))
		defer reader.Close()
		return string(poll(scene, reader, 1)[0].Value)
	}
	seen["read from 4"] = from(kgo.NewOffset().At(4))
	seen["read last"] = from(kgo.NewOffset().AtEnd().Relative(-1))
	seen["read from a time"] = from(kgo.NewOffset().AfterMilli(6_500))
	var offsets kadm.Offsets
	offsets.AddOffset(scene.Topic, 0, 6, -1)
	seen["low"] = Must(tool.DeleteRecords(scene.Ctx, offsets))[scene.Topic][0].LowWatermark
	seen["start after"] = at(tool.ListStartOffsets(scene.Ctx, scene.Topic))
	seen["read from what is gone"] = from(kgo.NewOffset().At(2))
	return seen
}

// Offsets of a group that tools write, read, and delete; with it.
func franzCommitted(scene *Scene) any {
	client := franz(scene, kgo.DefaultProduceTopic(scene.Topic))
	defer client.Close()
	makeTopic(scene, client, scene.Topic, 2)
	send(scene, client, "a", "b", "c")
	tool, group, seen := kadm.NewClient(client), scene.Topic, map[string]any{}
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: scene.Topic, Partition: 0, At: 1, LeaderEpoch: -1, Metadata: "note"})
	offsets.Add(kadm.Offset{Topic: scene.Topic, Partition: 1, At: -1, LeaderEpoch: -1})
	Check(tool.CommitAllOffsets(scene.Ctx, group, offsets))
	fetched := Must(tool.FetchOffsets(scene.Ctx, group))
	one, _ := fetched.Lookup(scene.Topic, 0)
	seen["fetched"] = []any{one.At, one.Metadata}
	described := Must(tool.DescribeGroups(scene.Ctx, group))[group]
	seen["state"] = described.State
	Check(Must(tool.DeleteOffsets(scene.Ctx, group, kadm.TopicsSet{scene.Topic: {0: {}, 1: {}}})).Error())
	_, left := Must(tool.FetchOffsets(scene.Ctx, group)).Lookup(scene.Topic, 0)
	seen["left"] = left
	member := join(scene, func(*kgo.Record) {}, kgo.ConsumeTopics(scene.Topic))
	scene.Until("it reads", func() bool { return member.owns() == 2 && lag(scene, client) == 0 })
	_, err := tool.DeleteGroup(scene.Ctx, group)
	seen["in use"] = errorName(err)
	live := Must(tool.DescribeGroups(scene.Ctx, group))[group]
	seen["members"] = []any{live.State, len(live.Members), live.ProtocolType, len(live.AssignedPartitions()[scene.Topic])}
	member.leave()
	_, err = tool.DeleteGroup(scene.Ctx, group)
	seen["deleted"] = errorName(err)
	seen["listed"] = len(Must(tool.ListGroups(scene.Ctx)).Groups()) > 0 && Must(tool.ListGroups(scene.Ctx))[group].Group != ""
	return seen
}

func franzCluster(scene *Scene) any {
	client := franz(scene)
	defer client.Close()
	tool := kadm.NewClient(client)
	cluster := Must(tool.BrokerMetadata(scene.Ctx))
	versions := Must(tool.ApiVersions(scene.Ctx))
	acls, err := tool.DescribeACLs(scene.Ctx, kadm.NewACLs().AnyResource().Allow().AllowHosts().Operations())
	refused := errorName(err)
	if err == nil {
		for _, one := range acls {
			refused = errorName(one.Err)
		}
	}
	return []any{len(cluster.Brokers), cluster.Controller, len(cluster.Cluster) > 0, len(versions), refused}
}
