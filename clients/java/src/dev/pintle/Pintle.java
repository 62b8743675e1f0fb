package dev.pintle;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The Kubernetes API for tests, from the class path: no download, no container, no port to choose.
 *
 * <pre>{@code
 * try (Server server = Pintle.start(); Workspace workspace = server.workspace()) {
 *     workspace.apply("config/crd");
 *     KubernetesClient client = workspace.client(KubernetesClient.class);
 * }
 * }</pre>
 */
public final class Pintle {
    private static final Map<List<Object>, Server> STARTED = new HashMap<>();

    private Pintle() {}

    /** The server of this test run with these flags of {@code pintle serve}, which is started unless it runs. */
    public static Server start(String... flags) {
        return startIn(Run.name(), flags);
    }

    /** The server of a named test run: processes with the same name share it. */
    public static Server startIn(String run, String... flags) {
        synchronized (STARTED) {
            List<Object> key = List.of(run, List.of(flags));
            Server known = STARTED.get(key);
            if (known == null || known.isClosed()) {
                known = new Server(Connection.open(run, List.of(flags)));
                STARTED.put(key, known);
            }
            return known;
        }
    }

    /** The plan of a change, with the arguments of {@code pintle plan}. It needs no server. */
    public static Plan plan(String... words) {
        return Plan.of(Result.of("plan", words));
    }

    /** The trial of a scenario, with the arguments of {@code pintle trial}. It needs no server. */
    public static Trial trial(String... words) {
        return Trial.of(Result.of("trial", words));
    }
}
