// Scenes of Eclipse's client of MQTT 5.0 for Go, the one that has enhanced authentication with all its packets.
package main

import (
	"net"
	"strings"

	"github.com/eclipse/paho.golang/paho"
	"github.com/xdg-go/scram"

	"magnetar/interop/stage"
)

const again = 0x19

func main() {
	stage.Play(stage.Families{"scram": exchange})
}

// A user proves a password by SCRAM, in the words of a library that knows nothing of MQTT.
type user struct {
	method       string
	conversation *scram.ClientConversation
}

func userOf(method, name, password string) *user {
	hash := map[string]scram.HashGeneratorFcn{"SCRAM-SHA-256": scram.SHA256, "SCRAM-SHA-512": scram.SHA512}[method]
	client := stage.Must(hash.NewClient(name, password, ""))
	return &user{method, client.NewConversation()}
}

func (user *user) says(reason byte, heard []byte) *paho.Auth {
	said := stage.Must(user.conversation.Step(string(heard)))
	properties := &paho.AuthProperties{AuthMethod: user.method, AuthData: []byte(said)}
	return &paho.Auth{ReasonCode: reason, Properties: properties}
}

// Auther whose user changes when the client authenticates anew.
type auther struct{ user *user }

func (auther *auther) Authenticate(heard *paho.Auth) *paho.Auth {
	return auther.user.says(heard.ReasonCode, heard.Properties.AuthData)
}

func (auther *auther) Authenticated() {}

// Connects, publishes, and proves who it is again; sees the reasons that it gets for each.
func exchange(scene *stage.Scene) any {
	method, name := scene.Text("method", "SCRAM-SHA-256"), scene.Text("name", "")
	auther := &auther{userOf(method, name, scene.Text("password", ""))}
	lost := make(chan byte, 1)
	client := paho.NewClient(paho.ClientConfig{
		Conn:               stage.Must(net.Dial("tcp", strings.TrimPrefix(scene.URL, "mqtt://"))),
		AuthHandler:        auther,
		OnServerDisconnect: func(packet *paho.Disconnect) { lost <- packet.ReasonCode },
		OnClientError:      func(error) {},
	})
	seen := map[string]any{}
	first := auther.user.says(0, nil)
	connack, err := client.Connect(scene.Ctx, &paho.Connect{
		ClientID: scene.Topic, CleanStart: true, KeepAlive: 60,
		Properties: &paho.ConnectProperties{AuthMethod: method, AuthData: first.Properties.AuthData},
	})
	if connack == nil {
		stage.Check(err)
	}
	seen["connack"] = connack.ReasonCode
	if connack.ReasonCode != 0 {
		return seen
	}
	_, err = auther.user.conversation.Step(string(connack.Properties.AuthData))
	seen["server proved"] = err == nil && auther.user.conversation.Valid()
	publish := func() byte {
		puback, _ := client.Publish(scene.Ctx, &paho.Publish{Topic: scene.Topic, QoS: 1, Payload: []byte("x")})
		return puback.ReasonCode
	}
	seen["published"] = publish()
	auther.user = userOf(method, scene.Text("then", name), scene.Text("again", ""))
	answer := stage.Must(client.Authenticate(scene.Ctx, auther.user.says(again, nil)))
	seen["again"] = answer.ReasonCode
	if answer.Success {
		seen["published then"] = publish()
		stage.Check(client.Disconnect(&paho.Disconnect{}))
	} else {
		seen["lost"] = <-lost
	}
	return seen
}
