import java.util.List;
import java.util.Map;
import org.apache.bookkeeper.tools.cli.commands.autorecovery.ListUnderReplicatedCommand;
import org.apache.bookkeeper.tools.cli.commands.autorecovery.LostBookieRecoveryDelayCommand;
import org.apache.bookkeeper.tools.cli.commands.autorecovery.QueryAutoRecoveryStatusCommand;
import org.apache.bookkeeper.tools.cli.commands.autorecovery.ToggleCommand;
import org.apache.bookkeeper.tools.cli.commands.autorecovery.TriggerAuditCommand;
import org.apache.bookkeeper.tools.cli.commands.autorecovery.WhoIsAuditorCommand;
import org.apache.bookkeeper.tools.cli.commands.bookie.ListLedgersCommand;
import org.apache.bookkeeper.tools.cli.commands.bookie.ReadLedgerCommand;
import org.apache.bookkeeper.tools.cli.commands.bookie.SanityTestCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.ClusterInfoCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.DecommissionCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.EndpointInfoCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.InfoCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.InitCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.InstanceIdCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.ListBookiesCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.MetaFormatCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.NukeExistingClusterCommand;
import org.apache.bookkeeper.tools.cli.commands.bookies.RecoverCommand;
import org.apache.bookkeeper.tools.cli.commands.client.DeleteLedgerCommand;
import org.apache.bookkeeper.tools.cli.commands.client.LedgerMetaDataCommand;
import org.apache.bookkeeper.tools.cli.commands.client.SimpleTestCommand;
import org.apache.bookkeeper.tools.cli.commands.cookie.CreateCookieCommand;
import org.apache.bookkeeper.tools.cli.commands.cookie.DeleteCookieCommand;
import org.apache.bookkeeper.tools.cli.commands.cookie.GenerateCookieCommand;
import org.apache.bookkeeper.tools.cli.commands.cookie.GetCookieCommand;
import org.apache.bookkeeper.tools.cli.commands.cookie.UpdateCookieCommand;
import org.apache.bookkeeper.tools.cli.commands.health.SwitchOfHealthCheckCommand;
import org.apache.bookkeeper.tools.common.BKCommand;
import org.apache.bookkeeper.tools.common.BKFlags;

/**
 * Apache's bkctl, whose jar is not published: the commands are in the server's jar, and their groups
 * here. CONFIGURATION GROUP COMMAND [words].
 */
public final class BkCtl {
  private static final Map<String, List<BKCommand<?>>> GROUPS =
      Map.of(
          "bookies",
          List.of(
              new ListBookiesCommand(),
              new InfoCommand(),
              new ClusterInfoCommand(),
              new InstanceIdCommand(),
              new InitCommand(),
              new MetaFormatCommand(),
              new NukeExistingClusterCommand(),
              new DecommissionCommand(),
              new RecoverCommand()),
          "bookie",
          List.of(
              new EndpointInfoCommand(),
              new SanityTestCommand(),
              new ListLedgersCommand(),
              new ReadLedgerCommand()),
          "autorecovery",
          List.of(
              new WhoIsAuditorCommand(),
              new TriggerAuditCommand(),
              new ToggleCommand(),
              new QueryAutoRecoveryStatusCommand(),
              new ListUnderReplicatedCommand(),
              new LostBookieRecoveryDelayCommand()),
          "ledger",
          List.of(new SimpleTestCommand(), new DeleteLedgerCommand(), new LedgerMetaDataCommand()),
          "cookie",
          List.of(
              new CreateCookieCommand(),
              new DeleteCookieCommand(),
              new GetCookieCommand(),
              new UpdateCookieCommand(),
              new GenerateCookieCommand()),
          "healthCheck",
          List.of(new SwitchOfHealthCheckCommand()));

  public static void main(String[] words) {
    BKFlags flags = new BKFlags();
    flags.configFile = words[0];
    String[] others = java.util.Arrays.copyOfRange(words, 3, words.length);
    for (BKCommand<?> command : GROUPS.get(words[1])) {
      if (command.name().equals(words[2])) {
        System.exit(command.apply(flags, others) ? 0 : 1);
      }
    }
    throw new IllegalArgumentException(words[1] + " has no " + words[2]);
  }
}
