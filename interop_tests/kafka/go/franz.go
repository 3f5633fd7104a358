package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	. "magnetar/interop/stage"
)

func registerFranz(families Families) {
	families["franz.records"] = franzRecords
	families["franz.order"] = franzOrder
	families["franz.large"] = franzLarge
	families["franz.many"] = franzMany
	families["franz.transactions"] = franzTransactions
	families["franz.fenced"] = franzFenced
	families["franz.copy"] = franzCopy
}

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// franz is a client of the scene's server that hears of new topics, and is back after a restart, at once.
func franz(scene *Scene, options ...kgo.Opt) *kgo.Client {
	return Must(kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(scene.URL),
		kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, options...)...))
}

func makeTopic(scene *Scene, client *kgo.Client, name string, partitions int) {
	Must(kadm.NewClient(client).CreateTopic(scene.Ctx, int32(partitions), 1, nil, name))
}

// poll until so many records have come.
func poll(scene *Scene, client *kgo.Client, count int) []*kgo.Record {
	var found []*kgo.Record
	for len(found) < count {
		fetches := client.PollFetches(scene.Ctx)
		if err := fetches.Err(); err != nil {
			panic(fmt.Errorf("%d of %d records, then %w", len(found), count, err))
		}
		found = append(found, fetches.Records()...)
	}
	return found
}

func number(record *kgo.Record) int {
	return Must(strconv.Atoi(string(record.Value)))
}

func values(records []*kgo.Record) []string {
	found := make([]string, len(records))
	for at, one := range records {
		found[at] = string(one.Value)
	}
	return found
}

func send(scene *Scene, client *kgo.Client, values ...string) {
	for _, value := range values {
		Check(client.ProduceSync(scene.Ctx, kgo.StringRecord(value)).FirstErr())
	}
}

func errorName(err error) string {
	var named *kerr.Error
	if errors.As(err, &named) {
		return named.Message
	}
	return ErrorOf(err)
}

func text(value []byte) any {
	if value == nil {
		return nil
	}
	return string(value)
}

// Keys, headers, times, null and empty ones, in one batch of each codec.
func franzRecords(scene *Scene) any {
	client := franz(scene, kgo.ConsumeTopics(scene.Topic), kgo.AllowAutoTopicCreation(),
		kgo.ProducerBatchCompression(franzCodecs[scene.Text("codec", "none")]), kgo.ProducerLinger(50*time.Millisecond))
	defer client.Close()
	when := time.UnixMilli(1_600_000_000_000)
	padding := string(make([]byte, 2_000))
	headers := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: nil}, {Key: "", Value: []byte{}}}
	Check(client.ProduceSync(scene.Ctx,
		&kgo.Record{Topic: scene.Topic, Key: []byte("k"), Value: nil, Headers: headers, Timestamp: when},
		&kgo.Record{Topic: scene.Topic, Key: nil, Value: []byte{}, Timestamp: when},
		&kgo.Record{Topic: scene.Topic, Key: []byte{}, Value: []byte("v"), Timestamp: when},
		&kgo.Record{Topic: scene.Topic, Key: []byte("long"), Value: []byte(padding), Timestamp: when},
	).FirstErr())
	seen := [][]any{}
	for _, one := range poll(scene, client, 4) {
		value := text(one.Value)
		if value == padding {
			value = "padding"
		}
		told := []any{}
		for _, header := range one.Headers {
			told = append(told, []any{header.Key, text(header.Value)})
		}
		seen = append(seen, []any{one.Offset, one.Timestamp.UnixMilli(), text(one.Key), value, told, one.Attrs.CompressionType()})
	}
	return seen
}

// The idempotent producer has many requests in flight; keys stay in their partitions, in order.
func franzOrder(scene *Scene) any {
	count, keys := scene.Number("count", 5_000), 10
	client := franz(scene, kgo.ConsumeTopics(scene.Topic), kgo.ProducerBatchMaxBytes(10_000))
	defer client.Close()
	makeTopic(scene, client, scene.Topic, 4)
	for at := range count {
		client.Produce(scene.Ctx, &kgo.Record{
			Topic: scene.Topic, Key: []byte(strconv.Itoa(at % keys)), Value: []byte(strconv.Itoa(at)),
		}, func(_ *kgo.Record, err error) { Check(err) })
	}
	Check(client.Flush(scene.Ctx))
	last, homes := map[string]int{}, map[string]int32{}
	for _, one := range poll(scene, client, count) {
		key := string(one.Key)
		if home, known := homes[key]; known && (home != one.Partition || number(one) != last[key]+keys) {
			return fmt.Sprintf("%s: %d after %d", key, number(one), last[key])
		}
		homes[key], last[key] = one.Partition, number(one)
	}
	return len(last)
}

// Ten records near the limit that Kafka has, and one beyond it.
func franzLarge(scene *Scene) any {
	client := franz(scene, kgo.ConsumeTopics(scene.Topic), kgo.AllowAutoTopicCreation(), kgo.ProducerBatchMaxBytes(20<<20),
		kgo.DefaultProduceTopic(scene.Topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer client.Close()
	large := make([]byte, 1_000_000)
	for at := range 10 {
		large[0], large[len(large)-1] = byte(at), byte(at)
		Check(client.ProduceSync(scene.Ctx, &kgo.Record{Value: append([]byte{}, large...)}).FirstErr())
	}
	refused := client.ProduceSync(scene.Ctx, &kgo.Record{Value: make([]byte, 2_000_000)}).FirstErr()
	whole := 0
	for at, one := range poll(scene, client, 10) {
		if len(one.Value) == len(large) && one.Value[0] == byte(at) && one.Value[len(large)-1] == byte(at) {
			whole++
		}
	}
	return []any{whole, errorName(refused)}
}

// One client writes to and reads from a hundred partitions.
func franzMany(scene *Scene) any {
	partitions := scene.Number("partitions", 100)
	client := franz(scene, kgo.ConsumeTopics(scene.Topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer client.Close()
	makeTopic(scene, client, scene.Topic, partitions)
	for at := range partitions * 10 {
		record := &kgo.Record{Topic: scene.Topic, Partition: int32(at % partitions), Value: []byte("v")}
		client.Produce(scene.Ctx, record, func(_ *kgo.Record, err error) { Check(err) })
	}
	Check(client.Flush(scene.Ctx))
	ends := map[int32]int64{}
	for _, one := range poll(scene, client, partitions*10) {
		ends[one.Partition] = max(ends[one.Partition], one.Offset+1)
	}
	least := int64(10)
	for _, end := range ends {
		least = min(least, end)
	}
	return []any{len(ends), least}
}

// One transaction commits, one aborts; what readers of each isolation get.
func franzTransactions(scene *Scene) any {
	writer := franz(scene, kgo.TransactionalID(scene.Topic), kgo.DefaultProduceTopic(scene.Topic), kgo.AllowAutoTopicCreation())
	defer writer.Close()
	for at := range 4 {
		Check(writer.BeginTransaction())
		send(scene, writer, strconv.Itoa(at))
		Check(writer.EndTransaction(scene.Ctx, kgo.TransactionEndTry(at%2 == 0)))
	}
	all := franz(scene, kgo.ConsumeTopics(scene.Topic))
	defer all.Close()
	committed := franz(scene, kgo.ConsumeTopics(scene.Topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer committed.Close()
	seen := map[string]any{"all": values(poll(scene, all, 4)), "committed": values(poll(scene, committed, 2))}
	Check(writer.BeginTransaction())
	send(scene, writer, "open")
	tool := kadm.NewClient(all)
	stable, _ := Must(tool.ListCommittedOffsets(scene.Ctx, scene.Topic)).Lookup(scene.Topic, 0)
	end, _ := Must(tool.ListEndOffsets(scene.Ctx, scene.Topic)).Lookup(scene.Topic, 0)
	described := Must(tool.DescribeTransactions(scene.Ctx, scene.Topic))[scene.Topic]
	listed := Must(tool.ListTransactions(scene.Ctx, nil, []string{"Ongoing"}))[scene.Topic]
	Check(writer.EndTransaction(scene.Ctx, kgo.TryAbort))
	seen["open"] = []any{end.Offset - stable.Offset, described.State, listed.State}
	return seen
}

// An heir of the same name goes on; the elder one is told so.
func franzFenced(scene *Scene) any {
	options := []kgo.Opt{kgo.TransactionalID(scene.Topic), kgo.DefaultProduceTopic(scene.Topic), kgo.AllowAutoTopicCreation()}
	elder, heir := franz(scene, options...), franz(scene, options...)
	defer elder.Close()
	defer heir.Close()
	Check(elder.BeginTransaction())
	send(scene, elder, "elder")
	Check(heir.BeginTransaction())
	send(scene, heir, "heir")
	Check(heir.EndTransaction(scene.Ctx, kgo.TryCommit))
	failed := elder.ProduceSync(scene.Ctx, kgo.StringRecord("zombie")).FirstErr()
	reader := franz(scene, kgo.ConsumeTopics(scene.Topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer reader.Close()
	return []any{errorName(failed), values(poll(scene, reader, 1))}
}

// Two sessions of one group copy from topic to topic; the second comes when the first is at work, and the first leaves.
func franzCopy(scene *Scene) any {
	count, target := scene.Number("count", 400), scene.Topic+"-copy"
	tool := franz(scene, kgo.ConsumeTopics(target), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer tool.Close()
	makeTopic(scene, tool, scene.Topic, 4)
	makeTopic(scene, tool, target, 4)
	for at := range count {
		tool.Produce(scene.Ctx, &kgo.Record{Topic: scene.Topic, Value: []byte(strconv.Itoa(at))}, nil)
	}
	Check(tool.Flush(scene.Ctx))
	session := func(name string) *kgo.GroupTransactSession {
		return Must(kgo.NewGroupTransactSession(kgo.SeedBrokers(scene.URL), kgo.ConsumerGroup(scene.Topic),
			kgo.ConsumeTopics(scene.Topic), kgo.TransactionalID(name), kgo.DefaultProduceTopic(target),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RequireStableFetchOffsets(), kgo.HeartbeatInterval(200*time.Millisecond)))
	}
	first, second := session(scene.Topic+"-1"), session(scene.Topic+"-2")
	done := make(chan any)
	polling, stop := context.WithCancel(scene.Ctx) // a transaction that is on its way is ended
	defer stop()
	copying := func(one *kgo.GroupTransactSession, most int) {
		defer func() { done <- recover() }()
		defer one.Close()
		for copied := 0; copied < most; {
			fetches := one.PollRecords(polling, 20)
			if polling.Err() != nil {
				return
			}
			Check(one.Begin())
			fetches.EachRecord(func(record *kgo.Record) {
				one.Produce(scene.Ctx, &kgo.Record{Value: record.Value}, nil)
			})
			if Must(one.End(scene.Ctx, kgo.TryCommit)) {
				copied += fetches.NumRecords()
			}
		}
	}
	go copying(first, 100)
	go copying(second, count)
	var copies []int
	for _, one := range poll(scene, tool, count) {
		copies = append(copies, number(one))
	}
	stop()
	for range 2 {
		if failed := <-done; failed != nil {
			panic(failed)
		}
	}
	sort.Ints(copies)
	for at, one := range copies {
		if at != one {
			return fmt.Sprintf("%d is copy %d", one, at)
		}
	}
	return len(copies)
}
