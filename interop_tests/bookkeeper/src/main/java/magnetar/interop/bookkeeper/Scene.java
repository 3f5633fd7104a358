package magnetar.interop.bookkeeper;

import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import magnetar.interop.stage.Dialogue;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** One scene; `url` is the metadata service's URI. Clients are shared by scenes of the same version and interval. */
final class Scene extends Dialogue {
    private static final Map<String, BookKeeper> CLIENTS = new ConcurrentHashMap<>();

    Scene(long id, JsonObject request) {
        super(id, request);
    }

    BookKeeper client() throws Exception {
        boolean second = number("version", 3) == 2;
        int interval = number("explicit_lac_ms", 0);
        String trusted = text("trusted", "");
        String key = url + " " + second + " " + interval + " " + trusted;
        synchronized (CLIENTS) {
            BookKeeper found = CLIENTS.get(key);
            if (found == null) {
                ClientConfiguration configuration = new ClientConfiguration();
                configuration.setMetadataServiceUri(url);
                configuration.setUseV2WireProtocol(second);
                configuration.setBatchReadEnabled(second);
                configuration.setExplictLacInterval(interval);
                configuration.setZkTimeout(20_000);
                if (!trusted.isEmpty()) {
                    configuration.setTLSProvider("OpenSSL");
                    configuration.setTLSProviderFactoryClass("org.apache.bookkeeper.tls.TLSContextFactory");
                    configuration.setTLSTrustStoreType("PEM");
                    configuration.setTLSTrustStore(trusted);
                    configuration.setHostnameVerificationEnabled(true);
                }
                found = new BookKeeper(configuration);
                CLIENTS.put(key, found);
            }
            return found;
        }
    }

    DigestType digest() {
        return DigestType.valueOf(text("digest", "CRC32"));
    }

    byte[] password() {
        return text("password", "secret").getBytes(StandardCharsets.UTF_8);
    }

    long ledger() {
        return Long.parseLong(text("ledger", "-1"));
    }
}
