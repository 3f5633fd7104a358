package magnetar.interop.mqtt;

import org.eclipse.paho.client.mqttv3.IMqttDeliveryToken;
import org.eclipse.paho.client.mqttv3.IMqttToken;
import org.eclipse.paho.client.mqttv3.MqttAsyncClient;
import org.eclipse.paho.client.mqttv3.MqttCallback;
import org.eclipse.paho.client.mqttv3.MqttConnectOptions;
import org.eclipse.paho.client.mqttv3.MqttException;
import org.eclipse.paho.client.mqttv3.MqttMessage;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;

/** Eclipse's client of 3.1 and 3.1.1. */
final class Paho3 extends Device implements MqttCallback {
    private final MqttAsyncClient client;

    Paho3(String url, String clientId) throws MqttException {
        client = new MqttAsyncClient(url, clientId, new MemoryPersistence());
        client.setCallback(this);
    }

    @Override
    boolean connect(Options requested) throws Exception {
        MqttConnectOptions options = new MqttConnectOptions();
        options.setMqttVersion(requested.version);
        options.setCleanSession(requested.clean);
        options.setAutomaticReconnect(requested.reconnects);
        options.setMaxReconnectDelay(500);
        options.setMaxInflight(requested.window);
        if (requested.willTopic != null) {
            options.setWill(
                    requested.willTopic, requested.will.getBytes(), requested.willQos, requested.willRetained);
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
        return token.getGrantedQos()[0];
    }

    @Override
    void unsubscribe(String filter) throws Exception {
        client.unsubscribe(filter).waitForCompletion(WAIT_MS);
    }

    @Override
    void send(String topic, byte[] payload, int qos, boolean retained) throws Exception {
        client.publish(topic, payload, qos, retained);
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

    // -- callbacks

    @Override
    public void connectionLost(Throwable cause) {
    }

    @Override
    public void messageArrived(String topic, MqttMessage message) {
        got.add(new Got(
                topic, new String(message.getPayload()), message.getQos(), message.isRetained(), message.isDuplicate()));
    }

    @Override
    public void deliveryComplete(IMqttDeliveryToken token) {
        acknowledged.incrementAndGet();
    }
}
