package dev.pintle;

import java.util.Map;
import java.util.UUID;

/** A fault that is in effect. */
public final class Fault implements AutoCloseable {
    private final Workspace workspace;
    private final String path;

    private Fault(Workspace workspace, String path) {
        this.workspace = workspace;
        this.path = path;
    }

    static Fault create(Workspace workspace, Map<String, ?> spec) {
        String name = "fault-" + UUID.randomUUID().toString().substring(0, 13);
        workspace.testing("Fault", "faults", name, spec);
        return new Fault(workspace, Workspace.TESTING + "/faults/" + name);
    }

    /** The number of requests and events that it has hit. */
    public long hits() {
        Object status = workspace.request("GET", path).get("status");
        Object hits = status instanceof Map<?, ?> fields ? fields.get("hits") : null;
        return hits instanceof Number number ? number.longValue() : 0;
    }

    /** Ends its effect. */
    public void delete() {
        workspace.request("DELETE", path);
    }

    /** The same as {@link #delete}. */
    @Override
    public void close() {
        delete();
    }
}
