// Scenes of the two clients that programs in Go use for Kafka: franz-go and Sarama.
package main

import "magnetar/interop/stage"

func main() {
	families := stage.Families{}
	registerFranz(families)
	registerFranzGroups(families)
	registerFranzTools(families)
	registerFranzRegistry(families)
	registerSarama(families)
	registerSaramaGroups(families)
	registerIdentity(families)
	registerCrashing(families)
	stage.Play(families)
}
