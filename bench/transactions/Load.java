import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * The load of bench/transactions: workers that have one transaction each, one after the other.
 *
 * <p>A transaction publishes messages to one topic and acknowledges as many of another topic, of a Shared
 * subscription; all of it is asked for at once, and committed when all of it is answered. Commands come in by
 * standard input, a line each: {@code fill MESSAGES} and {@code run TRANSACTIONS}; each ends in one line of output.
 * Between {@code begun} and {@code done} are nothing but the transactions.
 *
 * <p>Arguments: URL of the server, workers, messages of a transaction, bytes of a message, whether the producers
 * batch.
 */
public final class Load {
    private static final String SOURCE = "source";
    private static final String SINK = "sink";
    private static final int TIMEOUT_SECONDS = 60;
    private static final int IN_FLIGHT = 1000;

    private final PulsarClient client;
    private final int messages;
    private final byte[] value;
    private final List<Worker> workers = new ArrayList<>();
    private final ExecutorService threads;
    /** Of all workers: of several consumers one would run out of messages that another one has queued. */
    private final Consumer<byte[]> consumer;

    private Load(String[] words) throws Exception {
        client = PulsarClient.builder().serviceUrl(words[0]).enableTransaction(true).build();
        int count = Integer.parseInt(words[1]);
        messages = Integer.parseInt(words[2]);
        value = new byte[Integer.parseInt(words[3])];
        consumer = client.newConsumer().topic(SOURCE).subscriptionName("s")
                .subscriptionType(SubscriptionType.Shared).subscribe();
        threads = Executors.newFixedThreadPool(count);
        for (int number = 0; number < count; number++) {
            workers.add(new Worker(Boolean.parseBoolean(words[4])));
        }
    }

    /** Has one transaction at a time. */
    private final class Worker {
        private final Producer<byte[]> producer;
        private final List<Long> commits = new ArrayList<>();

        Worker(boolean batched) throws Exception {
            producer = client.newProducer().topic(SINK).enableBatching(batched)
                    .sendTimeout(0, TimeUnit.SECONDS).blockIfQueueFull(true).create();
        }

        Void run(AtomicInteger left) throws Exception {
            while (left.getAndDecrement() > 0) {
                Transaction txn = client.newTransaction()
                        .withTransactionTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS).build().get();
                List<CompletableFuture<?>> asked = new ArrayList<>(2 * messages);
                for (int number = 0; number < messages; number++) {
                    asked.add(producer.newMessage(txn).value(value).sendAsync());
                    Message<byte[]> found = consumer.receive(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                    if (found == null) {
                        throw new IllegalStateException("no message for " + TIMEOUT_SECONDS + " s");
                    }
                    asked.add(consumer.acknowledgeAsync(found.getMessageId(), txn));
                }
                producer.flush();
                for (CompletableFuture<?> each : asked) {
                    each.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                }
                long begun = System.nanoTime();
                txn.commit().get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                commits.add(System.nanoTime() - begun);
            }
            return null;
        }
    }

    /** What the transactions are going to acknowledge. */
    private void fill(int count) throws Exception {
        Semaphore room = new Semaphore(IN_FLIGHT);
        try (Producer<byte[]> producer = client.newProducer().topic(SOURCE).enableBatching(false)
                .maxPendingMessages(IN_FLIGHT).create()) {
            for (int number = 0; number < count; number++) {
                room.acquire();
                producer.newMessage().value(value).sendAsync().whenComplete((id, error) -> room.release());
            }
            room.acquire(IN_FLIGHT);
        }
        say("filled");
    }

    private void run(int count) throws Exception {
        AtomicInteger left = new AtomicInteger(count);
        say("begun");
        long begun = System.nanoTime();
        List<Callable<Void>> tasks = new ArrayList<>();
        for (Worker worker : workers) {
            worker.commits.clear();
            tasks.add(() -> worker.run(left));
        }
        for (Future<Void> each : threads.invokeAll(tasks)) {
            each.get();
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        long[] commits = workers.stream().flatMap(worker -> worker.commits.stream()).mapToLong(Long::longValue).toArray();
        Arrays.sort(commits);
        say("done " + seconds + " " + at(commits, 0.5) + " " + at(commits, 0.99));
    }

    private static double at(long[] sorted, double part) {
        return sorted[Math.min((int) (sorted.length * part), sorted.length - 1)] / 1e6;
    }

    private static void say(String line) {
        System.out.println("> " + line);
        System.out.flush();
    }

    public static void main(String[] words) throws Exception {
        Load load = new Load(words);
        say("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] command = line.split(" ");
            int count = Integer.parseInt(command[1]);
            if (command[0].equals("fill")) {
                load.fill(count);
            } else {
                load.run(count);
            }
        }
        System.exit(0);
    }
}
