package main

import (
	"os"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	. "magnetar/interop/stage"
)

func registerAccess(families Families) {
	families["access.exchange"] = exchange
	families["access.taken"] = taken
	families["access.expiring"] = expiring
}

// proof of who the client is, as the test has it: a file with a token, a name and a password, or an issuer of tokens.
func proof(scene *Scene) pulsar.Authentication {
	if file := scene.Text("token", ""); file != "" {
		return pulsar.NewAuthenticationTokenFromSupplier(func() (string, error) {
			token, err := os.ReadFile(file)
			return string(token), err
		})
	}
	if issuer := scene.Text("issuer", ""); issuer != "" {
		return pulsar.NewAuthenticationOAuth2(map[string]string{"type": "client_credentials", "issuerUrl": issuer,
			"audience": scene.Text("audience", ""), "privateKey": scene.Text("credentials", "")})
	}
	if name := scene.Text("name", ""); name != "" {
		return Must(pulsar.NewAuthenticationBasic(name, scene.Text("password", "")))
	}
	return nil
}

func connectAs(scene *Scene) (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{URL: scene.URL, Logger: quiet, Authentication: proof(scene),
		OperationTimeout: time.Duration(scene.Number("patience", 15)) * time.Second})
}

// One message to oneself; what that ends with.
func exchange(scene *Scene) any {
	client, err := connectAs(scene)
	if err != nil {
		return ErrorOf(err)
	}
	defer client.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: scene.Topic})
	if err != nil {
		return ErrorOf(err)
	}
	Must(producer.Send(scene.Ctx, body(0)))
	return bodies(receive(scene, subscribe(scene, client, pulsar.ConsumerOptions{}), 1))
}

// What a producer's message ends with after its right is taken, and another attempt, and one when it is given back.
func taken(scene *Scene) any {
	client := Must(connectAs(scene))
	defer client.Close()
	options := pulsar.ProducerOptions{Topic: scene.Topic, SendTimeout: 3 * time.Second}
	producer := Must(client.CreateProducer(options))
	Must(producer.Send(scene.Ctx, body(0)))
	scene.Tell("sent", nil)
	scene.Await("taken")
	_, late := producer.Send(scene.Ctx, body(1))
	_, again := client.CreateProducer(options)
	scene.Tell("refused", nil)
	scene.Await("given")
	_, err := Must(client.CreateProducer(options)).Send(scene.Ctx, body(2))
	return []string{ErrorOf(late), ErrorOf(again), ErrorOf(err)}
}

// How many messages are sent in so many milliseconds, in which the token expires.
func expiring(scene *Scene) any {
	end := time.Now().Add(time.Duration(scene.Number("milliseconds", 0)) * time.Millisecond)
	client := Must(connectAs(scene))
	defer client.Close()
	producer := Must(client.CreateProducer(pulsar.ProducerOptions{Topic: scene.Topic}))
	scene.Tell("attached", nil)
	sent := 0
	for ; time.Now().Before(end); sent++ {
		Must(producer.Send(scene.Ctx, body(sent)))
	}
	scene.Tell("over", nil)
	scene.Await("looked")
	return sent
}
