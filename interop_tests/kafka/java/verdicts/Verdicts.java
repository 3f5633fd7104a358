import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.confluent.kafka.schemaregistry.ParsedSchema;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.json.JsonSchema;
import io.confluent.kafka.schemaregistry.protobuf.ProtobufSchema;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Says of each pair of schemas, a line of JSON, whether the new one may follow the old one (y or n), by
 * Confluent's own library; "-" where that fails.
 */
public final class Verdicts {
    private Verdicts() {}

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader pairs = new BufferedReader(new InputStreamReader(System.in));
        for (String line = pairs.readLine(); line != null; line = pairs.readLine()) {
            JsonNode pair = mapper.readTree(line);
            System.out.println(verdict(args[0], pair.get(0), pair.get(1)));
        }
    }

    private static String verdict(String language, JsonNode before, JsonNode after) {
        try {
            ParsedSchema old = parsed(language, before);
            return parsed(language, after).isBackwardCompatible(old).isEmpty() ? "y" : "n";
        } catch (RuntimeException failure) {
            return "-";
        }
    }

    /** A schema and the files that it imports, each of which is a version of its own. */
    private static ParsedSchema parsed(String language, JsonNode schema) {
        Map<String, String> imports = new LinkedHashMap<>();
        List<SchemaReference> references = new ArrayList<>();
        schema.get(1).fields().forEachRemaining(each -> {
            String text = each.getValue().asText();
            imports.put(each.getKey(), text);
            int version = 1 + (text.hashCode() & 0xfffff);
            references.add(new SchemaReference(each.getKey(), each.getKey(), version));
        });
        String text = schema.get(0).asText();
        ParsedSchema parsed =
                language.equals("JSON")
                        ? new JsonSchema(text, references, imports, null)
                        : new ProtobufSchema(text, references, imports, null, null);
        parsed.validate(true);
        return parsed;
    }
}
