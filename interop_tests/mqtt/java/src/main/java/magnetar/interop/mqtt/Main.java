package magnetar.interop.mqtt;

import java.util.HashMap;
import java.util.Map;
import magnetar.interop.stage.Stage;
import magnetar.interop.stage.Stage.Family;

/** The process of all tests with Eclipse's Java clients of MQTT. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        Map<String, Family<Scene>> families = new HashMap<>();
        Messages.register(families);
        Sessions.register(families);
        new Stage<>(Scene::new, families).run();
    }

    private Main() {
    }
}
