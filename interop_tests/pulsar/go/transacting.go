package main

import (
	"bytes"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	. "magnetar/interop/stage"
)

func registerTransacting(families Families) {
	families["transactions.end"] = transactionEnds
	families["transactions.conflict"] = transactionConflict
	families["transactions.batch"] = transactionBatch
	families["transactions.chunks"] = transactionChunks
	families["transactions.empty"] = transactionEmpty
	families["transactions.open"] = transactionOpen
	families["transactions.off"] = transactionsOff
}

func transactional(scene *Scene) pulsar.Client {
	return Must(pulsar.NewClient(pulsar.ClientOptions{URL: scene.URL, Logger: quiet,
		OperationTimeout: 15 * time.Second, EnableTransaction: true}))
}

func begin(client pulsar.Client, timeout time.Duration) pulsar.Transaction {
	return Must(client.NewTransaction(timeout))
}

func end(scene *Scene, txn pulsar.Transaction) {
	if scene.Flag("commit") {
		Check(txn.Commit(scene.Ctx))
	} else {
		Check(txn.Abort(scene.Ctx))
	}
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// quietly receives what comes in a while, which should be nothing.
func quietly(scene *Scene, consumer pulsar.Consumer) []string {
	found := []string{}
	for {
		select {
		case message := <-consumer.Chan():
			found = append(found, string(message.Payload()))
		case <-time.After(nothing):
			return found
		}
	}
}

// expected are so many, and then nothing more.
func expected(scene *Scene, consumer pulsar.Consumer, count int) []string {
	return append(bodies(receive(scene, consumer, count)), quietly(scene, consumer)...)
}

// counts are how many come after a commit, and after an abort.
func counts(scene *Scene, committed, aborted int) int {
	if scene.Flag("commit") {
		return committed
	}
	return aborted
}

// transactionEnds sends to one topic and acknowledges in another.
func transactionEnds(scene *Scene) any {
	client := transactional(scene)
	defer client.Close()
	target := scene.Topic + "-target"
	source := subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Shared")]})
	reader := subscribe(scene, client, pulsar.ConsumerOptions{Topic: target})
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: true}), 0, 3)
	sink := produce(scene, client, pulsar.ProducerOptions{Topic: target, DisableBatching: !scene.Flag("batched"), SendTimeout: -1})
	txn := begin(client, time.Minute)
	for _, message := range receive(scene, source, 3) {
		sent := make(chan error, 1)
		sink.SendAsync(scene.Ctx, &pulsar.ProducerMessage{Payload: message.Payload(), Transaction: txn},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { sent <- err })
		Check(sink.FlushWithCtx(scene.Ctx))
		Check(<-sent)
		Check(source.AckWithTxn(message, txn))
	}
	early := quietly(scene, reader)
	end(scene, txn)
	late := expected(scene, reader, counts(scene, 3, 0))
	source.Close()
	again := subscribe(scene, client, pulsar.ConsumerOptions{Type: types[scene.Text("type", "Shared")]})
	return []any{early, late, expected(scene, again, counts(scene, 0, 3))}
}

func transactionConflict(scene *Scene) any {
	client := transactional(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Type: pulsar.Shared})
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{DisableBatching: true}), 0, 1)
	message := receive(scene, consumer, 1)[0]
	first, second := begin(client, time.Minute), begin(client, time.Minute)
	Check(consumer.AckWithTxn(message, first))
	return errorOf(consumer.AckWithTxn(message, second))
}

// transactionBatch acknowledges messages of one batch, whose size Go does not tell.
func transactionBatch(scene *Scene) any {
	client := transactional(scene)
	defer client.Close()
	options := pulsar.ConsumerOptions{Type: pulsar.Shared, AckWithResponse: true, EnableBatchIndexAcknowledgment: true}
	consumer := subscribe(scene, client, options)
	sendNumbers(scene, produce(scene, client, pulsar.ProducerOptions{BatchingMaxPublishDelay: time.Second}), 0, 4)
	found := receive(scene, consumer, 4)
	txn := begin(client, time.Minute)
	Check(consumer.AckWithTxn(found[3], txn))
	Check(consumer.AckWithTxn(found[1], txn))
	end(scene, txn)
	consumer.Close()
	return expected(scene, subscribe(scene, client, options), counts(scene, 2, 4))
}

func transactionChunks(scene *Scene) any {
	client := transactional(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{})
	sink := produce(scene, client, pulsar.ProducerOptions{DisableBatching: true, EnableChunking: true, ChunkMaxMessageSize: 1000, SendTimeout: -1})
	payload := bytes.Repeat([]byte("x"), 4500)
	txn := begin(client, time.Minute)
	Must(sink.Send(scene.Ctx, &pulsar.ProducerMessage{Payload: payload, Transaction: txn}))
	early := len(quietly(scene, consumer))
	end(scene, txn)
	sizes := []int{}
	for _, one := range expected(scene, consumer, counts(scene, 1, 0)) {
		sizes = append(sizes, len(one))
	}
	return []any{early, sizes}
}

func transactionEmpty(scene *Scene) any {
	client := transactional(scene)
	defer client.Close()
	txn := begin(client, time.Minute)
	end(scene, txn)
	return errorOf(txn.Commit(scene.Ctx)) != ""
}

// transactionOpen tells the id of a transaction that is open, until the test says to end it.
func transactionOpen(scene *Scene) any {
	client := transactional(scene)
	defer client.Close()
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{})
	sink := produce(scene, client, pulsar.ProducerOptions{DisableBatching: true, SendTimeout: -1})
	sendNumbers(scene, sink, 0, 1)
	txn := begin(client, time.Minute)
	Must(sink.Send(scene.Ctx, &pulsar.ProducerMessage{Payload: []byte("1"), Transaction: txn}))
	Check(consumer.AckWithTxn(receive(scene, consumer, 1)[0], txn))
	id := txn.GetTxnID()
	scene.Tell("open", []uint64{id.MostSigBits, id.LeastSigBits})
	scene.Await("end")
	end(scene, txn)
	return true
}

func transactionsOff(scene *Scene) any {
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: scene.URL, Logger: quiet,
		OperationTimeout: 5 * time.Second, EnableTransaction: true})
	if err == nil {
		client.Close()
	}
	return errorOf(err)
}
