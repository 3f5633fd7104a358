package magnetar.interop.bookkeeper;

import java.util.HashMap;
import java.util.Map;
import magnetar.interop.stage.Stage;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.BookieInfoReader.BookieInfo;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** The cluster's metadata: made once, and bookies that are registered, each with the id that is its address. */
final class Cluster {
    static final Map<String, Stage.Family<Scene>> FAMILIES = Map.of(
            "cluster.init", Cluster::init,
            "cluster.register", Cluster::register,
            "cluster.info", Cluster::info);

    private static final String AVAILABLE = "/ledgers/available/";
    private static final Map<String, ZooKeeper> SESSIONS = new HashMap<>();

    private Cluster() {
    }

    private static Object init(Scene scene) throws Exception {
        ServerConfiguration configuration = new ServerConfiguration();
        configuration.setMetadataServiceUri(scene.url);
        return BookKeeperAdmin.initNewCluster(configuration);
    }

    private static Object register(Scene scene) throws Exception {
        String node = AVAILABLE + scene.text("bookie", "");
        ZooKeeper session = session(scene.text("zookeeper", ""));
        session.create(node, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        return null;
    }

    private static synchronized ZooKeeper session(String address) throws Exception {
        ZooKeeper found = SESSIONS.get(address);
        if (found == null) {
            found = new ZooKeeper(address, 20_000, event -> { });
            SESSIONS.put(address, found);
        }
        return found;
    }

    /** Free and total bytes of each bookie, as the client asks them. */
    private static Object info(Scene scene) throws Exception {
        Map<String, Object> seen = new HashMap<>();
        for (Map.Entry<BookieId, BookieInfo> one : scene.client().getBookieInfo().entrySet()) {
            seen.put(one.getKey().toString(),
                    new long[] {one.getValue().getFreeDiskSpace(), one.getValue().getTotalDiskSpace()});
        }
        return seen;
    }
}
