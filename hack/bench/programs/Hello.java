import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.Simulation;

/** Hello asks a server, in a closed loop of four users, for three seconds. */
public class Hello extends Simulation {
  {
    setUp(scenario("hello").during(3).on(exec(http("get").get(System.getProperty("url")))).injectOpen(atOnceUsers(4)));
  }
}
