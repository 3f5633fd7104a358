package magnetar.interop.bookkeeper;

import java.util.Map;
import magnetar.interop.stage.Dialogue;
import magnetar.interop.stage.Stage;
import org.apache.bookkeeper.client.LedgerHandle;

/** Recoveries, and how long they take. */
final class Recovery {
    static final Map<String, Stage.Family<Scene>> FAMILIES = Map.of("recovery.recover", Recovery::recover);

    private Recovery() {
    }

    /** Opens a ledger with recovery: the last entry, the length, and the milliseconds that it took. */
    private static Object recover(Scene scene) throws Exception {
        long begin = System.nanoTime();
        try (LedgerHandle ledger = scene.client().openLedger(scene.ledger(), scene.digest(), scene.password())) {
            long took = System.nanoTime() - begin;
            return Dialogue.map("last", ledger.getLastAddConfirmed(), "length", ledger.getLength(),
                    "milliseconds", took / 1_000_000);
        }
    }
}
