package magnetar.interop.kafka;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Scanner;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * What Java and Kafka make of subjects of certificates: for each line of standard input, rules and a
 * name in DER, both in base64, it prints the name's text and the principal, likewise.
 */
public final class Names {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        while (lines.hasNextLine()) {
            String[] said = lines.nextLine().split(" ");
            String rules = new String(Base64.getDecoder().decode(said[0]), StandardCharsets.UTF_8);
            String name = new X500Principal(Base64.getDecoder().decode(said[1])).getName();
            System.out.println(encoded(name) + " " + encoded(mapped(rules, name)));
        }
    }

    private static String mapped(String rules, String name) {
        try {
            return SslPrincipalMapper.fromRules(rules).getName(name);
        } catch (Exception error) {
            return "!";
        }
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private Names() {
    }
}
