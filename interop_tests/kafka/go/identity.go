package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	. "magnetar/interop/stage"
)

func registerIdentity(families Families) {
	families["franz.exchange"] = franzExchange
	families["franz.taken"] = franzTaken
	families["franz.expiring"] = franzExpiring
	families["sarama.exchange"] = saramaExchange
}

// franzMechanism by which the client says who it is, with what the test gives it.
func franzMechanism(scene *Scene) sasl.Mechanism {
	name, password := scene.Text("name", ""), scene.Text("password", "")
	switch scene.Text("mechanism", "") {
	case "SCRAM-SHA-256":
		return scram.Auth{User: name, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: name, Pass: password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := os.ReadFile(scene.Text("token", ""))
			return oauth.Auth{Token: string(token)}, err
		})
	}
	return plain.Auth{User: name, Pass: password}.AsMechanism()
}

func franzAs(scene *Scene) *kgo.Client {
	return franz(scene, kgo.SASL(franzMechanism(scene)), kgo.RecordRetries(3), kgo.RecordDeliveryTimeout(10*time.Second),
		kgo.ConsumerGroup(scene.Topic), kgo.ConsumeTopics(scene.Topic))
}

func franzSent(scene *Scene, client *kgo.Client, value string) string {
	err := client.ProduceSync(scene.Ctx, &kgo.Record{Topic: scene.Topic, Value: []byte(value)}).FirstErr()
	var told *kerr.Error
	if errors.As(err, &told) {
		return told.Message
	}
	return ErrorOf(err)
}

// One record to oneself by a group; what that ends with.
func franzExchange(scene *Scene) any {
	client := franzAs(scene)
	defer client.Close()
	if refused := franzSent(scene, client, "x"); refused != "none" {
		return refused
	}
	return values(poll(scene, client, 1))
}

// What records end with before the right is taken, after, and when it is given back.
func franzTaken(scene *Scene) any {
	client := franzAs(scene)
	defer client.Close()
	before := franzSent(scene, client, "0")
	scene.Tell("sent", nil)
	scene.Await("taken")
	after := franzSent(scene, client, "1")
	scene.Tell("refused", nil)
	scene.Await("given")
	again := ""
	scene.Until("it asks for the topic anew", func() bool { // what it heard of it last is good for a moment
		again = franzSent(scene, client, "2")
		return again == "none"
	})
	return []string{before, after, again}
}

// How many records are sent until the test says so, while tokens expire.
func franzExpiring(scene *Scene) any {
	client := franzAs(scene)
	defer client.Close()
	for sent := 0; ; sent++ {
		if refused := franzSent(scene, client, "x"); refused != "none" {
			return refused
		}
		if sent == 0 {
			scene.Tell("attached", nil)
		}
		select {
		case <-scene.Heard():
			return sent
		default:
		}
	}
}

// saramaToken is what the test has put into a file.
type saramaToken struct{ file string }

func (provider saramaToken) Token() (*sarama.AccessToken, error) {
	token, err := os.ReadFile(provider.file)
	return &sarama.AccessToken{Token: string(token)}, err
}

// One record to oneself. Sarama has no SCRAM of its own.
func saramaExchange(scene *Scene) any {
	config := saramaConfig(scene)
	config.Metadata.Retry.Max, config.Producer.Retry.Max = 1, 1
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(scene.Text("mechanism", ""))
	config.Net.SASL.User, config.Net.SASL.Password = scene.Text("name", ""), scene.Text("password", "")
	config.Net.SASL.TokenProvider = saramaToken{scene.Text("token", "")}
	producer, err := sarama.NewSyncProducer([]string{scene.URL}, config)
	if err != nil {
		return saramaError(err)
	}
	defer producer.Close()
	if err := saramaSend(scene, producer, "x"); err != nil {
		return saramaError(err)
	}
	return saramaValues(saramaRead(scene, config, 0, sarama.OffsetOldest, 1))
}
