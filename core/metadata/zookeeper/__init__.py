"""A MetadataStore on ZooKeeper, through kazoo. Nothing imports it before a cluster is opened."""
