"""Protocol buffers of the storage tier, generated from the `.proto` files beside them."""
