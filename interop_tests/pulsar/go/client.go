package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	. "magnetar/interop/stage"
)

// Nothing more comes: so long.
const nothing = 300 * time.Millisecond

var quiet = log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))

var types = map[string]pulsar.SubscriptionType{"Exclusive": pulsar.Exclusive, "Shared": pulsar.Shared,
	"Failover": pulsar.Failover, "Key_Shared": pulsar.KeyShared}

func connect(scene *Scene) pulsar.Client {
	return Must(pulsar.NewClient(pulsar.ClientOptions{URL: scene.URL, Logger: quiet, OperationTimeout: 15 * time.Second}))
}

func produce(scene *Scene, client pulsar.Client, options pulsar.ProducerOptions) pulsar.Producer {
	if options.Topic == "" {
		options.Topic = scene.Topic
	}
	return Must(client.CreateProducer(options))
}

// subscribe from the beginning, by the name "s" unless another is given.
func subscribe(scene *Scene, client pulsar.Client, options pulsar.ConsumerOptions) pulsar.Consumer {
	if options.Topic == "" && options.TopicsPattern == "" && options.Topics == nil {
		options.Topic = scene.Topic
	}
	if options.SubscriptionName == "" {
		options.SubscriptionName = "s"
	}
	options.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	return Must(client.Subscribe(options))
}

func body(number int) *pulsar.ProducerMessage {
	return &pulsar.ProducerMessage{Payload: []byte(strconv.Itoa(number))}
}

// sendNumbers `first`, ... before `end`, all confirmed.
func sendNumbers(scene *Scene, producer pulsar.Producer, first, end int) {
	for number := first; number < end; number++ {
		producer.SendAsync(scene.Ctx, body(number), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			Check(err)
		})
	}
	Check(producer.FlushWithCtx(scene.Ctx))
}

func receive(scene *Scene, consumer pulsar.Consumer, count int) []pulsar.Message {
	found := []pulsar.Message{}
	for len(found) < count {
		message, err := consumer.Receive(scene.Ctx)
		if err != nil {
			panic(fmt.Errorf("%d of %d messages, then %w", len(found), count, err))
		}
		found = append(found, message)
	}
	return found
}

func bodies(messages []pulsar.Message) []string {
	found := []string{}
	for _, one := range messages {
		found = append(found, string(one.Payload()))
	}
	return found
}

// rest that comes until nothing does for a moment.
func rest(scene *Scene, consumer pulsar.Consumer) []string {
	found := []string{}
	for {
		moment, cancel := context.WithTimeout(scene.Ctx, nothing)
		message, err := consumer.Receive(moment)
		cancel()
		if err != nil {
			return found
		}
		found = append(found, string(message.Payload()))
	}
}

// ackAll with receipts.
func ackAll(consumer pulsar.Consumer, messages []pulsar.Message) {
	for _, one := range messages {
		Check(consumer.Ack(one))
	}
}
