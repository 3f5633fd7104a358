package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	. "magnetar/interop/stage"
)

func registerSarama(families Families) {
	families["sarama.records"] = saramaRecords
	families["sarama.many"] = saramaMany
	families["sarama.offsets"] = saramaOffsets
	families["sarama.transactions"] = saramaTransactions
	families["sarama.fenced"] = saramaFenced
	families["sarama.topics"] = saramaTopics
	families["sarama.groups"] = saramaGroups
}

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

// saramaConfig of an idempotent producer and of readers from the beginning, of the version that the test names.
func saramaConfig(scene *Scene) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = Must(sarama.ParseKafkaVersion(scene.Text("version", "4.1.0")))
	config.ClientID = "sarama"
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 1_000
	config.Producer.Retry.Backoff = 50 * time.Millisecond
	config.Net.MaxOpenRequests = 1
	config.Metadata.Retry.Max = 1_000
	config.Metadata.Retry.Backoff = 50 * time.Millisecond
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	return config
}

func saramaTool(scene *Scene) sarama.ClusterAdmin {
	return Must(sarama.NewClusterAdmin([]string{scene.URL}, saramaConfig(scene)))
}

func saramaTopic(scene *Scene, name string, partitions int) {
	tool := saramaTool(scene)
	defer tool.Close()
	Check(tool.CreateTopic(name, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}, false))
}

func saramaProducer(scene *Scene, config *sarama.Config) sarama.SyncProducer {
	return Must(sarama.NewSyncProducer([]string{scene.URL}, config))
}

// saramaRead so many records of a partition.
func saramaRead(scene *Scene, config *sarama.Config, partition int32, offset int64, count int) []*sarama.ConsumerMessage {
	consumer := Must(sarama.NewConsumer([]string{scene.URL}, config))
	defer consumer.Close()
	one := Must(consumer.ConsumePartition(scene.Topic, partition, offset))
	defer one.Close()
	var found []*sarama.ConsumerMessage
	for len(found) < count {
		select {
		case record := <-one.Messages():
			found = append(found, record)
		case <-scene.Ctx.Done():
			panic(fmt.Errorf("%d of %d records", len(found), count))
		}
	}
	return found
}

func saramaValues(records []*sarama.ConsumerMessage) []string {
	found := []string{}
	for _, one := range records {
		found = append(found, string(one.Value))
	}
	return found
}

func saramaError(err error) string {
	var code sarama.KError
	if errors.As(err, &code) {
		return strconv.Itoa(int(code))
	}
	return ErrorOf(err)
}

// Keys, headers, times, null and empty ones, of each codec.
func saramaRecords(scene *Scene) any {
	saramaTopic(scene, scene.Topic, 1)
	config := saramaConfig(scene)
	config.Producer.Compression = saramaCodecs[scene.Text("codec", "none")]
	producer := saramaProducer(scene, config)
	defer producer.Close()
	when := time.UnixMilli(1_600_000_000_000)
	headers := []sarama.RecordHeader{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("a"), Value: nil}}
	padding := sarama.ByteEncoder(make([]byte, 2_000))
	Check(producer.SendMessages([]*sarama.ProducerMessage{
		{Topic: scene.Topic, Key: sarama.StringEncoder("k"), Value: nil, Headers: headers, Timestamp: when},
		{Topic: scene.Topic, Key: nil, Value: sarama.StringEncoder(""), Timestamp: when},
		{Topic: scene.Topic, Key: sarama.StringEncoder(""), Value: sarama.StringEncoder("v"), Timestamp: when},
		{Topic: scene.Topic, Key: sarama.StringEncoder("long"), Value: padding, Timestamp: when},
	}))
	seen := [][]any{}
	for _, one := range saramaRead(scene, config, 0, sarama.OffsetOldest, 4) {
		value := text(one.Value)
		if len(one.Value) == len(padding) {
			value = "padding"
		}
		told := []any{}
		for _, header := range one.Headers {
			told = append(told, []any{string(header.Key), text(header.Value)})
		}
		seen = append(seen, []any{one.Offset, one.Timestamp.UnixMilli(), text(one.Key), value, told})
	}
	return seen
}

// The asynchronous producer: thousands in flight, in order.
func saramaMany(scene *Scene) any {
	count := scene.Number("count", 5_000)
	saramaTopic(scene, scene.Topic, 1)
	config := saramaConfig(scene)
	config.Producer.Flush.Messages, config.Producer.Flush.Frequency = 100, 5*time.Millisecond
	producer := Must(sarama.NewAsyncProducer([]string{scene.URL}, config))
	go func() {
		for at := range count {
			producer.Input() <- &sarama.ProducerMessage{Topic: scene.Topic, Value: sarama.StringEncoder(strconv.Itoa(at))}
		}
		producer.AsyncClose()
	}()
	stored, failed := 0, 0
	for producer.Successes() != nil && stored+failed < count {
		select {
		case <-producer.Successes():
			stored++
		case <-producer.Errors():
			failed++
		}
	}
	inOrder := true
	for at, one := range saramaRead(scene, config, 0, sarama.OffsetOldest, count) {
		inOrder = inOrder && string(one.Value) == strconv.Itoa(at) && one.Offset == int64(at)
	}
	return []any{stored, failed, inOrder}
}

func saramaOffsets(scene *Scene) any {
	saramaTopic(scene, scene.Topic, 1)
	config := saramaConfig(scene)
	producer := saramaProducer(scene, config)
	defer producer.Close()
	for at := range 10 {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: scene.Topic,
			Value: sarama.StringEncoder(strconv.Itoa(at)), Timestamp: time.UnixMilli(int64(1_000 * (at + 1)))})
		Check(err)
	}
	client := Must(sarama.NewClient([]string{scene.URL}, config))
	defer client.Close()
	tool := saramaTool(scene)
	defer tool.Close()
	at := func(when int64) int64 { return Must(client.GetOffset(scene.Topic, 0, when)) }
	seen := map[string]any{"oldest": at(sarama.OffsetOldest), "newest": at(sarama.OffsetNewest),
		"at": at(4_500), "beyond": at(99_000)}
	Check(tool.DeleteRecords(scene.Topic, map[int32]int64{0: 6}))
	seen["after"] = at(sarama.OffsetOldest)
	consumer := Must(sarama.NewConsumer([]string{scene.URL}, config))
	defer consumer.Close()
	_, err := consumer.ConsumePartition(scene.Topic, 0, 2)
	seen["gone"] = saramaError(err)
	seen["read"] = saramaValues(saramaRead(scene, config, 0, 6, 4))
	// what KafkaJS and Sarama's own tools do to have a group begin anew: a reset to -1 or -2 is committed as it is
	manager := Must(sarama.NewOffsetManagerFromClient(scene.Topic, client))
	one := Must(manager.ManagePartition(scene.Topic, 0))
	one.MarkOffset(8, "note")
	manager.Commit()
	marked, note := one.NextOffset()
	one.ResetOffset(7, "back")
	manager.Commit()
	one.AsyncClose() // it ends with its manager
	Check(manager.Close())
	fetched := Must(tool.ListConsumerGroupOffsets(scene.Topic, map[string][]int32{scene.Topic: {0}}))
	block := fetched.GetBlock(scene.Topic, 0)
	seen["managed"] = []any{marked, note, block.Offset, block.Metadata}
	return seen
}

func saramaTransactional(scene *Scene) sarama.SyncProducer {
	config := saramaConfig(scene)
	config.Producer.Transaction.ID = scene.Topic
	config.Producer.Transaction.Timeout = 30 * time.Second
	return saramaProducer(scene, config)
}

func saramaSend(scene *Scene, producer sarama.SyncProducer, value string) error {
	_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: scene.Topic, Value: sarama.StringEncoder(value)})
	return err
}

// One transaction commits, one aborts; offsets of a group come with the one that commits.
func saramaTransactions(scene *Scene) any {
	saramaTopic(scene, scene.Topic, 1)
	producer := saramaTransactional(scene)
	defer producer.Close()
	tool := saramaTool(scene)
	defer tool.Close()
	committed := []int64{}
	for at := range 4 {
		Check(producer.BeginTxn())
		Check(saramaSend(scene, producer, strconv.Itoa(at)))
		Check(producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{
			scene.Topic: {{Partition: 0, Offset: int64(at + 1)}}}, scene.Topic+"-group"))
		offset := func() int64 {
			fetched := Must(tool.ListConsumerGroupOffsets(scene.Topic+"-group", map[string][]int32{scene.Topic: {0}}))
			return fetched.GetBlock(scene.Topic, 0).Offset
		}
		if at%2 == 0 {
			Check(producer.CommitTxn())
			scene.Until("it is there", func() bool { return offset() == int64(at+1) }) // Sarama does not ask for stable ones
		} else {
			Check(producer.AbortTxn())
		}
		committed = append(committed, offset())
	}
	config := saramaConfig(scene)
	all := saramaValues(saramaRead(scene, config, 0, sarama.OffsetOldest, 4))
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	return []any{all, saramaValues(saramaRead(scene, config, 0, sarama.OffsetOldest, 2)), committed}
}

// An heir of the same name goes on; the elder one is told so.
func saramaFenced(scene *Scene) any {
	saramaTopic(scene, scene.Topic, 1)
	elder := saramaTransactional(scene)
	Check(elder.BeginTxn())
	Check(saramaSend(scene, elder, "elder"))
	heir := saramaTransactional(scene)
	defer heir.Close()
	Check(heir.BeginTxn())
	Check(saramaSend(scene, heir, "heir"))
	Check(heir.CommitTxn())
	refused := saramaSend(scene, elder, "zombie")
	_ = elder.Close() // its transaction cannot be ended, and it says so again
	config := saramaConfig(scene)
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	return []any{saramaError(refused), saramaValues(saramaRead(scene, config, 0, sarama.OffsetOldest, 1))}
}

func saramaTopics(scene *Scene) any {
	tool := saramaTool(scene)
	defer tool.Close()
	name, retention, seen := scene.Topic, "100000", map[string]any{}
	detail := sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &retention}}
	Check(tool.CreateTopic(name, &detail, true))
	Check(tool.CreateTopic(name, &detail, false))
	var refused *sarama.TopicError
	if errors.As(tool.CreateTopic(name, &detail, false), &refused) {
		seen["again"] = int(refused.Err)
	}
	listed := Must(tool.ListTopics())[name]
	seen["listed"] = []any{listed.NumPartitions, listed.ReplicationFactor}
	Check(tool.CreatePartitions(name, 5, nil, false))
	seen["grown"] = len(Must(tool.DescribeTopics([]string{name}))[0].Partitions)
	shorter := "5000"
	Check(tool.IncrementalAlterConfig(sarama.TopicResource, name, map[string]sarama.IncrementalAlterConfigsEntry{
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &shorter}}, false))
	seen["retention.ms"] = Must(tool.DescribeConfig(sarama.ConfigResource{
		Type: sarama.TopicResource, Name: name, ConfigNames: []string{"retention.ms"}}))[0].Value
	policy := "compact"
	Check(tool.AlterConfig(sarama.TopicResource, name, map[string]*string{"cleanup.policy": &policy}, false))
	for _, one := range Must(tool.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: name})) {
		if one.Name == "cleanup.policy" || one.Name == "retention.ms" {
			seen["set anew "+one.Name] = []any{one.Value, one.Default}
		}
	}
	brokers, controller, err := tool.DescribeCluster()
	Check(err)
	seen["cluster"] = []any{len(brokers), controller}
	seen["dirs"] = len(Must(tool.DescribeLogDirs([]int32{brokers[0].ID()})))
	Check(tool.DeleteTopic(name))
	scene.Until("it is gone", func() bool { _, there := Must(tool.ListTopics())[name]; return !there })
	seen["gone"] = int(Must(tool.DescribeTopics([]string{name}))[0].Err)
	return seen
}

func saramaGroups(scene *Scene) any {
	saramaTopic(scene, scene.Topic, 2)
	tool := saramaTool(scene)
	defer tool.Close()
	one := saramaJoin(scene, func(*sarama.ConsumerMessage) {})
	scene.Until("it has all", func() bool { return one.owns() == 2 })
	seen, group := map[string]any{}, scene.Topic
	described := Must(tool.DescribeConsumerGroups([]string{group}))[0]
	seen["described"] = []any{described.State, described.ProtocolType, described.Protocol, len(described.Members)}
	seen["listed"] = Must(tool.ListConsumerGroups())[group]
	seen["in use"] = saramaError(tool.DeleteConsumerGroup(group))
	one.leave()
	altered := Must(tool.AlterConsumerGroupOffsets(group, map[string]map[int32]sarama.OffsetAndMetadata{
		scene.Topic: {0: {Offset: 3, LeaderEpoch: -1, Metadata: "note"}}}, nil))
	seen["altered"] = int(altered.Errors[scene.Topic][0])
	fetched := Must(tool.ListConsumerGroupOffsets(group, nil))
	seen["fetched"] = []any{fetched.GetBlock(scene.Topic, 0).Offset, fetched.GetBlock(scene.Topic, 0).Metadata}
	Check(tool.DeleteConsumerGroupOffset(group, scene.Topic, 0))
	seen["deleted"] = saramaError(tool.DeleteConsumerGroup(group))
	_, seen["still listed"] = Must(tool.ListConsumerGroups())[group]
	return seen
}
