import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.Session;

/**
 * Sends CQL statements with the artifact's own driver. Its scripts use cqlsh, which is Python and not
 * in the image.
 *
 * <p>usage: Cql HOST PORT STATEMENTS      statements are separated by semicolons
 */
public final class Cql {
  private Cql() {}

  public static void main(String[] args) {
    Cluster cluster =
        Cluster.builder().addContactPoint(args[0]).withPort(Integer.parseInt(args[1])).build();
    try {
      // The default of 12 s is short for a busy machine, and a statement sent twice would fail.
      cluster.getConfiguration().getSocketOptions().setReadTimeoutMillis(120_000);
      Session session = cluster.connect();
      for (String statement : args[2].split(";")) {
        session.execute(statement);
      }
    } finally {
      cluster.close();
    }
  }
}
