package magnetar.interop.mqtt;

import com.google.gson.JsonObject;
import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import magnetar.interop.stage.Dialogue;

/** What a family plays with: a server, a fresh topic, and words for what all of them do. */
final class Scene extends Dialogue {
    static final int DEADLINE_SECONDS = 50;

    private final List<Device> made = new ArrayList<>();

    Scene(long id, JsonObject request) {
        super(id, request);
    }

    @Override
    public void close() {
        made.forEach(Device::close);
    }

    // -- arguments

    int version() {
        return number("version", 4);
    }

    // -- clients

    /** A client that is closed after the scene. */
    Device device(String name) throws Exception {
        String clientId = topic + "-" + name;
        String address = url.replace("mqtts://", "ssl://").replace("mqtt://", "tcp://");
        Device device = version() == 5 ? new Paho5(address, clientId) : new Paho3(address, clientId);
        made.add(device);
        return device;
    }

    Device.Options options() throws Exception {
        Device.Options options = new Device.Options();
        options.version = version();
        if (args.has("ca")) {
            options.tls = trusting(args.get("ca").getAsString());
        }
        return options;
    }

    /** Options of a session that lasts. */
    Device.Options lasting() throws Exception {
        Device.Options options = options();
        options.clean = false;
        return options;
    }

    Device connected(String name) throws Exception {
        Device device = device(name);
        device.connect(options());
        return device;
    }

    private static SSLSocketFactory trusting(String path) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        try (var file = new FileInputStream(path)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context.getSocketFactory();
    }

    // -- words

    static void until(String what, Callable<Boolean> isSo) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
        while (!isSo.call()) {
            if (System.nanoTime() > deadline) {
                throw new TimeoutException("waited for " + what);
            }
            Thread.sleep(2);
        }
    }

    static List<String> payloads(Device device, int count) throws Exception {
        List<String> found = new ArrayList<>();
        while (found.size() < count) {
            found.add(device.take().payload());
        }
        return found;
    }
}
