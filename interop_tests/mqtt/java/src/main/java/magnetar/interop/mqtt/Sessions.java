package magnetar.interop.mqtt;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import magnetar.interop.stage.Stage.Family;
import org.eclipse.paho.client.mqttv3.MqttException;

/** Sessions that last, wills, and servers that are killed. */
final class Sessions {
    private static final int AWAY = 50;

    static void register(Map<String, Family<Scene>> families) {
        families.put("session", Sessions::session);
        families.put("will", Sessions::will);
        families.put("crash", Sessions::crash);
    }

    /** The messages that came while a client was away. */
    private static Object session(Scene scene) throws Exception {
        int qos = scene.number("qos", 1);
        Device first = scene.device("r");
        boolean before = first.connect(scene.lasting());
        first.subscribe(scene.topic, qos);
        if (scene.flag("cut")) {
            first.cut();
        } else {
            first.disconnect();
        }
        Device writer = scene.connected("w");
        for (int n = 0; n < AWAY; n++) {
            writer.publish(scene.topic, "" + n, qos, false);
        }
        Device second = scene.device("r");
        boolean after = second.connect(scene.lasting());
        List<String> came = Scene.payloads(second, AWAY);
        boolean inOrder = true;
        for (int n = 0; n < AWAY; n++) {
            inOrder &= came.get(n).equals("" + n);
        }
        return Scene.map("present", List.of(before, after), "inOrder", inOrder);
    }

    private static Object will(Scene scene) throws Exception {
        Device.Options options = scene.options();
        options.willTopic = scene.topic;
        options.will = "gone";
        options.willQos = scene.number("qos", 0);
        options.willRetained = true;
        Device reader = scene.connected("r");
        reader.subscribe(scene.topic, 2);
        Device polite = scene.device("polite");
        polite.connect(options);
        polite.disconnect();
        Device device = scene.device("w");
        device.connect(options);
        device.cut();
        Device.Got live = reader.take();
        Device late = scene.connected("late");
        late.subscribe(scene.topic, 2);
        Device.Got kept = late.take();
        return List.of(
                List.of(live.payload(), live.qos(), live.retained()),
                List.of(kept.payload(), kept.qos(), kept.retained()),
                reader.got.size());
    }

    /** Publishes one after the other while the server is killed, and tells when more were acknowledged. */
    private static Object crash(Scene scene) throws Exception {
        int qos = scene.number("qos", 1);
        Device.Options lasting = scene.lasting();
        lasting.reconnects = true;
        Device reader = scene.device("r");
        Device writer = scene.device("w");
        reader.connect(lasting);
        writer.connect(lasting);
        reader.subscribe(scene.topic, qos);
        int count = 0;
        while (!scene.isTold("end")) {
            for (int n = 0; n < 10; n++) {
                publishOnce(scene, writer, "" + count++, qos);
            }
            if (scene.isTold("more")) {
                scene.tell("more", count);
            }
        }
        int sent = count;
        List<String> came = new ArrayList<>();
        Scene.until("all messages", () -> {
            for (var one = reader.got.poll(); one != null; one = reader.got.poll()) {
                came.add(one.payload());
            }
            return new HashSet<>(came).size() >= sent;
        });
        return Scene.map("acknowledged", sent, "distinct", new HashSet<>(came).size(), "count", came.size());
    }

    /** Publishes when there is a connection; the client itself sends again what is in flight. */
    private static void publishOnce(Scene scene, Device writer, String payload, int qos) throws Exception {
        long before = writer.acknowledged.get();
        Scene.until("connection", () -> {
            if (!writer.isConnected()) {
                return false;
            }
            try {
                writer.send(scene.topic, payload.getBytes(), qos, false);
                return true;
            } catch (MqttException | org.eclipse.paho.mqttv5.common.MqttException error) {
                return false; // it has lost the connection, and keeps nothing of the message
            }
        });
        Scene.until("acknowledgement", () -> writer.acknowledged.get() > before);
    }

    private Sessions() {
    }
}
