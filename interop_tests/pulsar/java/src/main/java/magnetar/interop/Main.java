package magnetar.interop;

import java.util.HashMap;
import java.util.Map;
import magnetar.interop.stage.Stage;
import magnetar.interop.stage.Stage.Family;

/** The process of all tests with Apache's Java client for Pulsar. */
public final class Main {
    public static void main(String[] arguments) throws Exception {
        Map<String, Family<Scene>> families = new HashMap<>();
        Publishing.register(families);
        Subscribing.register(families);
        Acking.register(families);
        Reading.register(families);
        Partitioned.register(families);
        Access.register(families);
        Compacting.register(families);
        Crashing.register(families);
        Returning.register(families);
        Schemas.register(families);
        Transactions.register(families);
        new Stage<>(Scene::new, families).run();
    }

    private Main() {
    }
}
