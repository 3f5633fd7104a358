package main

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/IBM/sarama"

	. "magnetar/interop/stage"
)

func registerSaramaGroups(families Families) {
	families["sarama.share"] = saramaShare
}

// saramaMember of a group reads and commits until it leaves, and knows what is its own.
type saramaMember struct {
	group sarama.ConsumerGroup
	got   func(*sarama.ConsumerMessage)
	lock  sync.Mutex
	own   map[int32]bool
	ended chan any
}

var saramaStrategies = map[string]sarama.BalanceStrategy{
	"range": sarama.NewBalanceStrategyRange(), "roundrobin": sarama.NewBalanceStrategyRoundRobin(),
	"sticky": sarama.NewBalanceStrategySticky(),
}

func saramaJoin(scene *Scene, got func(*sarama.ConsumerMessage)) *saramaMember {
	config := saramaConfig(scene)
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{saramaStrategies[scene.Text("kind", "range")]}
	one := &saramaMember{group: Must(sarama.NewConsumerGroup([]string{scene.URL}, scene.Topic, config)), got: got,
		ended: make(chan any, 1)}
	go func() {
		defer func() { one.ended <- recover() }()
		for {
			err := one.group.Consume(scene.Ctx, []string{scene.Topic}, one)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) || scene.Ctx.Err() != nil {
				return
			}
			Check(err)
		}
	}()
	return one
}

// Setup hears what is its own from now on.
func (one *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	one.lock.Lock()
	defer one.lock.Unlock()
	one.own = map[int32]bool{}
	for _, claims := range session.Claims() {
		for _, partition := range claims {
			one.own[partition] = true
		}
	}
	return nil
}

// Cleanup hears that nothing is.
func (one *saramaMember) Cleanup(sarama.ConsumerGroupSession) error {
	one.lock.Lock()
	defer one.lock.Unlock()
	one.own = nil
	return nil
}

// ConsumeClaim reads a partition while it is its own.
func (one *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, open := <-claim.Messages():
			if !open {
				return nil
			}
			one.got(record)
			session.MarkMessage(record, "")
			session.Commit()
		case <-session.Context().Done():
			return nil
		}
	}
}

func (one *saramaMember) owns() int {
	one.lock.Lock()
	defer one.lock.Unlock()
	return len(one.own)
}

func (one *saramaMember) leave() {
	Check(one.group.Close())
	if failed := <-one.ended; failed != nil && !errors.Is(failed.(error), context.Canceled) {
		panic(failed)
	}
}

// Two members share partitions while records come, one leaves, the other has all; nothing is lost.
func saramaShare(scene *Scene) any {
	partitions := 6
	saramaTopic(scene, scene.Topic, partitions)
	producer := saramaProducer(scene, saramaConfig(scene))
	defer producer.Close()
	var lock sync.Mutex
	seen := map[string]int{}
	fill := func(first, end int) {
		for at := first; at < end; at++ {
			Check(saramaSend(scene, producer, strconv.Itoa(at)))
		}
	}
	has := func(count int) func() bool {
		return func() bool {
			lock.Lock()
			defer lock.Unlock()
			return len(seen) == count
		}
	}
	got := func(record *sarama.ConsumerMessage) {
		lock.Lock()
		defer lock.Unlock()
		seen[string(record.Value)]++
	}
	first := saramaJoin(scene, got)
	scene.Until("the first has all", func() bool { return first.owns() == partitions })
	fill(0, 60)
	second := saramaJoin(scene, got)
	scene.Until("both have half", func() bool { return first.owns() == 3 && second.owns() == 3 })
	fill(60, 120)
	scene.Until("all has come", has(120))
	first.leave()
	scene.Until("the second has all", func() bool { return second.owns() == partitions })
	fill(120, 180)
	scene.Until("the rest has come", has(180))
	second.leave()
	return len(seen)
}
