"""Protocol buffers of the storage tier; `storage_pb2` is generated from `storage.proto`."""
