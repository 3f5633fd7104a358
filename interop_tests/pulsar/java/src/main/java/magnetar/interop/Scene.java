package magnetar.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import magnetar.interop.stage.Dialogue;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.auth.AuthenticationBasic;
import org.apache.pulsar.client.impl.auth.AuthenticationTls;
import org.apache.pulsar.client.impl.auth.AuthenticationToken;
import org.apache.pulsar.client.impl.auth.oauth2.AuthenticationFactoryOAuth2;

/** What a family plays with: a client of its own, a fresh topic, and words for what all of them do. */
final class Scene extends Dialogue {
    static final int DEADLINE_SECONDS = 20;
    private static final Map<String, PulsarClient> SHARED = new HashMap<>();

    private PulsarClient client;
    private boolean own;

    Scene(long id, JsonObject request) {
        super(id, request);
    }

    // -- arguments

    SubscriptionType type(String otherwise) {
        return SubscriptionType.valueOf(text("type", otherwise));
    }

    /** Of texts. */
    JsonArray pairs() {
        return args.getAsJsonArray("pairs");
    }

    // -- the client

    /** The client of all scenes with this server, or one of this scene's own if options are given. */
    synchronized PulsarClient client() throws PulsarClientException {
        if (client == null) {
            own = flag("own") || args.has("trust") || args.has("patience") || args.has("token") || args.has("name")
                    || args.has("issuer");
            client = own ? connect() : shared(this);
        }
        return client;
    }

    /** To end a client takes seconds, so those who can share one. */
    private static synchronized PulsarClient shared(Scene scene) throws PulsarClientException {
        String key = scene.url + scene.flag("transactions");
        PulsarClient found = SHARED.get(key);
        if (found == null) {
            found = scene.connect();
            SHARED.put(key, found);
        }
        return found;
    }

    private PulsarClient connect() throws PulsarClientException {
        try {
            return connected();
        } catch (MalformedURLException error) {
            throw new IllegalArgumentException(error);
        }
    }

    private PulsarClient connected() throws PulsarClientException, MalformedURLException {
        var builder = PulsarClient.builder()
                .serviceUrl(url)
                .enableTransaction(flag("transactions"))
                .operationTimeout(number("patience", DEADLINE_SECONDS), TimeUnit.SECONDS)
                .startingBackoffInterval(50, TimeUnit.MILLISECONDS)
                .maxBackoffInterval(1, TimeUnit.SECONDS);
        if (args.has("trust")) {
            builder.tlsTrustCertsFilePath(text("trust", "")).enableTlsHostnameVerification(true);
        }
        if (args.has("token")) {  // a file, which the client reads each time that it is asked
            builder.authentication(new AuthenticationToken(() -> read(Path.of(text("token", "")))));
        }
        if (args.has("name")) {
            var proof = new AuthenticationBasic();
            proof.configure(Map.of("userId", text("name", ""), "password", text("password", "")));
            builder.authentication(proof);
        }
        if (args.has("issuer")) {  // whose tokens the credentials in a file are good for
            builder.authentication(AuthenticationFactoryOAuth2.clientCredentials(
                    new URL(text("issuer", "")), new URL(text("credentials", "")), text("audience", "")));
        }
        if (args.has("certificate") && flag("proves")) {
            builder.authentication(new AuthenticationTls(text("certificate", ""), text("key", "")));
        } else if (args.has("certificate")) {
            builder.tlsCertificateFilePath(text("certificate", "")).tlsKeyFilePath(text("key", ""));
        }
        return builder.build();
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    String fullName() {
        return "persistent://public/default/" + topic;
    }

    ProducerBuilder<byte[]> producer() throws PulsarClientException {
        return client().newProducer().topic(topic).enableBatching(false).blockIfQueueFull(true);
    }

    /** Makes one entry of all that is sent before a flush. */
    ProducerBuilder<byte[]> batching(int count) throws PulsarClientException {
        return producer()
                .enableBatching(true)
                .batchingMaxMessages(count)
                .batchingMaxBytes(1024 * 1024)
                .batchingMaxPublishDelay(60, TimeUnit.SECONDS);
    }

    ConsumerBuilder<byte[]> consumer() throws PulsarClientException {
        return client().newConsumer(Schema.BYTES)
                .topic(topic)
                .subscriptionName("s")
                .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS);
    }

    ConsumerBuilder<byte[]> consumer(SubscriptionType type) throws PulsarClientException {
        return consumer().subscriptionType(type);
    }

    /** A subscription that reads nothing, for whose sake the topic keeps everything. */
    void keepAll() throws PulsarClientException {
        consumer().subscriptionName("keeper").subscribe().close();
    }

    @Override
    public synchronized void close() {
        if (client != null && own) {
            client.closeAsync();
        }
    }

    // -- words

    /** Sends numbers as text without waiting in between; their ids. */
    static List<MessageId> publish(Producer<byte[]> producer, int first, int count) throws Exception {
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int number = first; number < first + count; number++) {
            sent.add(producer.sendAsync(Integer.toString(number).getBytes()));
        }
        producer.flushAsync();
        List<MessageId> ids = new ArrayList<>();
        for (var each : sent) {
            ids.add(each.get(DEADLINE_SECONDS, TimeUnit.SECONDS));
        }
        return ids;
    }

    static List<Message<byte[]>> receive(Consumer<byte[]> consumer, int count) throws Exception {
        List<Message<byte[]>> found = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            Message<byte[]> message = consumer.receive(DEADLINE_SECONDS, TimeUnit.SECONDS);
            if (message == null) {
                throw new TimeoutException("received " + bodies(found) + " and then nothing");
            }
            found.add(message);
        }
        return found;
    }

    /** Receives and acknowledges; the bodies. */
    static List<String> drain(Consumer<byte[]> consumer, int count) throws Exception {
        List<String> found = new ArrayList<>();
        for (Message<byte[]> message : receive(consumer, count)) {
            found.add(body(message));
            consumer.acknowledge(message);
        }
        return found;
    }

    static List<String> bodies(List<Message<byte[]>> messages) {
        return messages.stream().map(Scene::body).toList();
    }

    static String body(Message<byte[]> message) {
        return new String(message.getData());
    }

    /** What comes up to a message sent now: nothing, if nothing was waiting. */
    static List<String> leftovers(Consumer<byte[]> consumer, Producer<byte[]> producer) throws Exception {
        producer.send("the end".getBytes());
        List<String> found = new ArrayList<>();
        while (true) {
            String body = drain(consumer, 1).get(0);
            if (body.equals("the end")) {
                return found;
            }
            found.add(body);
        }
    }

    /** The name of the error that an action ends with, or "none". */
    static String errorOf(Action action) {
        try {
            action.run();
            return "none";
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null && !(cause instanceof PulsarClientException)) {
                cause = cause.getCause();
            }
            return cause.getClass().getSimpleName();
        }
    }

    interface Action {
        void run() throws Exception;
    }
}
