package magnetar.interop.mqtt;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** One process for all tests with Java clients of MQTT; `interop_tests/driver.py` describes how it is spoken to. */
public final class Main {
    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    /** Plays one scene and returns what was seen, as plain lists, maps, strings and numbers. */
    interface Family {
        Object play(Scene scene) throws Exception;
    }

    private static final Map<String, Family> FAMILIES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err); // only answers go to the standard output
        Messages.register(FAMILIES);
        Sessions.register(FAMILIES);
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
        try (scene) {
            answer.put("result", FAMILIES.get(name).play(scene));
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

    private Main() {
    }
}
