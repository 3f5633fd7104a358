import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.util.Map;
import org.apache.bookkeeper.client.api.BookKeeper;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * The stock Java client, one command a run: URI write COUNT | URI open ID | URI delete ID. The property
 * `configuration` names a file with more of its configuration.
 */
public final class StockClient {
  public static void main(String[] words) throws Exception {
    ClientConfiguration configuration = new ClientConfiguration();
    String more = System.getProperty("configuration");
    if (more != null) {
      configuration.loadConf(new File(more).toURI().toURL());
    }
    configuration.setMetadataServiceUri(words[0]);
    try (BookKeeper client = BookKeeper.newBuilder(configuration).build()) {
      switch (words[1]) {
        case "write" -> write(client, Integer.parseInt(words[2]));
        case "open" -> open(client, Long.parseLong(words[2]));
        case "delete" -> client.newDeleteLedgerOp().withLedgerId(Long.parseLong(words[2])).execute().get();
        default -> throw new IllegalArgumentException(words[1]);
      }
    }
  }

  private static void write(BookKeeper client, int count) throws Exception {
    try (WriteHandle ledger =
        client
            .newCreateLedgerOp()
            .withEnsembleSize(1)
            .withWriteQuorumSize(1)
            .withAckQuorumSize(1)
            .withDigestType(DigestType.CRC32C)
            .withPassword(new byte[0])
            .withCustomMetadata(Map.of("key", "value".getBytes(UTF_8)))
            .execute()
            .get()) {
      for (int i = 0; i < count; i++) {
        ledger.append(("entry " + i).getBytes(UTF_8));
      }
      System.out.println("ledger " + ledger.getId());
    }
  }

  private static void open(BookKeeper client, long id) throws Exception {
    try (ReadHandle ledger =
        client.newOpenLedgerOp().withLedgerId(id).withPassword(new byte[0]).withRecovery(true).execute().get()) {
      System.out.println("last " + ledger.getLastAddConfirmed() + " " + ledger.getLedgerMetadata().toSafeString());
    }
  }
}
