package main

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	. "magnetar/interop/stage"
	"strconv"
)

const (
	crashPartitions = 3
	inFlightMax     = 200
	// The producer sends so many more than it was asked for, and then waits until it is asked again.
	aheadMax     = 500
	drainSeconds = 45
)

// Work goes on while the test stops, kills and starts the server: an idempotent producer and a member of a group, which
// note what they did for the judge (interop_tests/kafka/crash/history.py): records as partition, offset and number,
// commits as partition and offset.
type crashing struct {
	scene        *Scene
	lock         sync.Mutex
	acknowledged [][]int64
	events       [][]int64
	ends         [crashPartitions]int64
	failed       error
}

func registerCrashing(families Families) {
	families["franz.crash"] = franzCrash
	families["sarama.crash"] = saramaCrash
}

func (work *crashing) locked(action func()) {
	work.lock.Lock()
	defer work.lock.Unlock()
	action()
}

func (work *crashing) confirmed() (count int) {
	work.locked(func() { count = len(work.acknowledged); Check(work.failed) })
	return
}

func (work *crashing) read() (total int64) {
	work.locked(func() { total = work.ends[0] + work.ends[1] + work.ends[2] })
	return
}

func (work *crashing) got(partition int32, offset int64, value []byte) {
	number := Must(strconv.ParseInt(string(value), 10, 64))
	work.locked(func() {
		work.events = append(work.events, []int64{int64(partition), offset, number})
		work.ends[partition] = max(work.ends[partition], offset+1)
	})
}

func (work *crashing) committed(partition int32, offset int64) {
	work.locked(func() { work.events = append(work.events, []int64{int64(partition), offset}) })
}

// send until the test says that it is enough; how many were sent. `produce` calls `done` once.
func (work *crashing) send(produce func(partition int32, number int64, done func(offset int64, err error))) int64 {
	room := make(chan bool, inFlightMax)
	more, goal, asked, count := work.scene.Number("more", 300), 0, false, int64(0)
	for {
		select {
		case heard := <-work.scene.Heard():
			if heard == "end" {
				return count
			}
			goal, asked = work.confirmed()+more, true
		default:
		}
		if asked && work.confirmed() >= goal {
			asked = false
			work.scene.Tell("more", goal)
		}
		if count >= int64(goal+aheadMax) {
			time.Sleep(time.Millisecond)
			continue
		}
		select {
		case room <- true:
		case <-time.After(20 * time.Millisecond):
			continue
		}
		partition, number := int32(count%crashPartitions), count/crashPartitions
		count++
		produce(partition, number, func(offset int64, err error) {
			<-room
			work.locked(func() {
				if err != nil {
					work.failed = err
				}
				work.acknowledged = append(work.acknowledged, []int64{int64(partition), offset, number})
			})
		})
	}
}

// drain: all that was sent has been confirmed and read, or time is over.
func (work *crashing) drain(count int64) {
	deadline := time.Now().Add(drainSeconds * time.Second)
	for (work.read() < count || work.confirmed() < int(count)) && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
}

func (work *crashing) notes(count int64, found [][]int64) any {
	work.lock.Lock()
	defer work.lock.Unlock()
	return map[string]any{"acknowledged": work.acknowledged, "events": work.events, "found": found, "count": count}
}

func franzCrash(scene *Scene) any {
	work := &crashing{scene: scene}
	producer := franz(scene, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(2*time.Millisecond),
		kgo.ProducerBatchCompression(franzCodecs[scene.Text("codec", "none")]))
	defer producer.Close()
	reader := franz(scene, append(groupOptions(scene), kgo.ConsumeTopics(scene.Topic))...)
	stop, ended := context.WithCancel(scene.Ctx)
	reading := make(chan bool)
	go func() {
		defer close(reading)
		for stop.Err() == nil {
			fetches := reader.PollRecords(stop, 100)
			fetches.EachRecord(func(one *kgo.Record) { work.got(one.Partition, one.Offset, one.Value) })
			said := reader.UncommittedOffsets()
			if reader.CommitUncommittedOffsets(stop) == nil { // else some later commit will tell
				for partition, offset := range said[scene.Topic] {
					work.committed(partition, offset.Offset)
				}
			}
		}
	}()
	count := work.send(func(partition int32, number int64, done func(int64, error)) {
		record := &kgo.Record{Topic: scene.Topic, Partition: partition, Value: strconv.AppendInt(nil, number, 10)}
		producer.Produce(scene.Ctx, record, func(stored *kgo.Record, err error) { done(stored.Offset, err) })
	})
	work.drain(count)
	ended()
	<-reading
	reader.Close()
	all := franz(scene, kgo.ConsumeTopics(scene.Topic))
	defer all.Close()
	found := [][]int64{}
	for _, one := range poll(scene, all, int(count)) {
		found = append(found, []int64{int64(one.Partition), one.Offset, int64(number(one))})
	}
	return work.notes(count, found)
}

func saramaCrash(scene *Scene) any {
	work := &crashing{scene: scene}
	config := saramaConfig(scene)
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Compression = saramaCodecs[scene.Text("codec", "none")]
	producer := Must(sarama.NewAsyncProducer([]string{scene.URL}, config))
	go func() {
		for one := range producer.Successes() {
			one.Metadata.(func(int64, error))(one.Offset, nil)
		}
	}()
	go func() {
		for one := range producer.Errors() {
			one.Msg.Metadata.(func(int64, error))(-1, one.Err)
		}
	}()
	reader := saramaJoin(scene, func(one *sarama.ConsumerMessage) { work.got(one.Partition, one.Offset, one.Value) })
	count := work.send(func(partition int32, number int64, done func(int64, error)) {
		value := sarama.ByteEncoder(strconv.AppendInt(nil, number, 10))
		producer.Input() <- &sarama.ProducerMessage{Topic: scene.Topic, Partition: partition, Value: value, Metadata: done}
	})
	work.drain(count)
	Check(reader.group.Close())
	<-reader.ended
	Check(producer.Close())
	found := [][]int64{}
	for partition := range int32(crashPartitions) {
		for _, one := range saramaRead(scene, config, partition, sarama.OffsetOldest, int(count+2-int64(partition))/crashPartitions) {
			number := Must(strconv.ParseInt(string(one.Value), 10, 64))
			found = append(found, []int64{int64(partition), one.Offset, number})
		}
	}
	return work.notes(count, found)
}
