import dev.pintle.Pintle;
import dev.pintle.Server;
import dev.pintle.Workspace;
import java.util.Arrays;
import java.util.Map;

/** Prints how long a server, and a workspace for a test, take with the Java package; benches/packages runs it. */
class Start {
    private static final String NAMESPACES = "/api/v1/namespaces";
    private static final int TESTS = 200;

    public static void main(String[] arguments) {
        long began = System.nanoTime();
        try (Server server = Pintle.start()) {
            server.workspace().request("GET", NAMESPACES);
            double ready = milliseconds(began);
            Workspace template = server.template("built", workspace -> workspace.request("POST", NAMESPACES, Map.of("metadata", Map.of("name", "built"))));
            double[] forks = new double[TESTS];
            double[] tests = new double[TESTS];
            for (int round = 0; round < TESTS; round++) {
                began = System.nanoTime();
                try (Workspace workspace = template.fork()) {
                    forks[round] = milliseconds(began);
                    workspace.request("GET", NAMESPACES + "/built");
                }
                tests[round] = milliseconds(began);
            }
            System.out.printf("{\"ready\": %s, \"fork\": %s, \"test\": %s}%n", ready, median(forks), median(tests));
        }
    }

    private static double milliseconds(long began) {
        return (System.nanoTime() - began) / 1e6;
    }

    private static double median(double[] times) {
        Arrays.sort(times);
        return times[times.length / 2];
    }
}
