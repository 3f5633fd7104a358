package magnetar.interop.bookkeeper;

import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import magnetar.interop.stage.Dialogue;
import magnetar.interop.stage.Stage;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.WriteAdvHandle;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.util.AvailabilityOfEntriesOfLedger;

/** Ledgers as users of BookKeeper write, read, recover and tail them. */
final class Ledgers {
    static final Map<String, Stage.Family<Scene>> FAMILIES = Map.ofEntries(
            Map.entry("ledgers.write", Ledgers::write),
            Map.entry("ledgers.append", Ledgers::append),
            Map.entry("ledgers.advanced", Ledgers::advanced),
            Map.entry("ledgers.close", Ledgers::close),
            Map.entry("ledgers.delete", Ledgers::delete),
            Map.entry("ledgers.read", Ledgers::read),
            Map.entry("ledgers.batch", Ledgers::batch),
            Map.entry("ledgers.tail", Ledgers::tail),
            Map.entry("ledgers.explicit", Ledgers::explicit),
            Map.entry("ledgers.force", Ledgers::force),
            Map.entry("ledgers.list", Ledgers::list),
            Map.entry("ledgers.unconfirmed", Ledgers::unconfirmed));

    private static final Map<Long, LedgerHandle> WRITERS = new ConcurrentHashMap<>();

    private Ledgers() {
    }

    /** Creates a ledger and appends; its writer stays, so that the scenes below go on with it. */
    private static Object write(Scene scene) throws Exception {
        BookKeeper client = scene.client();
        int ensemble = scene.number("ensemble", 1);
        LedgerHandle writer = client.createLedger(ensemble, scene.number("quorum", ensemble),
                scene.number("ack", ensemble), scene.digest(), scene.password());
        WRITERS.put(writer.getId(), writer);
        append(writer, scene);
        return Long.toString(writer.getId());
    }

    private static Object append(Scene scene) throws Exception {
        append(WRITERS.get(scene.ledger()), scene);
        return null;
    }

    /** Appends so many entries, all in flight at once, and waits for all. */
    private static void append(LedgerHandle writer, Scene scene) throws Exception {
        int first = scene.number("first", 0);
        List<CompletableFuture<?>> added = new ArrayList<>();
        for (int i = first; i < first + scene.number("count", 10); i++) {
            added.add(writer.appendAsync(payload(i, scene.number("size", 0))));
        }
        CompletableFuture.allOf(added.toArray(new CompletableFuture[0])).get(60, TimeUnit.SECONDS);
    }

    /** A ledger whose entries' ids the caller chooses, backwards here; an id that was used is refused. */
    private static Object advanced(Scene scene) throws Exception {
        int count = scene.number("count", 10);
        try (WriteAdvHandle writer = scene.client().newCreateLedgerOp().withEnsembleSize(3).withWriteQuorumSize(3)
                .withAckQuorumSize(2).withPassword(scene.password()).makeAdv()
                .withLedgerId(Long.parseLong(scene.text("id", "0"))).execute().get(30, TimeUnit.SECONDS)) {
            List<CompletableFuture<?>> added = new ArrayList<>();
            for (int i = count - 1; i >= 0; i--) {
                added.add(writer.writeAsync(i, Unpooled.wrappedBuffer(payload(i, 0))));
            }
            CompletableFuture.allOf(added.toArray(new CompletableFuture[0])).get(60, TimeUnit.SECONDS);
            String refused = null;
            try {
                writer.write(0, payload(0, 0));
            } catch (BKException error) {
                refused = error.getClass().getSimpleName();
            }
            return Dialogue.map("last", writer.getLastAddConfirmed(), "refused", refused);
        }
    }

    private static byte[] payload(int number, int size) {
        byte[] text = ("entry " + number).getBytes(StandardCharsets.UTF_8);
        if (size <= text.length) {
            return text;
        }
        byte[] padded = new byte[size];
        System.arraycopy(text, 0, padded, 0, text.length);
        return padded;
    }

    private static Object close(Scene scene) throws Exception {
        LedgerHandle writer = WRITERS.remove(scene.ledger());
        writer.close();
        return writer.getLastAddConfirmed();
    }

    private static Object delete(Scene scene) throws Exception {
        scene.client().deleteLedger(scene.ledger());
        return null;
    }

    /** All payloads, to the first zero, of a ledger that is opened with or without recovery. */
    private static Object read(Scene scene) throws Exception {
        try (LedgerHandle reader = open(scene)) {
            List<String> seen = new ArrayList<>();
            long last = reader.getLastAddConfirmed();
            for (long first = 0; first <= last; first += 500) {
                seen.addAll(texts(reader.readEntries(first, Math.min(last, first + 499))));
            }
            return Dialogue.map("entries", seen, "last", last, "length", reader.getLength());
        }
    }

    private static LedgerHandle open(Scene scene) throws Exception {
        BookKeeper client = scene.client();
        return scene.flag("recover")
                ? client.openLedger(scene.ledger(), scene.digest(), scene.password())
                : client.openLedgerNoRecovery(scene.ledger(), scene.digest(), scene.password());
    }

    private static List<String> texts(Enumeration<LedgerEntry> entries) {
        List<String> seen = new ArrayList<>();
        for (LedgerEntry entry : Collections.list(entries)) {
            seen.add(new String(entry.getEntry(), StandardCharsets.UTF_8).split("\0", 2)[0]);
        }
        return seen;
    }

    private static Object batch(Scene scene) throws Exception {
        try (LedgerHandle reader = open(scene)) {
            List<String> seen = new ArrayList<>();
            while (seen.size() <= reader.getLastAddConfirmed()) {
                seen.addAll(texts(reader.batchReadEntries(seen.size(), scene.number("count", 100), 1 << 20)));
            }
            return seen;
        }
    }

    /** Long polls: tells that it is about to wait, and returns the LAC and the entry that came with it. */
    private static Object tail(Scene scene) throws Exception {
        try (LedgerHandle reader = open(scene)) {
            scene.tell("last", reader.getLastAddConfirmed());
            long next = scene.number("next", 0);
            try (LastConfirmedAndEntry found = reader
                    .readLastAddConfirmedAndEntryAsync(next, scene.number("wait_ms", 20_000), false)
                    .get(40, TimeUnit.SECONDS)) {
                String text = found.hasEntry()
                        ? new String(found.getEntry().getEntryBytes(), StandardCharsets.UTF_8) : null;
                return Dialogue.map("last", found.getLastAddConfirmed(), "entry", text);
            }
        }
    }

    /** Waits until the explicit LAC is so high: only the client's timer tells it. */
    private static Object explicit(Scene scene) throws Exception {
        try (LedgerHandle reader = open(scene)) {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            long found = reader.readExplicitLastConfirmed();
            while (found < scene.number("last", 0) && System.nanoTime() < deadline) {
                found = reader.readExplicitLastConfirmed();
            }
            return found;
        }
    }

    /** Adds that are not synced, and a force that makes the LAC move. */
    private static Object force(Scene scene) throws Exception {
        try (WriteHandle writer = scene.client().newCreateLedgerOp().withEnsembleSize(1).withWriteQuorumSize(1)
                .withAckQuorumSize(1).withPassword(scene.password()).withWriteFlags(WriteFlag.DEFERRED_SYNC)
                .execute().get(30, TimeUnit.SECONDS)) {
            for (int i = 0; i < 5; i++) {
                writer.append(payload(i, 0));
            }
            long before = writer.getLastAddConfirmed();
            writer.force().get(30, TimeUnit.SECONDS);
            return new long[] {before, writer.getLastAddConfirmed()};
        }
    }

    /** Entries that a reader asks for by itself, beyond what it knows to be confirmed. */
    private static Object unconfirmed(Scene scene) throws Exception {
        try (LedgerHandle reader = open(scene); LedgerEntries found = reader
                .readUnconfirmed(0, scene.number("last", 0))) {
            List<String> seen = new ArrayList<>();
            for (org.apache.bookkeeper.client.api.LedgerEntry entry : found) {
                seen.add(new String(entry.getEntryBytes(), StandardCharsets.UTF_8));
            }
            return Dialogue.map("entries", seen, "last", reader.getLastAddConfirmed());
        }
    }

    /** The ids of the entries that one bookie says it has. */
    private static Object list(Scene scene) throws Exception {
        try (BookKeeperAdmin admin = new BookKeeperAdmin(scene.client())) {
            AvailabilityOfEntriesOfLedger found = admin
                    .asyncGetListOfEntriesOfLedger(BookieId.parse(scene.text("bookie", "")), scene.ledger())
                    .get(30, TimeUnit.SECONDS);
            List<Long> ids = new ArrayList<>();
            for (long i = 0; i < scene.number("count", 0); i++) {
                if (found.isEntryAvailable(i)) {
                    ids.add(i);
                }
            }
            return ids;
        } catch (ExecutionException error) {
            if (error.getCause() instanceof BKException.BKNoSuchLedgerExistsException) {
                return List.of();
            }
            throw error;
        }
    }
}
