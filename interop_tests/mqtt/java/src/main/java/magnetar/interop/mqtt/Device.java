package magnetar.interop.mqtt;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.ssl.SSLSocketFactory;

/** A client of any version of the protocol. */
abstract class Device {
    static final int WAIT_MS = 30_000;

    /** A message that was received. */
    record Got(String topic, String payload, int qos, boolean retained, boolean duplicate) {
    }

    /** How a client connects. */
    static final class Options {
        int version = 4;
        boolean clean = true;
        boolean reconnects;
        int window = 100;
        String willTopic;
        String will;
        int willQos = 1;
        boolean willRetained;
        SSLSocketFactory tls;
    }

    final BlockingQueue<Got> got = new LinkedBlockingQueue<>();
    /** How many of its messages are acknowledged. */
    final AtomicLong acknowledged = new AtomicLong();

    /** Connects; returns whether a session was present. */
    abstract boolean connect(Options options) throws Exception;

    /** Subscribes; returns the granted QoS. */
    abstract int subscribe(String filter, int qos) throws Exception;

    abstract void unsubscribe(String filter) throws Exception;

    /** Has a message sent, and does not wait. */
    abstract void send(String topic, byte[] payload, int qos, boolean retained) throws Exception;

    abstract boolean isConnected();

    /** Leaves in order. */
    abstract void disconnect() throws Exception;

    /** Closes its connection without DISCONNECT. */
    abstract void cut() throws Exception;

    /** Gives everything up. */
    abstract void close();

    /** Publishes, and waits until that is acknowledged. */
    void publish(String topic, String payload, int qos, boolean retained) throws Exception {
        long before = acknowledged.get();
        send(topic, payload.getBytes(), qos, retained);
        Scene.until("acknowledgement", () -> acknowledged.get() > before);
    }

    Got take() throws Exception {
        Got found = got.poll(WAIT_MS, TimeUnit.MILLISECONDS);
        if (found == null) {
            throw new TimeoutException("no message");
        }
        return found;
    }
}
