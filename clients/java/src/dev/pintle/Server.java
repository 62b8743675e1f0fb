package dev.pintle;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** A running server. It ends with the last process that uses it; threads may share it. */
public final class Server implements AutoCloseable {
    static final String WORKSPACES = "/apis/workspaces.pintle.dev/v1alpha1/workspaces";
    private static final long BUILD_SECONDS = 300;
    private static final long BUILD_PAUSE_MILLISECONDS = 5;
    // how long the key of a template stays taken after its builder has died
    private static final long LEASE_SECONDS = 10;
    static final int NOT_FOUND = 404;
    static final int CONFLICT = 409;

    final Map<?, ?> credentials;
    private final Connection connection;
    private final Api api;
    private final Path log;
    private final Map<String, Template> templates = new ConcurrentHashMap<>();
    private volatile boolean isClosed;

    /** A template of this process, whose lock is held while it is built. */
    private static final class Template {
        private Workspace workspace;
    }

    Server(Connection connection) {
        this.connection = connection;
        String version = Binary.version();
        if (version != null && !version.equals(version())) {
            connection.close();
            throw new PintleException(connection.program + " has version " + version() + ", and pintle-server is " + version
                    + ": set the version of dev.pintle:pintle-server to " + version() + ", or name another binary");
        }
        credentials = (Map<?, ?>) connection.ready().get("credentials");
        Object written = connection.ready().get("log");
        log = written == null ? null : Path.of(written.toString());
        api = new Api(url(), credentials);
    }

    /** The URL of the server. */
    public String url() {
        return connection.ready().get("url").toString();
    }

    /** The version of the server. */
    public String version() {
        return String.valueOf(connection.ready().get("version"));
    }

    /** The number of the process of the server. */
    public long pid() {
        return ((Number) connection.ready().get("pid")).longValue();
    }

    /** A request to the API outside of workspaces; errors are {@link ResponseException}. */
    public Map<String, Object> request(String method, String path) {
        return request(method, path, null, Api.JSON);
    }

    Map<String, Object> request(String method, String path, Object body, String contentType) {
        return api.request(method, path, body, contentType);
    }

    /** A new, empty workspace. */
    public Workspace workspace() {
        return workspace("w-" + UUID.randomUUID().toString().substring(0, 13), Map.of());
    }

    /** A new workspace with a name and with the fields of its specification. */
    public Workspace workspace(String name, Map<String, ?> spec) {
        // it can be used when the response comes
        Map<String, Object> kubeconfig = request("POST", "/clusters/" + name, spec, Api.JSON);
        Map<?, ?> cluster = (Map<?, ?>) ((List<?>) kubeconfig.get("clusters")).get(0);
        String url = (String) ((Map<?, ?>) cluster.get("cluster")).get("server");
        // of a workspace that ends, the URL has the uid, since another one may get the name
        String place = url.substring(url.lastIndexOf('/') + 1);
        return new Workspace(this, name, place.substring(Math.min(name.length() + 1, place.length())));
    }

    /**
     * The template of a key: a workspace that is meant for forks. The first process of the test run that asks for it calls {@code build}
     * with the new workspace; the others wait. The class that calls this is part of the key: two classes that chose one name would
     * otherwise get each other's objects.
     */
    public Workspace template(String key, Consumer<Workspace> build) {
        return template(caller(), key, build);
    }

    /** The class that calls this package; empty if there is none. */
    static String caller() {
        String own = Server.class.getPackageName() + ".";
        return StackWalker.getInstance().walk(frames ->
                frames.map(StackWalker.StackFrame::getClassName).filter(name -> !name.startsWith(own)).findFirst().orElse(""));
    }

    Workspace template(String place, String name, Consumer<Workspace> build) {
        String key = place + "\0" + name;
        Template template = templates.computeIfAbsent(key, unknown -> new Template());
        synchronized (template) {
            if (template.workspace == null) {
                template.workspace = buildOrAwait(key, build);
            }
            return template.workspace;
        }
    }

    private Workspace buildOrAwait(String key, Consumer<Workspace> build) {
        String name = "t-" + Connection.hash(key);
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(BUILD_SECONDS);
        while (System.nanoTime() < until) {
            Workspace template = null;
            try {
                template = workspace(name, Map.of("ttl", LEASE_SECONDS + "s"));
            } catch (ResponseException error) {
                if (error.code() != CONFLICT) {
                    throw error;
                }
            }
            if (template != null) {
                return built(template, build);
            }
            if (isBuilt(name, until)) {
                return new Workspace(this, name, "");
            }
        }
        throw new PintleException("the template " + key + " has not been built within " + BUILD_SECONDS + " s");
    }

    private static Workspace built(Workspace template, Consumer<Workspace> build) {
        boolean isBuilt = false;
        Lease lease = new Lease(template);
        try {
            build.accept(template);
            // no extension may follow the last change
            lease.close();
            Map<String, Object> sealed = new HashMap<>(Map.of("template", true));
            sealed.put("ttl", null);
            template.patch(sealed);
            isBuilt = true;
            return template;
        } finally {
            if (!isBuilt) {
                lease.close();
                // another process may build it
                template.delete();
            }
        }
    }

    /** The lifetime of a workspace that is being built, which is extended until this is closed. */
    private static final class Lease {
        private final CountDownLatch end = new CountDownLatch(1);
        private final Thread extending;

        Lease(Workspace template) {
            long began = System.nanoTime();
            extending = new Thread(() -> extend(template, began), "pintle-lease");
            extending.setDaemon(true);
            extending.start();
        }

        private void extend(Workspace template, long began) {
            try {
                while (!end.await(LEASE_SECONDS * 1000 / 3, TimeUnit.MILLISECONDS)) {
                    long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - began) + LEASE_SECONDS;
                    try {
                        template.patch(Map.of("ttl", seconds + "s"));
                    } catch (PintleException nextTime) {
                        // the end shows whether the template is still there
                    }
                }
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }

        void close() {
            end.countDown();
            try {
                extending.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                throw new PintleException("the build of a template has been interrupted", error);
            }
        }
    }

    /** Whether a template that another process builds is there in the end. */
    private boolean isBuilt(String name, long until) {
        while (System.nanoTime() < until) {
            Map<String, Object> found;
            try {
                found = request("GET", WORKSPACES + "/" + name);
            } catch (ResponseException error) {
                if (error.code() != NOT_FOUND) {
                    throw error;
                }
                return false;
            }
            if (Boolean.TRUE.equals(((Map<?, ?>) found.get("spec")).get("template"))) {
                return true;
            }
            pause(BUILD_PAUSE_MILLISECONDS);
        }
        return false;
    }

    static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new PintleException("a wait for the server has been interrupted", error);
        }
    }

    /** The path of a kubeconfig for the API outside of workspaces. */
    public Path kubeconfig() {
        return connection.data.resolve("admin.kubeconfig");
    }

    Path data() {
        return connection.data;
    }

    /** The length of the log until now, for {@link #logSince}. */
    public long logSize() {
        try {
            return log != null && Files.exists(log) ? Files.size(log) : 0;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** What the server has logged since then. */
    public String logSince(long size) {
        try {
            return log == null ? "" : Connection.since(log, size);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    boolean isClosed() {
        return isClosed;
    }

    /** Ends the use by this process. The server ends with its last user. */
    @Override
    public void close() {
        isClosed = true;
        connection.close();
    }
}
