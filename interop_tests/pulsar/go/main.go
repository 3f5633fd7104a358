// Scenes of Apache's client for Go.
package main

import "magnetar/interop/stage"

func main() {
	families := stage.Families{}
	registerPublishing(families)
	registerSubscribing(families)
	registerAcking(families)
	registerReading(families)
	registerSchemas(families)
	registerAccess(families)
	registerAdministering(families)
	registerCrashing(families)
	registerTransacting(families)
	stage.Play(families)
}
