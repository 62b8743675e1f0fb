package dev.pintle;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A workspace of a server: an API of its own. */
public final class Workspace implements AutoCloseable {
    static final String TESTING_VERSION = "testing.pintle.dev/v1alpha1";
    static final String TESTING = "/apis/" + TESTING_VERSION;
    // what others need is applied first
    private static final List<String> FIRST = List.of("Namespace", "CustomResourceDefinition");

    private static final long DIFF_SECONDS = 10;
    private static final int DIFF_LINES = 50;

    private final Server server;
    private final String name;
    /** Empty unless another workspace may get the name. */
    private final String uid;
    private final Map<String, Kind> kinds = new HashMap<>();
    private final Map<Class<?>, Clients.Made> clients = new LinkedHashMap<>();
    private Path kubeconfig;

    /** The path of a kind. */
    private record Kind(String plural, boolean isNamespaced) {}

    Workspace(Server server, String name, String uid) {
        this.server = server;
        this.name = name;
        this.uid = uid;
    }

    /** Its name. */
    public String name() {
        return name;
    }

    /** Its server. */
    public Server server() {
        return server;
    }

    /** The URL of its API. */
    public String url() {
        return server.url() + prefix();
    }

    private String prefix() {
        return "/clusters/" + name + (uid.isEmpty() ? "" : "." + uid);
    }

    /** A request to the API of the workspace; errors of the API are {@link ResponseException}. */
    public Map<String, Object> request(String method, String path) {
        return request(method, path, null);
    }

    /** A request with a body: a map that is encoded as JSON, or a text. */
    public Map<String, Object> request(String method, String path, Object body) {
        return request(method, path, body, Api.JSON);
    }

    /** A request with a body of another content type, such as that of a patch. */
    public Map<String, Object> request(String method, String path, Object body, String contentType) {
        return server.request(method, prefix() + path, body, contentType);
    }

    /** A workspace that begins with everything in this one. */
    public Workspace fork() {
        return fork("w-" + UUID.randomUUID().toString().substring(0, 13));
    }

    /** A fork with a name. */
    public Workspace fork(String fork) {
        return server.workspace(fork, Map.of("from", Map.of("workspace", name)));
    }

    /** Puts the workspace back to what it began as. Its watches end. */
    public void reset() {
        // it is done when the response comes
        patch(Map.of("reset", UUID.randomUUID().toString()));
    }

    /** A change of the specification of the workspace. */
    void patch(Map<String, ?> spec) {
        Map<String, ?> metadata = uid.isEmpty() ? Map.of() : Map.of("uid", uid);
        Map<String, ?> patch = Map.of("metadata", metadata, "spec", spec);
        server.request("PATCH", Server.WORKSPACES + "/" + name, patch, Api.MERGE_PATCH);
    }

    /** Deletes the workspace with all that is in it, and closes the clients that have been made for it. */
    public synchronized void delete() {
        clients.values().forEach(made -> made.close().run());
        clients.clear();
        try {
            Object options = uid.isEmpty() ? null : Map.of("preconditions", Map.of("uid", uid));
            server.request("DELETE", Server.WORKSPACES + "/" + name, options, Api.JSON);
        } catch (ResponseException error) {
            // it is gone, and another one may have its name
            if (error.code() != Server.NOT_FOUND && error.code() != Server.CONFLICT) {
                throw error;
            }
        }
        if (kubeconfig != null) {
            try {
                Files.deleteIfExists(kubeconfig);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            kubeconfig = null;
        }
    }

    /** The same as {@link #delete}. */
    @Override
    public void close() {
        delete();
    }

    /** The clock of the workspace. */
    public Clock clock() {
        return new Clock(this);
    }

    /**
     * Makes requests or events of the workspace fail, until the fault is closed. The specification is that of a Fault: {@code recipe}, or
     * {@code match}, {@code when} and {@code effect}.
     */
    public Fault fault(Map<String, ?> spec) {
        return Fault.create(this, spec);
    }

    /** Returns when every watch has received everything, and nothing has been written for 100 ms, within 20 s. */
    public void settle() {
        settle(Duration.ofMillis(100), Duration.ofSeconds(20));
    }

    /** Returns when every watch has received everything, and nothing has been written for a time; the exception says who is behind. */
    public void settle(Duration quiet, Duration limit) {
        Map<String, ?> spec = Map.of("quiet", quiet.toMillis() + "ms", "timeout", limit.toMillis() + "ms");
        Map<?, ?> status = (Map<?, ?>) testing("Settle", "settles", "now", spec).get("status");
        if (!Boolean.TRUE.equals(status.get("settled"))) {
            throw new PintleException("not settled: " + status.get("message"));
        }
    }

    /** What each client has done, and what of it is suspicious: the status of a Report. */
    public Map<?, ?> report() {
        return (Map<?, ?>) testing("Report", "reports", "now", Map.of()).get("status");
    }

    /** The objects that were created, changed or deleted since the workspace began, one a line. */
    public String changes() {
        List<String> command = List.of(Binary.find().toString(), "workspace", "diff", name, "--kubeconfig", server.data().resolve("admin.kubeconfig").toString());
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            process.getOutputStream().close();
            // a program that hangs is ended, which ends its output
            process.onExit().orTimeout(DIFF_SECONDS, TimeUnit.SECONDS).exceptionally(late -> process.destroyForcibly());
            List<String> lines = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).lines().toList();
            if (process.waitFor() != 0) {
                throw new PintleException(String.join(" ", lines));
            }
            return lines.size() > DIFF_LINES ? String.join("\n", lines.subList(0, DIFF_LINES)) + "\n..." : String.join("\n", lines);
        } catch (IOException error) {
            throw new PintleException("the changes cannot be listed: " + error.getMessage(), error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new PintleException("interrupted", error);
        }
    }

    /** Creates an object of the testing API. */
    Map<String, Object> testing(String kind, String plural, String object, Map<String, ?> spec) {
        Map<String, ?> metadata = Map.of("name", object);
        Map<String, ?> body = Map.of("apiVersion", TESTING_VERSION, "kind", kind, "metadata", metadata, "spec", spec);
        return request("POST", TESTING + "/" + plural, body);
    }

    /** A kubeconfig as a text. It is JSON, which is YAML. */
    public String kubeconfigText() {
        Map<String, Object> cluster = Map.of("server", url(), "certificate-authority-data", encoded("certificateAuthority"));
        Map<String, Object> user = Map.of("client-certificate-data", encoded("certificate"), "client-key-data", encoded("key"));
        return Json.write(Map.of(
                "apiVersion", "v1",
                "kind", "Config",
                "current-context", name,
                "clusters", List.of(Map.of("name", name, "cluster", cluster)),
                "users", List.of(Map.of("name", name, "user", user)),
                "contexts", List.of(Map.of("name", name, "context", Map.of("cluster", name, "user", name, "namespace", "default")))));
    }

    /** A file of the credentials in Base64. */
    String encoded(String field) {
        return Base64.getEncoder().encodeToString(server.credentials.get(field).toString().getBytes(StandardCharsets.UTF_8));
    }

    /** The path of a kubeconfig, which exists as long as the server. */
    public synchronized Path kubeconfig() {
        if (kubeconfig == null) {
            Path file = server.data().resolve(name + ".kubeconfig");
            try {
                Files.deleteIfExists(file);
                Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
                Files.writeString(file, kubeconfigText());
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            kubeconfig = file;
        }
        return kubeconfig;
    }

    /**
     * A client of a library that is on the class path: {@code io.fabric8.kubernetes.client.KubernetesClient}, or
     * {@code io.kubernetes.client.openapi.ApiClient}. It uses no proxy, and {@link #delete} closes it.
     */
    public synchronized <T> T client(Class<T> type) {
        return type.cast(clients.computeIfAbsent(type, wanted -> Clients.make(wanted, this)).client());
    }

    /** Applies manifests, server-side: files, or directories with everything below them. Returns the objects. */
    public List<Map<String, Object>> apply(String... paths) {
        return apply(Stream.of(paths).map(Path::of).toArray(Path[]::new));
    }

    /** Applies manifests, server-side: files, or directories with everything below them. Returns the objects. */
    public List<Map<String, Object>> apply(Path... paths) {
        List<Map<String, Object>> objects = new ArrayList<>();
        for (Path path : paths) {
            objects.addAll(Manifests.read(path));
        }
        objects.sort(Comparator.comparingInt(found -> FIRST.contains(found.get("kind")) ? FIRST.indexOf(found.get("kind")) : FIRST.size()));
        return objects.stream().map(this::applyObject).toList();
    }

    /** Applies one object. */
    public Map<String, Object> applyObject(Map<String, ?> object) {
        String version = object.get("apiVersion").toString();
        Map<?, ?> metadata = (Map<?, ?>) object.get("metadata");
        String base = (version.contains("/") ? "/apis/" : "/api/") + version;
        Kind kind = kind(base, version, object.get("kind").toString());
        Object namespace = metadata.get("namespace");
        String place = kind.isNamespaced() ? "/namespaces/" + (namespace == null ? "default" : namespace) : "";
        String path = base + place + "/" + kind.plural() + "/" + metadata.get("name") + "?fieldManager=pintle-server&force=true";
        return request("PATCH", path, object, Api.APPLY_PATCH);
    }

    private synchronized Kind kind(String base, String version, String kind) {
        if (!kinds.containsKey(version + " " + kind)) {
            discover(base, version);
        }
        Kind found = kinds.get(version + " " + kind);
        if (found == null) {
            throw new PintleException(
                    "no matches for kind \"" + kind + "\" in version \"" + version + "\": apply its CustomResourceDefinition first");
        }
        return found;
    }

    private void discover(String base, String version) {
        List<?> resources;
        try {
            resources = (List<?>) request("GET", base).get("resources");
        } catch (ResponseException error) {
            if (error.code() != Server.NOT_FOUND) {
                throw error;
            }
            return;
        }
        for (Object resource : resources) {
            Map<?, ?> row = (Map<?, ?>) resource;
            String plural = row.get("name").toString();
            if (!plural.contains("/")) {
                kinds.put(version + " " + row.get("kind"), new Kind(plural, Boolean.TRUE.equals(row.get("namespaced"))));
            }
        }
    }
}
