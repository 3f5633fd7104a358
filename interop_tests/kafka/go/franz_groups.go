package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	. "magnetar/interop/stage"
)

func registerFranzGroups(families Families) {
	families["franz.rounds"] = franzRounds
	families["franz.share"] = franzShare
	families["franz.pattern"] = franzPattern
	families["franz.static"] = franzStatic
	families["franz.trickle"] = franzTrickle
}

// groupOptions of the kind of group that the test names.
func groupOptions(scene *Scene) []kgo.Opt {
	options := []kgo.Opt{kgo.ConsumerGroup(scene.Topic), kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(200 * time.Millisecond)}
	switch kind := scene.Text("kind", "cooperative"); kind {
	case "range":
		return append(options, kgo.Balancers(kgo.RangeBalancer()))
	case "roundrobin":
		return append(options, kgo.Balancers(kgo.RoundRobinBalancer()))
	case "sticky":
		return append(options, kgo.Balancers(kgo.StickyBalancer()))
	case "cooperative":
		return append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "consumer":
		return append(options, kgo.ServerSideBalancer())
	default:
		panic(kind)
	}
}

func fill(scene *Scene, client *kgo.Client, first, end int) {
	for at := first; at < end; at++ {
		record := &kgo.Record{Topic: scene.Topic, Key: []byte(strconv.Itoa(at)), Value: []byte(strconv.Itoa(at))}
		client.Produce(scene.Ctx, record, func(_ *kgo.Record, err error) { Check(err) })
	}
	Check(client.Flush(scene.Ctx))
}

// lag of the scene's group. kadm's own word for it knows classic groups only: it asks DescribeGroups for them all, which
// is told since Kafka 4.0 that there is no such (classic) group.
func lag(scene *Scene, client *kgo.Client) (total int64) {
	tool := kadm.NewClient(client)
	if scene.Text("kind", "") != "consumer" {
		lags := Must(tool.Lag(scene.Ctx, scene.Topic))
		Check(lags.Error())
		return lags[scene.Topic].Lag.Total()
	}
	committed := Must(tool.FetchOffsets(scene.Ctx, scene.Topic))
	Must(tool.ListEndOffsets(scene.Ctx, scene.Topic)).Each(func(end kadm.ListedOffset) {
		one, _ := committed.Lookup(end.Topic, end.Partition)
		total += end.Offset - max(one.At, 0)
	})
	return
}

// Members come one after the other, commit and leave; who comes next goes on where they stopped.
func franzRounds(scene *Scene) any {
	tool := franz(scene)
	defer tool.Close()
	makeTopic(scene, tool, scene.Topic, 3)
	seen, lags := map[int]int{}, []int64{}
	for round := range 3 {
		fill(scene, tool, round*100, round*100+100)
		member := franz(scene, append(groupOptions(scene), kgo.ConsumeTopics(scene.Topic))...)
		for _, one := range poll(scene, member, 100) {
			seen[number(one)]++
		}
		Check(member.CommitUncommittedOffsets(scene.Ctx))
		lags = append(lags, lag(scene, tool))
		member.Close()
	}
	again := 0
	for _, times := range seen {
		again += times - 1
	}
	return []any{len(seen), again, lags}
}

// member of a group that reads and commits until it is closed, and knows what is its own.
type member struct {
	client *kgo.Client
	lock   sync.Mutex
	own    map[int32]bool
	stop   context.CancelFunc
	ended  chan any
}

// join with a callback for each record.
func join(scene *Scene, got func(*kgo.Record), options ...kgo.Opt) *member {
	polling, stop := context.WithCancel(scene.Ctx)
	one := &member{own: map[int32]bool{}, stop: stop, ended: make(chan any, 1)}
	change := func(own bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			one.lock.Lock()
			defer one.lock.Unlock()
			for _, partition := range changed[scene.Topic] {
				if own {
					one.own[partition] = true
				} else {
					delete(one.own, partition)
				}
			}
		}
	}
	options = append(options, kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)))
	one.client = franz(scene, append(groupOptions(scene), options...)...)
	go func() {
		defer func() { one.ended <- recover() }()
		for {
			fetches := one.client.PollFetches(polling)
			if polling.Err() != nil && scene.Ctx.Err() == nil {
				return
			}
			Check(fetches.Err())
			fetches.EachRecord(got)
			Check(one.client.CommitUncommittedOffsets(scene.Ctx))
			one.client.AllowRebalance()
		}
	}()
	return one
}

func (one *member) owns() int {
	one.lock.Lock()
	defer one.lock.Unlock()
	return len(one.own)
}

// leave when what was read is committed.
func (one *member) leave() {
	one.stop()
	failed := <-one.ended
	one.client.CloseAllowingRebalance()
	if failed != nil {
		panic(failed)
	}
}

// Two members share partitions while records come, one leaves, the other has all; nothing is lost.
func franzShare(scene *Scene) any {
	partitions := 6
	tool := franz(scene)
	defer tool.Close()
	makeTopic(scene, tool, scene.Topic, partitions)
	var lock sync.Mutex
	seen := map[int]int{}
	got := func(record *kgo.Record) {
		lock.Lock()
		defer lock.Unlock()
		seen[number(record)]++
	}
	has := func(count int) func() bool {
		return func() bool {
			lock.Lock()
			defer lock.Unlock()
			return len(seen) == count
		}
	}
	first := join(scene, got, kgo.ConsumeTopics(scene.Topic))
	scene.Until("the first has all", func() bool { return first.owns() == partitions })
	fill(scene, tool, 0, 200)
	second := join(scene, got, kgo.ConsumeTopics(scene.Topic))
	scene.Until("both have half", func() bool { return first.owns() == 3 && second.owns() == 3 })
	fill(scene, tool, 200, 400)
	scene.Until("all has come", has(400))
	kind := Must(kadm.NewClient(tool).ListGroups(scene.Ctx))[scene.Topic]
	if described := Must(kadm.NewClient(tool).DescribeConsumerGroups(scene.Ctx, scene.Topic))[scene.Topic]; described.Err == nil {
		kind.State = "newer " + described.State
	}
	first.leave()
	scene.Until("the second has all", func() bool { return second.owns() == partitions })
	fill(scene, tool, 400, 600)
	scene.Until("the rest has come", has(600))
	scene.Until("all is committed", func() bool { return lag(scene, tool) == 0 })
	second.leave()
	again := 0
	for _, times := range seen {
		again += times - 1
	}
	return []any{len(seen), again, kind.State}
}

// Members subscribe to topics by a pattern; one comes that fits.
func franzPattern(scene *Scene) any {
	tool := franz(scene)
	defer tool.Close()
	makeTopic(scene, tool, scene.Topic, 2)
	seen := make(chan string, 100)
	one := join(scene, func(record *kgo.Record) { seen <- record.Topic }, kgo.ConsumeRegex(),
		kgo.ConsumeTopics("^"+scene.Topic+".*"), kgo.MetadataMaxAge(time.Second))
	defer one.leave()
	Check(tool.ProduceSync(scene.Ctx, &kgo.Record{Topic: scene.Topic, Value: []byte("v")}).FirstErr())
	found := []string{<-seen}
	makeTopic(scene, tool, scene.Topic+"-later", 2)
	Check(tool.ProduceSync(scene.Ctx, &kgo.Record{Topic: scene.Topic + "-later", Value: []byte("v")}).FirstErr())
	select {
	case next := <-seen:
		return append(found, next)
	case <-scene.Ctx.Done():
		panic("the later topic was not found")
	}
}

// A member with a name of its own goes away and comes back: nobody else notices.
func franzStatic(scene *Scene) any {
	tool := franz(scene)
	defer tool.Close()
	makeTopic(scene, tool, scene.Topic, 4)
	got := func(*kgo.Record) {}
	first := join(scene, got, kgo.ConsumeTopics(scene.Topic), kgo.InstanceID("one"))
	second := join(scene, got, kgo.ConsumeTopics(scene.Topic), kgo.InstanceID("two"))
	scene.Until("both have half", func() bool { return first.owns() == 2 && second.owns() == 2 })
	_, before := second.client.GroupMetadata()
	first.leave()
	back := join(scene, got, kgo.ConsumeTopics(scene.Topic), kgo.InstanceID("one"))
	scene.Until("it is back", func() bool { return back.owns() == 2 })
	_, after := second.client.GroupMetadata()
	seen := []any{second.owns(), after - before}
	back.leave() // else it might hear that it was removed before the other does, and join again
	left := Must(kadm.NewClient(tool).LeaveGroup(scene.Ctx,
		kadm.LeaveGroup(scene.Topic).InstanceIDs("one").Reason("the test says so")))
	Check(left.Error())
	scene.Until("the other has all", func() bool { return second.owns() == 4 })
	second.leave()
	return seen
}

// Members come one after the other without waiting, and share in the end.
func franzTrickle(scene *Scene) any {
	tool := franz(scene)
	defer tool.Close()
	makeTopic(scene, tool, scene.Topic, 6)
	members := []*member{}
	for range 3 {
		members = append(members, join(scene, func(*kgo.Record) {}, kgo.ConsumeTopics(scene.Topic)))
	}
	scene.Until("each has two", func() bool {
		return members[0].owns() == 2 && members[1].owns() == 2 && members[2].owns() == 2
	})
	for _, one := range members {
		one.leave()
	}
	return len(members)
}
