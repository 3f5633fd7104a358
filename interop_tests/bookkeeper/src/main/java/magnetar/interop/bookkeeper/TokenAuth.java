package magnetar.interop.bookkeeper;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.bookkeeper.auth.AuthCallbacks.GenericCallback;
import org.apache.bookkeeper.auth.AuthToken;
import org.apache.bookkeeper.auth.BookieAuthProvider;
import org.apache.bookkeeper.auth.ClientAuthProvider;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.proto.BookieConnectionPeer;
import org.apache.bookkeeper.proto.ClientConnectionPeer;

/** The plugin `token` for Apache's clients and bookies: a JSON Web Token in one message, answered by an empty one. */
public final class TokenAuth {
    private static final String NAME = "token";
    private static final Pattern EXPIRES = Pattern.compile("\"exp\": ?([0-9]+)");

    private TokenAuth() {
    }

    /** Of the client: `tokenFile` has the token. */
    public static final class Client implements ClientAuthProvider.Factory {
        private Path file;

        @Override
        public String getPluginName() {
            return NAME;
        }

        @Override
        public void init(ClientConfiguration conf) {
            file = Path.of(conf.getString("tokenFile"));
        }

        @Override
        public ClientAuthProvider newProvider(ClientConnectionPeer peer, GenericCallback<Void> done) {
            return new ClientAuthProvider() {
                @Override
                public void init(GenericCallback<AuthToken> said) {
                    try {
                        said.operationComplete(BKException.Code.OK, AuthToken.wrap(Files.readAllBytes(file)));
                    } catch (IOException e) {
                        said.operationComplete(BKException.Code.UnauthorizedAccessException, null);
                    }
                }

                @Override
                public void process(AuthToken answer, GenericCallback<AuthToken> said) {
                    done.operationComplete(BKException.Code.OK, null);
                }
            };
        }
    }

    /** Of the bookie: `tokenSecretKey` is the file of the secret of HS256. */
    public static final class Bookie implements BookieAuthProvider.Factory {
        private byte[] key;

        @Override
        public String getPluginName() {
            return NAME;
        }

        @Override
        public void init(ServerConfiguration conf) throws IOException {
            key = Files.readAllBytes(Path.of(conf.getString("tokenSecretKey")));
        }

        @Override
        public BookieAuthProvider newProvider(BookieConnectionPeer peer, GenericCallback<Void> done) {
            return (token, said) -> {
                boolean good = isGood(new String(token.getData(), UTF_8));
                int code = good ? BKException.Code.OK : BKException.Code.UnauthorizedAccessException;
                said.operationComplete(code, AuthToken.wrap(new byte[0]));
                done.operationComplete(code, null);
            };
        }

        private boolean isGood(String token) {
            String[] parts = token.split("\\.");
            if (parts.length != 3) {
                return false;
            }
            try {
                Mac mac = Mac.getInstance("HmacSHA256");
                mac.init(new SecretKeySpec(key, "HmacSHA256"));
                byte[] signature = mac.doFinal((parts[0] + "." + parts[1]).getBytes(UTF_8));
                if (!MessageDigest.isEqual(signature, Base64.getUrlDecoder().decode(parts[2]))) {
                    return false;
                }
            } catch (GeneralSecurityException | IllegalArgumentException e) {
                return false;
            }
            Matcher expires = EXPIRES.matcher(new String(Base64.getUrlDecoder().decode(parts[1]), UTF_8));
            return !expires.find() || Long.parseLong(expires.group(1)) > System.currentTimeMillis() / 1000;
        }
    }
}
