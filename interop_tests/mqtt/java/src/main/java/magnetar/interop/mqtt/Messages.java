package magnetar.interop.mqtt;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import magnetar.interop.stage.Stage.Family;
import org.eclipse.paho.mqttv5.common.MqttMessage;
import org.eclipse.paho.mqttv5.common.packet.MqttProperties;
import org.eclipse.paho.mqttv5.common.packet.UserProperty;

/** Messages of clients that stay connected. */
final class Messages {
    private static final int COUNT = 200;
    private static final int LARGE_BYTES = 4_000_000;

    static void register(Map<String, Family<Scene>> families) {
        families.put("messages", Messages::messages);
        families.put("retained", Messages::retained);
        families.put("shared", Messages::shared);
        families.put("properties", Messages::properties);
        families.put("unsubscribed", Messages::unsubscribed);
    }

    /** In order, through two topics; the last one is large. */
    private static Object messages(Scene scene) throws Exception {
        int qos = scene.number("qos", 0);
        Device reader = scene.connected("r");
        Device writer = scene.connected("w");
        int granted = reader.subscribe(scene.topic + "/#", qos);
        List<String> sent = new ArrayList<>();
        for (int n = 0; n < COUNT; n++) {
            long before = n;
            Scene.until("room", () -> before - writer.acknowledged.get() < 50);
            writer.send(scene.topic + "/" + n % 2, ("" + n).getBytes(), qos, false);
            sent.add("" + n);
        }
        List<String> payloads = new ArrayList<>();
        boolean same = true;
        for (int n = 0; n < COUNT; n++) {
            Device.Got one = reader.take();
            payloads.add(one.payload());
            same &= one.qos() == qos && !one.retained() && !one.duplicate();
        }
        String large = "x".repeat(LARGE_BYTES);
        writer.send(scene.topic + "/large", large.getBytes(), qos, false);
        same &= reader.take().payload().equals(large);
        return Scene.map("granted", granted, "inOrder", sent.equals(payloads), "same", same);
    }

    private static Object retained(Scene scene) throws Exception {
        int qos = scene.number("qos", 0);
        Device writer = scene.connected("w");
        for (int n = 1; n <= 3; n++) {
            writer.publish(scene.topic + "/" + n, "" + n, qos, true);
        }
        writer.publish(scene.topic + "/2", "", qos, true);
        writer.publish(scene.topic + "-stored", "", 1, false); // as all before it
        Device reader = scene.connected("r");
        reader.subscribe(scene.topic + "/+", 2);
        List<List<Object>> found = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            Device.Got one = reader.take();
            found.add(List.of(one.payload(), one.qos(), one.retained()));
        }
        writer.publish(scene.topic + "/2", "live", qos, true);
        Device.Got live = reader.take();
        found.sort((one, other) -> one.get(0).toString().compareTo(other.get(0).toString()));
        found.add(List.of(live.payload(), live.qos(), live.retained()));
        return found;
    }

    private static Object shared(Scene scene) throws Exception {
        int qos = scene.number("qos", 0);
        Device one = scene.connected("1");
        Device other = scene.connected("2");
        for (Device each : List.of(one, other)) {
            each.subscribe("$share/g/" + scene.topic, qos);
        }
        Device writer = scene.connected("w");
        for (int n = 0; n < 20; n++) {
            writer.publish(scene.topic, "" + n, qos, false);
        }
        Scene.until("all messages", () -> one.got.size() + other.got.size() == 20);
        return List.of(one.got.size(), other.got.size());
    }

    /** Of 5.0. */
    private static Object properties(Scene scene) throws Exception {
        Paho5 reader = (Paho5) scene.connected("r");
        Paho5 writer = (Paho5) scene.connected("w");
        reader.subscribe(scene.topic, 1);
        MqttProperties properties = new MqttProperties();
        properties.setContentType("text/plain");
        properties.setResponseTopic("answers");
        properties.setCorrelationData("key".getBytes());
        properties.setPayloadFormat(true);
        properties.setMessageExpiryInterval(100L);
        properties.setUserProperties(
                List.of(new UserProperty("b", "1"), new UserProperty("a", "2"), new UserProperty("b", "3")));
        writer.send(scene.topic, new MqttMessage("x".getBytes(), 1, false, properties));
        reader.take();
        return Paho5.properties(reader.whole.take());
    }

    /** Nothing comes to a filter that is unsubscribed. */
    private static Object unsubscribed(Scene scene) throws Exception {
        int qos = scene.number("qos", 0);
        Device device = scene.connected("c");
        device.subscribe(scene.topic + "/+", qos);
        device.subscribe(scene.topic + "/2", qos);
        device.unsubscribe(scene.topic + "/+");
        for (int n = 1; n <= 2; n++) {
            device.publish(scene.topic + "/" + n, "" + n, qos, false);
        }
        return device.take().payload();
    }

    private Messages() {
    }
}
