package magnetar.interop.kafka;

import java.util.HashMap;
import java.util.Map;
import magnetar.interop.stage.Stage;
import magnetar.interop.stage.Stage.Family;

/** The process of all tests with Apache Kafka's Java clients. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        Map<String, Family<Scene>> families = new HashMap<>();
        Records.register(families);
        Transactions.register(families);
        Tools.register(families);
        Quotas.register(families);
        Crashing.register(families);
        Counting.register(families);
        Identity.register(families);
        Registry.register(families);
        new Stage<>(Scene::new, families).run();
    }

    private Main() {
    }
}
