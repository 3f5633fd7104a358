package main

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	. "magnetar/interop/stage"
)

func registerAcking(families Families) {
	families["ack.each"] = ackEach
	families["ack.batch"] = ackBatch
	families["ack.negative"] = negative
	families["ack.dead"] = dead
	families["ack.retry"] = retry
}

// What was acknowledged does not come again, one by one or all up to it, with a receipt or not.
func ackEach(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	options := pulsar.ConsumerOptions{AckWithResponse: scene.Flag("receipt")}
	consumer := subscribe(scene, client, options)
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: true}), 0, 10)
	found := receive(scene, consumer, 10)
	if scene.Flag("cumulative") {
		Check(consumer.AckCumulative(found[6]))
	} else {
		for _, at := range []int{0, 1, 5, 7} {
			Check(consumer.AckID(found[at].ID()))
		}
		Check(consumer.AckIDList([]pulsar.MessageID{found[2].ID(), found[4].ID()}))
	}
	consumer.Close()
	return rest(scene, subscribe(scene, client, options))
}

// Parts of a batch.
func ackBatch(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	options := pulsar.ConsumerOptions{Type: pulsar.Shared, AckWithResponse: true, EnableBatchIndexAcknowledgment: true}
	consumer := subscribe(scene, client, options)
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{BatchingMaxPublishDelay: time.Second}), 0, 10)
	found := receive(scene, consumer, 10)
	for _, at := range []int{0, 3, 4, 9} {
		Check(consumer.Ack(found[at]))
	}
	consumer.Close()
	return []any{found[0].ID().BatchSize(), rest(scene, subscribe(scene, client, options))}
}

// What is refused comes again, and says how often.
func negative(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Shared")],
		NackRedeliveryDelay: 200 * time.Millisecond, AckWithResponse: true, EnableBatchIndexAcknowledgment: true})
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: !scene.Flag("batched")}), 0, 3)
	found := receive(scene, consumer, 3)
	Check(consumer.Ack(found[0]))
	Check(consumer.Ack(found[2]))
	consumer.Nack(found[1])
	counts := []any{found[1].RedeliveryCount()}
	for range 2 {
		again := receive(scene, consumer, 1)[0]
		counts = append(counts, string(again.Payload()), again.RedeliveryCount())
		consumer.Nack(again)
	}
	Check(consumer.Ack(receive(scene, consumer, 1)[0]))
	return append(counts, rest(scene, consumer))
}

// After so many deliveries it goes to the topic for that.
func dead(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.Shared, NackRedeliveryDelay: 100 * time.Millisecond,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 3, DeadLetterTopic: scene.Topic + "-dead", InitialSubscriptionName: "kept"}})
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: true}), 0, 2)
	deliveries := 0
	go func() {
		for message := range consumer.Chan() {
			deliveries++
			if string(message.Payload()) == "0" {
				Check(consumer.Ack(message))
			} else {
				consumer.Nack(message)
			}
		}
	}()
	letters := subscribe(scene, client, pulsar.ConsumerOptions{Topic: scene.Topic + "-dead", SubscriptionName: "kept"})
	one := receive(scene, letters, 1)[0]
	return []any{string(one.Payload()), deliveries, one.Properties()["REAL_TOPIC"]}
}

// A consumer asks for it later, until it is a dead letter.
func retry(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.Shared, RetryEnable: true,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 2, RetryLetterTopic: scene.Topic + "-retry", DeadLetterTopic: scene.Topic + "-dead"}})
	letters := subscribe(scene, client, pulsar.ConsumerOptions{Topic: scene.Topic + "-dead"})
	Must(produce(scene, client, pulsar.ProducerOptions{}).Send(scene.Ctx, body(7)))
	times := []string{}
	for range 3 {
		one := receive(scene, consumer, 1)[0]
		times = append(times, one.Properties()["RECONSUMETIMES"])
		consumer.ReconsumeLater(one, 100*time.Millisecond)
	}
	return []any{times, bodies(receive(scene, letters, 1))}
}
