package main

import (
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"

	. "magnetar/interop/stage"
)

// A producer sends so many more than it was asked for, and then waits until it is asked again.
const aheadMax = 500

const drainSeconds = 45

func typeOf(value any) reflect.Type { return reflect.TypeOf(value) }

func registerCrashing(families Families) {
	families["crash.work"] = crashWork
}

// Work that goes on while the test stops, kills and starts the server, noted for the judge (interop_tests/crash/history.py):
// messages as number, when sent, when confirmed, and id; and what came as number, id, when, and when its acknowledgement
// was confirmed.
func crashWork(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	var lock sync.Mutex
	sent, got, seen := [][]any{}, [][]any{}, map[int]bool{}
	locked := func(action func()) { lock.Lock(); defer lock.Unlock(); action() }
	producer := produce(scene, client, pulsar.ProducerOptions{DisableBatching: !scene.Flag("batched"), SendTimeout: -1,
		MaxPendingMessages: 200, BackOffPolicyFunc: soon})
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Exclusive")],
		// without, this client says that a part of a batch is acknowledged, and tells nobody before the whole is
		EnableBatchIndexAcknowledgment: true, AckWithResponse: true, BackOffPolicyFunc: soon,
		ReceiverQueueSize: scene.Number("queue", 0)})
	go func() {
		for scene.Ctx.Err() == nil {
			message, err := consumer.Receive(scene.Ctx)
			if err != nil {
				return
			}
			number, at := Must(strconv.Atoi(string(message.Payload()))), now()
			one := []any{number, id(message.ID()), at, 0.0}
			locked(func() { got = append(got, one); seen[number] = true })
			if consumer.Ack(message) == nil { // else it comes again
				locked(func() { one[3] = now() })
			}
		}
	}()
	more, goal, asked, count := scene.Number("more", 300), 0, false, 0
	stored := func() (known int) { locked(func() { known = len(sent) }); return }
	for ended := false; !ended; {
		select {
		case heard := <-scene.Heard():
			ended = heard == "end"
			goal, asked = stored()+more, true
			continue
		default:
		}
		if asked && stored() >= goal {
			asked = false
			scene.Tell("more", goal)
		}
		if count >= goal+aheadMax {
			time.Sleep(time.Millisecond)
			continue
		}
		number, began := count, now()
		count++
		message := body(number)
		message.Key = strconv.Itoa(number % 10) // Key_Shared keeps the order of each key
		producer.SendAsync(scene.Ctx, message, func(stored pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			Check(err)
			locked(func() { sent = append(sent, []any{number, began, now(), id(stored)}) })
		})
	}
	deadline := time.Now().Add(drainSeconds * time.Second)
	for done := false; !done && time.Now().Before(deadline); {
		locked(func() { done = len(sent) == count && len(seen) == count })
		time.Sleep(20 * time.Millisecond)
	}
	lock.Lock()
	defer lock.Unlock()
	return map[string]any{"sent": sent, "got": got, "count": count}
}

func now() float64 { return float64(time.Now().UnixNano()) / 1e9 }

func id(one pulsar.MessageID) string {
	return fmt.Sprintf("%d:%d:%d", one.LedgerID(), one.EntryID(), one.BatchIdx())
}

type often struct{}

func (often) Next() time.Duration { return 50 * time.Millisecond }

func (often) IsMaxBackoffReached() bool { return false }

func (often) Reset() {}

func soon() backoff.Policy { return often{} }
