"""Stats of topics and subscriptions, with the fields of Pulsar's."""
