package magnetar.interop;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * One process for all tests with the Java client. Tests write a line of JSON for each scene they want played,
 * {"id": 1, "family": "acks.individual", "url": ..., "topic": ..., "args": {...}}, and read one with what was
 * seen, {"id": 1, "result": ...} or {"id": 1, "error": ..., "trace": ...}. On the way a scene may tell
 * {"id": 1, "told": name, "value": ...}, and wait to be told {"id": 1, "tell": name}. Scenes run at the same time.
 */
public final class Main {
    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private static final PrintStream OUT =
            new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8);

    /** Plays one scene and returns what was seen, as plain lists, maps, strings and numbers. */
    interface Family {
        Object play(Scene scene) throws Exception;
    }

    static final Map<String, Family> FAMILIES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err); // only answers go to the standard output
        Publishing.register(FAMILIES);
        Subscribing.register(FAMILIES);
        Acking.register(FAMILIES);
        Reading.register(FAMILIES);
        Partitioned.register(FAMILIES);
        Access.register(FAMILIES);
        Crashing.register(FAMILIES);
        Returning.register(FAMILIES);
        Map<Long, Scene> playing = new ConcurrentHashMap<>();
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject request = GSON.fromJson(line, JsonObject.class);
            long id = request.get("id").getAsLong();
            if (request.has("tell")) {
                Scene scene = playing.get(id);
                if (scene != null) {
                    scene.hear(request.get("tell").getAsString());
                }
                continue;
            }
            Scene scene = new Scene(id, request);
            playing.put(id, scene);
            Thread thread = new Thread(() -> {
                play(scene, request.get("family").getAsString());
                playing.remove(id);
            });
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void play(Scene scene, String name) {
        Map<String, Object> answer = new HashMap<>();
        answer.put("id", scene.id);
        try {
            Family family = FAMILIES.get(name);
            if (family == null) {
                throw new IllegalArgumentException("there is no family " + name);
            }
            answer.put("result", family.play(scene));
        } catch (Throwable error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            answer.put("trace", trace.toString());
        } finally {
            scene.close();
        }
        say(answer);
    }

    static void say(Map<String, Object> answer) {
        synchronized (OUT) {
            OUT.println(GSON.toJson(answer));
        }
    }

    private Main() {
    }
}
