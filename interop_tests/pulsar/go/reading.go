package main

import (
	"math"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	. "magnetar/interop/stage"
)

func registerReading(families Families) {
	families["read.all"] = readAll
	families["read.from"] = readFrom
	families["read.seek"] = seek
	families["read.table"] = table
}

func read(scene *Scene, reader pulsar.Reader) []string {
	found := []string{}
	for reader.HasNext() {
		found = append(found, string(Must(reader.Next(scene.Ctx)).Payload()))
	}
	return found
}

// A reader from the beginning, to what is the end when it asks; and one from the end.
func readAll(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: !scene.Flag("batched")})
	sendNumbers(scene, producer, 0, 10)
	all := Must(client.CreateReader(pulsar.ReaderOptions{Topic: scene.Topic, StartMessageID: pulsar.EarliestMessageID()}))
	tail := Must(client.CreateReader(pulsar.ReaderOptions{Topic: scene.Topic, StartMessageID: pulsar.LatestMessageID()}))
	last := Must(client.CreateReader(pulsar.ReaderOptions{Topic: scene.Topic, StartMessageID: pulsar.LatestMessageID(),
		StartMessageIDInclusive: true}))
	seen := []any{read(scene, all), tail.HasNext(), read(scene, last)}
	sendNumbers(scene, producer, 10, 11)
	// a reader at the end knows of more only once something has come (hasMoreMessages of this client)
	return append(seen, string(Must(tail.Next(scene.Ctx)).Payload()), read(scene, all))
}

// Readers from a message, itself or the next, in the middle of a batch too.
func readFrom(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: !scene.Flag("batched"),
		BatchingMaxPublishDelay: time.Second})
	sendNumbers(scene, producer, 0, 10)
	sent := receive(scene, subscribe(scene, client, pulsar.ConsumerOptions{}), 10)
	from := func(inclusive bool) []string {
		kept := Must(pulsar.DeserializeMessageID(sent[6].ID().Serialize()))
		return read(scene, Must(client.CreateReader(pulsar.ReaderOptions{Topic: scene.Topic, StartMessageID: kept,
			StartMessageIDInclusive: inclusive})))
	}
	return []any{from(true), from(false)}
}

// A subscription goes back to a message, to a time, to the beginning and to the end.
func seek(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: true})
	inclusive := scene.Flag("inclusive")
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Exclusive")],
		StartMessageIDInclusive: inclusive})
	sendNumbers(scene, producer, 0, 5)
	found := receive(scene, consumer, 5)
	scene.Until("a millisecond is over", func() bool { return time.Now().After(found[4].PublishTime().Add(2 * time.Millisecond)) })
	between := time.Now()
	sendNumbers(scene, producer, 5, 10)
	found = append(found, receive(scene, consumer, 5)...)
	ackAll(consumer, found)
	Check(consumer.Seek(found[3].ID()))
	left := 6
	if inclusive {
		left = 7
	}
	seen := []any{bodies(receive(scene, consumer, left))}
	Check(consumer.SeekByTime(between))
	seen = append(seen, bodies(receive(scene, consumer, 5)))
	// this client's own names for both ends are of no partition, which its consumers refuse to seek
	Check(consumer.Seek(pulsar.NewMessageID(-1, -1, -1, 0)))
	seen = append(seen, len(receive(scene, consumer, 10)))
	Check(consumer.Seek(pulsar.NewMessageID(math.MaxInt64, math.MaxInt64, -1, 0)))
	seen = append(seen, rest(scene, consumer))
	last := Must(consumer.GetLastMessageIDs())[0]
	return append(seen, last.EntryID() == found[9].ID().EntryID())
}

func table(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	producer := produce(scene, client, pulsar.ProducerOptions{Schema: pulsar.NewStringSchema(nil)})
	set := func(key, value string) {
		Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Key: key, Value: value}))
	}
	set("a", "1")
	set("b", "2")
	set("a", "3")
	text := ""
	view := Must(client.CreateTableView(pulsar.TableViewOptions{Topic: scene.Topic, Schema: pulsar.NewStringSchema(nil),
		SchemaValueType: typeOf(&text), Logger: quiet, AutoUpdatePartitionsInterval: time.Minute}))
	defer view.Close()
	value := func(key string) string { return *view.Get(key).(*string) }
	seen := []any{view.Size(), value("a"), value("b")}
	set("b", "4")
	scene.Until("it has changed", func() bool { return value("b") == "4" })
	return seen
}
