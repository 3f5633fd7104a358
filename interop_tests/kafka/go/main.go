// Scenes of franz-go, the Go client that current programs use: `scenes GROUP-SCENE BOOTSTRAP TOPIC`.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions = 3
	records    = 300
	group      = "go"
	patience   = 60 * time.Second
)

var scenes = map[string]func(ctx context.Context, bootstrap, topic string) error{
	"classic-group": classicGroup,
}

func main() {
	if len(os.Args) != 4 || scenes[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "scenes SCENE BOOTSTRAP TOPIC")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := scenes[os.Args[1]](ctx, os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

// Members come one after the other, commit and leave; who comes next goes on where they stopped.
func classicGroup(ctx context.Context, bootstrap, topic string) error {
	tool, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return err
	}
	defer tool.Close()
	if _, err := kadm.NewClient(tool).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		return err
	}
	seen := map[string]int{}
	for round := 1; round <= 2; round++ {
		if err := produce(ctx, tool, topic, round); err != nil {
			return err
		}
		if err := consume(ctx, bootstrap, topic, seen, round*records); err != nil {
			return fmt.Errorf("round %d, %d records: %w", round, len(seen), err)
		}
	}
	for value, times := range seen {
		if times != 1 {
			return fmt.Errorf("%s came %d times", value, times)
		}
	}
	return nothingLeft(ctx, kadm.NewClient(tool))
}

func produce(ctx context.Context, client *kgo.Client, topic string, round int) error {
	for number := range records {
		value := fmt.Sprintf("%d-%d", round, number)
		record := &kgo.Record{Topic: topic, Key: []byte(value), Value: []byte(value)}
		client.Produce(ctx, record, nil)
	}
	return client.Flush(ctx)
}

func consume(ctx context.Context, bootstrap, topic string, seen map[string]int, until int) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(seen) < until {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) { seen[string(record.Value)]++ })
	}
	return client.CommitUncommittedOffsets(ctx)
}

func nothingLeft(ctx context.Context, tool *kadm.Client) error {
	lags, err := tool.Lag(ctx, group)
	if err != nil {
		return err
	}
	if left := lags[group].Lag.Total(); left != 0 {
		return fmt.Errorf("%d records are left", left)
	}
	return nil
}
