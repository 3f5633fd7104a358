module magnetar/interop/mqtt

go 1.26.0

require (
	github.com/eclipse/paho.golang v0.23.0
	github.com/xdg-go/scram v1.1.2
	magnetar/interop/stage v0.0.0
)

require (
	github.com/xdg-go/pbkdf2 v1.0.0 // indirect
	github.com/xdg-go/stringprep v1.0.4 // indirect
	golang.org/x/text v0.3.8 // indirect
)

replace magnetar/interop/stage => ../../stage
