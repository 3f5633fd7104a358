package magnetar.interop.mqtt;

import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.eclipse.paho.mqttv5.client.IMqttToken;
import org.eclipse.paho.mqttv5.client.MqttAsyncClient;
import org.eclipse.paho.mqttv5.client.MqttCallback;
import org.eclipse.paho.mqttv5.client.MqttConnectionOptions;
import org.eclipse.paho.mqttv5.client.MqttDisconnectResponse;
import org.eclipse.paho.mqttv5.client.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.common.MqttException;
import org.eclipse.paho.mqttv5.common.MqttMessage;
import org.eclipse.paho.mqttv5.common.packet.MqttProperties;

/** Eclipse's client of 5.0. */
final class Paho5 extends Device implements MqttCallback {
    private static final long EXPIRY_SECONDS = 100;

    /** The messages themselves, with their properties. */
    final BlockingQueue<MqttMessage> whole = new LinkedBlockingQueue<>();
    private final MqttAsyncClient client;

    Paho5(String url, String clientId) throws MqttException {
        client = new MqttAsyncClient(url, clientId, new MemoryPersistence());
        client.setCallback(this);
    }

    @Override
    boolean connect(Options requested) throws Exception {
        MqttConnectionOptions options = new MqttConnectionOptions();
        options.setCleanStart(requested.clean);
        if (!requested.clean) {
            options.setSessionExpiryInterval(EXPIRY_SECONDS);
        }
        options.setAutomaticReconnect(requested.reconnects);
        options.setAutomaticReconnectDelay(1, 1);
        options.setReceiveMaximum(requested.window);
        if (requested.willTopic != null) {
            MqttMessage will = new MqttMessage(requested.will.getBytes());
            will.setQos(requested.willQos);
            will.setRetained(requested.willRetained);
            options.setWill(requested.willTopic, will);
        }
        if (requested.tls != null) {
            options.setSocketFactory(requested.tls);
        }
        IMqttToken token = client.connect(options);
        token.waitForCompletion(WAIT_MS);
        return token.getSessionPresent();
    }

    @Override
    int subscribe(String filter, int qos) throws Exception {
        IMqttToken token = client.subscribe(filter, qos);
        token.waitForCompletion(WAIT_MS);
        return token.getReasonCodes()[0];
    }

    @Override
    void unsubscribe(String filter) throws Exception {
        client.unsubscribe(filter).waitForCompletion(WAIT_MS);
    }

    @Override
    void send(String topic, byte[] payload, int qos, boolean retained) throws Exception {
        client.publish(topic, payload, qos, retained);
    }

    void send(String topic, MqttMessage message) throws Exception {
        client.publish(topic, message).waitForCompletion(WAIT_MS);
    }

    @Override
    boolean isConnected() {
        return client.isConnected();
    }

    @Override
    void disconnect() throws Exception {
        client.disconnect().waitForCompletion(WAIT_MS);
    }

    @Override
    void cut() throws Exception {
        client.disconnectForcibly(0, 1, false);
    }

    @Override
    void close() {
        try {
            client.disconnectForcibly(0, 1, false);
            client.close(true);
        } catch (MqttException ignored) {
            // it is closed
        }
    }

    /** What a test compares of a message's properties. */
    static Map<String, Object> properties(MqttMessage message) {
        MqttProperties found = message.getProperties();
        return Scene.map(
                "contentType", found.getContentType(),
                "responseTopic", found.getResponseTopic(),
                "correlationData", new String(found.getCorrelationData()),
                "payloadFormat", found.getPayloadFormat(),
                "userProperties",
                found.getUserProperties().stream().map(one -> one.getKey() + "=" + one.getValue()).toList());
    }

    // -- callbacks

    @Override
    public void disconnected(MqttDisconnectResponse response) {
    }

    @Override
    public void mqttErrorOccurred(MqttException exception) {
    }

    @Override
    public void messageArrived(String topic, MqttMessage message) {
        whole.add(message);
        got.add(new Got(
                topic, new String(message.getPayload()), message.getQos(), message.isRetained(), message.isDuplicate()));
    }

    @Override
    public void deliveryComplete(IMqttToken token) {
        acknowledged.incrementAndGet();
    }

    @Override
    public void connectComplete(boolean again, String url) {
    }

    @Override
    public void authPacketArrived(int reason, MqttProperties properties) {
    }
}
