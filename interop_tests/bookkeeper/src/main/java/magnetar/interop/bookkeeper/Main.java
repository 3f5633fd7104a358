package magnetar.interop.bookkeeper;

import java.util.HashMap;
import java.util.Map;
import magnetar.interop.stage.Stage;

/** The process with Apache BookKeeper's Java client. */
public final class Main {
    private Main() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, Stage.Family<Scene>> families = new HashMap<>();
        families.putAll(Cluster.FAMILIES);
        families.putAll(Ledgers.FAMILIES);
        families.putAll(Recovery.FAMILIES);
        new Stage<>(Scene::new, families).run();
        System.exit(0);
    }
}
