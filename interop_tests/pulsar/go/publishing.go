package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	. "magnetar/interop/stage"
)

func registerPublishing(families Families) {
	families["publish.many"] = many
	families["publish.carries"] = carries
	families["publish.chunks"] = chunks
	families["publish.later"] = later
	families["publish.volatile"] = volatile
	families["publish.exclusive"] = exclusive
	families["publish.terminated"] = terminated
}

var codecs = map[string]pulsar.CompressionType{"none": pulsar.NoCompression, "lz4": pulsar.LZ4, "zlib": pulsar.ZLib,
	"zstd": pulsar.ZSTD, "snappy": pulsar.SNAPPY}

// Thousands, batched or not, of each codec: in order.
func many(scene *Scene) any {
	count := scene.Number("count", 5_000)
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{})
	producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: !scene.Flag("batched"),
		CompressionType: codecs[scene.Text("codec", "none")]})
	sendNumbers(scene, producer, 0, count)
	found := receive(scene, consumer, count)
	inOrder := true
	for at, one := range found {
		inOrder = inOrder && string(one.Payload()) == string(body(at).Payload)
	}
	Check(consumer.AckCumulative(found[count-1]))
	return []any{inOrder, rest(scene, consumer)}
}

func carries(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{})
	producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: !scene.Flag("batched"), Name: scene.Topic + "-sender",
		BatcherBuilderType: pulsar.KeyBasedBatchBuilder})
	sequence := int64(41)
	Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Payload: []byte{}, Key: "the key", OrderingKey: "the order",
		Properties: map[string]string{"one": "1", "zwei": "ü"}, EventTime: time.UnixMilli(1_234_567), SequenceID: &sequence}))
	one := receive(scene, consumer, 1)[0]
	return map[string]any{"key": one.Key(), "ordering_key": one.OrderingKey(), "properties": one.Properties(),
		"event_time": one.EventTime().UnixMilli(), "producer": one.ProducerName(), "topic": one.Topic(),
		"empty": len(one.Payload()) == 0, "sequence": producer.LastSequenceID(), "redelivered": one.RedeliveryCount()}
}

// Two producers send large messages at once, in chunks.
func chunks(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Exclusive")], AckWithResponse: true})
	want, done := [][]byte{}, make(chan any, 2)
	for number := range 2 {
		payload := make([]byte, 12<<20)
		rand.New(rand.NewSource(int64(number))).Read(payload)
		want = append(want, payload)
		producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: true, EnableChunking: true})
		go func() {
			defer func() { done <- recover() }()
			Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Payload: payload}))
		}()
	}
	found := receive(scene, consumer, 2)
	whole := 0
	for _, one := range found {
		if bytes.Equal(one.Payload(), want[0]) || bytes.Equal(one.Payload(), want[1]) {
			whole++
		}
	}
	for range 2 {
		if failed := <-done; failed != nil {
			panic(failed)
		}
	}
	ackAll(consumer, found)
	consumer.Close()
	return []any{whole, rest(scene, subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Exclusive")]}))}
}

func later(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.Shared})
	producer := produce(scene, client, pulsar.ProducerOptions{})
	sent := time.Now()
	late := pulsar.ProducerMessage{Payload: []byte("late"), DeliverAfter: 1_500 * time.Millisecond}
	at := pulsar.ProducerMessage{Payload: []byte("at"), DeliverAt: sent.Add(time.Second)}
	Must(producer.Send(scene.Ctx, &late))
	Must(producer.Send(scene.Ctx, &at))
	Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Payload: []byte("now")}))
	found := bodies(receive(scene, consumer, 3))
	return []any{found, time.Since(sent) >= 1_400*time.Millisecond}
}

func volatile(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	name := "non-persistent://public/default/" + scene.Topic
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Topic: name})
	producer := produce(scene, client, pulsar.ProducerOptions{Topic: name})
	permitted(scene, producer, consumer)
	sendNumbers(scene, producer, 0, 5)
	return bodies(receive(scene, consumer, 5))
}

// This client permits messages some time after it has subscribed, and what nobody is permitted is dropped.
func permitted(scene *Scene, producer pulsar.Producer, consumer pulsar.Consumer) {
	for number := 0; ; number++ {
		probe := fmt.Sprintf("probe %d", number)
		Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Payload: []byte(probe)}))
		if heard(scene, consumer, probe) {
			return
		}
	}
}

func heard(scene *Scene, consumer pulsar.Consumer, body string) bool {
	soon, cancel := context.WithTimeout(scene.Ctx, time.Second)
	defer cancel()
	for {
		message, err := consumer.Receive(soon)
		if err != nil {
			return false
		}
		if string(message.Payload()) == body {
			return true
		}
	}
}

// Who comes second is refused, or waits until the first has gone, or fences him.
func exclusive(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	first := produce(scene, client, pulsar.ProducerOptions{ProducerAccessMode: pulsar.ProducerAccessModeExclusive})
	_, err := client.CreateProducer(pulsar.ProducerOptions{Topic: scene.Topic, ProducerAccessMode: pulsar.ProducerAccessModeExclusive})
	waiting := make(chan pulsar.Producer, 1)
	go func() {
		waiting <- produce(scene, client, pulsar.ProducerOptions{ProducerAccessMode: pulsar.ProducerAccessModeWaitForExclusive})
	}()
	Must(first.Send(scene.Ctx, body(0)))
	early := len(waiting)
	first.Close()
	Must((<-waiting).Send(scene.Ctx, body(1)))
	found := bodies(receive(scene, subscribe(scene, client, pulsar.ConsumerOptions{}), 2))
	return []any{ErrorOf(err), early, found}
}

// The test ends the topic while a producer is attached.
func terminated(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	producer := produce(scene, client, pulsar.ProducerOptions{SendTimeout: 5 * time.Second})
	sendNumbers(scene, producer, 0, 3)
	scene.Tell("sent", nil)
	scene.Await("ended")
	_, refused := producer.Send(scene.Ctx, body(3))
	_, again := client.CreateProducer(pulsar.ProducerOptions{Topic: scene.Topic})
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{})
	return []any{ErrorOf(refused), ErrorOf(again), bodies(receive(scene, consumer, 3)), rest(scene, consumer)}
}
