module magnetar/interop/stage

go 1.26.0
