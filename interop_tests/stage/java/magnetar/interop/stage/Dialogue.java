package magnetar.interop.stage;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What a scene and its test say to each other: the request's arguments, and words on the way. */
public abstract class Dialogue implements AutoCloseable {
    private static final int PATIENCE_SECONDS = 120;

    public final long id;
    public final String url;
    public final String topic;
    protected final JsonObject args;
    private final BlockingQueue<String> heard = new LinkedBlockingQueue<>();

    protected Dialogue(long id, JsonObject request) {
        this.id = id;
        this.url = request.get("url").getAsString();
        this.topic = request.get("topic").getAsString();
        this.args = request.getAsJsonObject("args");
    }

    public boolean flag(String name) {
        JsonElement found = args.get(name);
        return found != null && found.getAsBoolean();
    }

    public int number(String name, int otherwise) {
        JsonElement found = args.get(name);
        return found == null ? otherwise : found.getAsInt();
    }

    public String text(String name, String otherwise) {
        JsonElement found = args.get(name);
        return found == null ? otherwise : found.getAsString();
    }

    public void tell(String name, Object value) {
        Stage.say(map("id", id, "told", name, "value", value));
    }

    void hear(String name) {
        heard.add(name);
    }

    /** Waits until the test says so. */
    public void await(String name) throws Exception {
        String next = heard.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (!name.equals(next)) {
            throw new IllegalStateException("waited for " + name + ", heard " + next);
        }
    }

    public boolean isTold(String name) {
        return heard.remove(name);
    }

    @Override
    public void close() {
    }

    /** A name and its value, and so on. */
    public static Map<String, Object> map(Object... pairs) {
        Map<String, Object> made = new HashMap<>();
        for (int at = 0; at < pairs.length; at += 2) {
            made.put((String) pairs[at], pairs[at + 1]);
        }
        return made;
    }
}
