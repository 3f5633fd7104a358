package magnetar.interop.stage;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * One process for all tests with the Java clients of a protocol; `interop_tests/driver.py` describes how it is spoken
 * to. Scenes are played at the same time, a thread each.
 */
public final class Stage<S extends Dialogue> {
    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    /** Plays one scene and returns what was seen, as plain lists, maps, strings and numbers. */
    public interface Family<S> {
        Object play(S scene) throws Exception;
    }

    /** Makes a scene of its number and of the test's request. */
    public interface Scenes<S> {
        S make(long id, JsonObject request);
    }

    private final Scenes<S> scenes;
    private final Map<String, Family<S>> families;
    private final Map<Long, S> playing = new ConcurrentHashMap<>();

    public Stage(Scenes<S> scenes, Map<String, Family<S>> families) {
        this.scenes = scenes;
        this.families = families;
    }

    /** Returns at the end of the standard input. */
    public void run() throws IOException {
        System.setOut(System.err); // only answers go to the standard output
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonObject request = GSON.fromJson(line, JsonObject.class);
            long id = request.get("id").getAsLong();
            if (!request.has("tell")) {
                begin(id, request);
                continue;
            }
            S scene = playing.get(id);
            if (scene != null) { // else it has ended
                scene.hear(request.get("tell").getAsString());
            }
        }
    }

    private void begin(long id, JsonObject request) {
        S scene = scenes.make(id, request);
        playing.put(id, scene);
        Thread thread = new Thread(() -> {
            play(scene, request.get("family").getAsString());
            playing.remove(id);
        });
        thread.setDaemon(true);
        thread.start();
    }

    private void play(S scene, String name) {
        Map<String, Object> answer = new HashMap<>();
        answer.put("id", scene.id);
        try (scene) {
            Family<S> family = families.get(name);
            if (family == null) {
                throw new IllegalArgumentException("there is no family " + name);
            }
            answer.put("result", family.play(scene));
        } catch (Throwable error) {
            StringWriter trace = new StringWriter();
            error.printStackTrace(new PrintWriter(trace));
            answer.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            answer.put("trace", trace.toString());
        }
        say(answer);
    }

    static void say(Map<String, Object> answer) {
        synchronized (OUT) {
            OUT.println(GSON.toJson(answer));
        }
    }
}
