package main

import (
	"fmt"
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	. "magnetar/interop/stage"
)

func registerSubscribing(families Families) {
	families["subscribe.exclusive"] = alone
	families["subscribe.shared"] = shared
	families["subscribe.failover"] = failover
	families["subscribe.keyed"] = keyed
	families["subscribe.sticky"] = sticky
	families["subscribe.partitions"] = partitions
	families["subscribe.pattern"] = pattern
	families["subscribe.queues"] = queues
}

// Who comes second is refused, and may come when the first has gone.
func alone(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	first := subscribe(scene, client, pulsar.ConsumerOptions{})
	_, err := client.Subscribe(pulsar.ConsumerOptions{Topic: scene.Topic, SubscriptionName: "s"})
	first.Close()
	second := subscribe(scene, client, pulsar.ConsumerOptions{})
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{}), 0, 2)
	found := bodies(receive(scene, second, 2))
	Check(second.Unsubscribe())
	return []any{ErrorOf(err), found}
}

// Two share; what one leaves behind the other gets.
func shared(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	first := subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.Shared, ReceiverQueueSize: 10})
	second := subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.Shared, ReceiverQueueSize: 10})
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: true}), 0, 20)
	held := receive(scene, first, 5)
	ackAll(first, held[:2])
	first.Close()
	found := append(held[:2], receive(scene, second, 18)...)
	seen := bodies(found)
	sort.Slice(seen, func(a, b int) bool { return Must(strconv.Atoi(seen[a])) < Must(strconv.Atoi(seen[b])) })
	return []any{seen, rest(scene, second)}
}

type listener struct {
	lock sync.Mutex
	said []string
	name string
}

func (one *listener) BecameActive(pulsar.Consumer, string, int32) { one.say("active") }

func (one *listener) BecameInactive(pulsar.Consumer, string, int32) { one.say("inactive") }

func (one *listener) say(what string) {
	one.lock.Lock()
	defer one.lock.Unlock()
	one.said = append(one.said, what)
}

func (one *listener) heard() []string {
	one.lock.Lock()
	defer one.lock.Unlock()
	return append([]string{}, one.said...)
}

// One is active, the other hears that it is when the first goes, and goes on where it stopped.
func failover(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	join := func(name string) (pulsar.Consumer, *listener) {
		hears := &listener{name: name}
		return subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.Failover, Name: name, EventListener: hears,
			AckWithResponse: true}), hears
	}
	first, hears := join("a")
	second, waits := join("b")
	scene.Until("both have heard", func() bool { return len(hears.heard()) > 0 && len(waits.heard()) > 0 })
	if said := waits.heard(); said[len(said)-1] == "active" { // the ring of their names says who is
		first, second, hears, waits = second, first, waits, hears
	}
	before := []string{hears.heard()[len(hears.heard())-1], waits.heard()[len(waits.heard())-1]}
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: true}), 0, 6)
	found := receive(scene, first, 6)
	ackAll(first, found[:3])
	first.Close()
	heir := bodies(receive(scene, second, 3))
	scene.Until("the heir has heard", func() bool { said := waits.heard(); return said[len(said)-1] == "active" })
	return []any{before, bodies(found[:3]), heir}
}

// Each key has one consumer, in order, also when one comes and when it goes.
func keyed(scene *Scene) any {
	keys, count := 20, 600
	client := connect(scene)
	defer client.Close()
	producer := produce(scene, client, pulsar.ProducerOptions{BatcherBuilderType: pulsar.KeyBasedBatchBuilder})
	var lock sync.Mutex
	last, homes, seen, crimes := map[string]int{}, map[string]map[string]bool{}, 0, []string{}
	join := func(name string) pulsar.Consumer {
		consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.KeyShared, Name: name, AckWithResponse: true,
			KeySharedPolicy: &pulsar.KeySharedPolicy{Mode: pulsar.KeySharedPolicyModeAutoSplit}})
		go func() {
			for scene.Ctx.Err() == nil {
				one, err := consumer.Receive(scene.Ctx)
				if err != nil {
					return
				}
				number := Must(strconv.Atoi(string(one.Payload())))
				lock.Lock()
				if before, known := last[one.Key()]; known && number != before+keys {
					crimes = append(crimes, fmt.Sprintf("%d after %d", number, before))
				}
				if homes[one.Key()] == nil {
					homes[one.Key()] = map[string]bool{}
				}
				homes[one.Key()][name] = true
				last[one.Key()] = number
				seen++
				lock.Unlock()
				Check(consumer.Ack(one))
			}
		}()
		return consumer
	}
	fill := func(first, end int) {
		for at := first; at < end; at++ {
			producer.SendAsync(scene.Ctx, &pulsar.ProducerMessage{Key: strconv.Itoa(at % keys), Payload: body(at).Payload},
				func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { Check(err) })
		}
		Check(producer.Flush())
		scene.Until("all has come", func() bool { lock.Lock(); defer lock.Unlock(); return seen >= end })
	}
	join("a")
	b := join("b")
	fill(0, count/3)
	alone := true
	lock.Lock()
	for _, home := range homes {
		alone = alone && len(home) == 1
	}
	lock.Unlock()
	join("c")
	fill(count/3, 2*count/3)
	b.Close()
	fill(2*count/3, count)
	return []any{seen, crimes, alone}
}

// Ranges of hashes that consumers chose.
func sticky(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	join := func(ranges ...int) pulsar.Consumer {
		return subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.KeyShared,
			KeySharedPolicy: Must(pulsar.NewKeySharedPolicySticky(ranges))})
	}
	low, high := join(0, 32767), join(32768, 65535)
	_, err := client.Subscribe(pulsar.ConsumerOptions{Topic: scene.Topic, SubscriptionName: "s", Type: pulsar.KeyShared,
		KeySharedPolicy: Must(pulsar.NewKeySharedPolicySticky([]int{100, 200}))})
	producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: true})
	for at := range 40 {
		Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Key: strconv.Itoa(at), Payload: body(at).Payload}))
	}
	left, right := rest(scene, low), rest(scene, high)
	return []any{len(left) + len(right), len(left) > 5, len(right) > 5, err != nil}
}

// Partitions that the test has made; it makes more, which are found.
func partitions(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Shared")],
		AutoDiscoveryPeriod: time.Second})
	producer := produce(scene, client, pulsar.ProducerOptions{PartitionsAutoDiscoveryInterval: time.Second, DisableBatching: true,
		MessageRouter: func(message *pulsar.ProducerMessage, topic pulsar.TopicMetadata) int {
			return Must(strconv.Atoi(string(message.Payload))) % int(topic.NumPartitions())
		}})
	spread := func(messages []pulsar.Message) map[string]int {
		found := map[string]int{}
		for _, one := range messages {
			found[strconv.Itoa(int(one.ID().PartitionIdx()))]++
		}
		return found
	}
	sendNumbers(scene, producer, 0, 30)
	found := receive(scene, consumer, 30)
	ackAll(consumer, found)
	seen := []any{len(Must(client.TopicPartitions(scene.Topic))), spread(found)}
	scene.Tell("read", nil)
	scene.Await("grown")
	later := map[string]int{}
	scene.Until("the new ones are used", func() bool {
		sendNumbers(scene, producer, 0, 5)
		found := receive(scene, consumer, 5)
		ackAll(consumer, found)
		later = spread(found)
		return len(later) == 5
	})
	return append(seen, len(later))
}

// Topics by a pattern; one comes later.
func pattern(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	fill := func(name string) {
		producer := produce(scene, client, pulsar.ProducerOptions{Topic: scene.Topic + name})
		defer producer.Close()
		Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Payload: []byte(name)}))
	}
	fill("-a")
	fill("-b")
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{TopicsPattern: "persistent://public/default/" + scene.Topic + "-.*",
		AutoDiscoveryPeriod: time.Second})
	found := bodies(receive(scene, consumer, 2))
	fill("-c")
	found = append(found, bodies(receive(scene, consumer, 1))...)
	sort.Strings(found)
	several := subscribe(scene, client, pulsar.ConsumerOptions{Topics: []string{scene.Topic + "-a", scene.Topic + "-b"},
		SubscriptionName: "several"})
	both := bodies(receive(scene, several, 2))
	sort.Strings(both)
	return []any{found, both}
}

// Queues of one, of none, and one that grows by itself.
func queues(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: true}), 0, 50)
	counts := []int{}
	for at, options := range []pulsar.ConsumerOptions{{ReceiverQueueSize: 1}, {EnableZeroQueueConsumer: true},
		{EnableAutoScaledReceiverQueueSize: true}} {
		options.SubscriptionName = strconv.Itoa(at)
		found := receive(scene, subscribe(scene, client, options), 50)
		counts = append(counts, len(found))
	}
	return counts
}
