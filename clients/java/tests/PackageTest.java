import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.pintle.Clock;
import dev.pintle.Fault;
import dev.pintle.Pintle;
import dev.pintle.PintleException;
import dev.pintle.Plan;
import dev.pintle.ResponseException;
import dev.pintle.Server;
import dev.pintle.Trial;
import dev.pintle.Workspace;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The package as users have it: from its jars, with the binary in the one of the platform. */
class PackageTest {
    private static final String BOATS = "/apis/example.com/v1/namespaces/default/boats";
    private static final String MAPS = "/api/v1/namespaces/default/configmaps";
    private static final Map<String, Object> BOAT = boat("argo");

    private static final Server SERVER = Pintle.startIn("package-tests");

    @TempDir
    private Path directory;

    @AfterAll
    static void nothingIsLeft() throws Exception {
        SERVER.close();
        gone(SERVER.pid());
        assertEquals(List.of(), leftIn(Path.of(System.getenv("XDG_RUNTIME_DIR"))));
    }

    private static Map<String, Object> boat(String name) {
        return Map.of("apiVersion", "example.com/v1", "kind", "Boat", "metadata", Map.of("name", name), "spec", Map.of("crew", 50));
    }

    private static Map<String, Object> crd() {
        Map<String, ?> spec = Map.of("type", "object", "properties", Map.of("crew", Map.of("type", "integer")));
        Map<String, ?> schema = Map.of("openAPIV3Schema", Map.of("type", "object", "properties", Map.of("spec", spec)));
        Map<String, ?> version = Map.of("name", "v1", "served", true, "storage", true, "schema", schema);
        Map<String, ?> names = Map.of("plural", "boats", "singular", "boat", "kind", "Boat");
        return Map.of(
                "apiVersion", "apiextensions.k8s.io/v1",
                "kind", "CustomResourceDefinition",
                "metadata", Map.of("name", "boats.example.com"),
                "spec", Map.of("group", "example.com", "scope", "Namespaced", "names", names, "versions", List.of(version)));
    }

    private static List<?> items(Workspace workspace) {
        return (List<?>) workspace.request("GET", BOATS).get("items");
    }

    @Test
    void workspacesAreApartAndCanBeForkedAndReset() {
        try (Workspace one = SERVER.workspace(); Workspace two = SERVER.workspace()) {
            one.applyObject(crd());
            one.applyObject(BOAT);
            assertEquals(Map.of("crew", 50L), one.request("GET", BOATS + "/argo").get("spec"));
            String message = assertThrows(PintleException.class, () -> two.applyObject(BOAT)).getMessage();
            assertTrue(message.startsWith("no matches for kind \"Boat\""), message);
            try (Workspace fork = one.fork()) {
                fork.request("DELETE", BOATS + "/argo");
                assertEquals(0, items(fork).size());
                fork.reset();
                assertEquals(1, items(fork).size());
            }
            assertEquals(404, assertThrows(ResponseException.class, () -> one.request("GET", BOATS + "/vasa")).code());
        }
    }

    @Test
    void aSourceIsLoadedByAFlag() throws IOException {
        String uid = "3f6d1c1a-9d6a-4d0e-8f3e-0123456789ab";
        Files.writeString(directory.resolve("a.yaml"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, uid: " + uid + "}}");
        try (Server server = Pintle.startIn("package-tests-source", "--from=" + directory);
                Workspace workspace = server.workspace("shop", Map.of("from", Map.of("workspace", "default")))) {
            Map<?, ?> found = workspace.request("GET", "/api/v1/namespaces/shop/configmaps/a");
            assertEquals(uid, ((Map<?, ?>) found.get("metadata")).get("uid"));
        }
    }

    @Test
    void manifestsAreAppliedWithTheirDefinitionsFirst() throws IOException {
        Files.writeString(directory.resolve("a-boat.yaml"), "apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: argo, "
                + "annotations: {built: 2020-01-01T00:00:00Z}}\n---\n---\napiVersion: example.com/v1\nkind: Boat\nmetadata: {name: vasa}\n");
        Files.writeString(directory.resolve("z-crd.json"), json(crd()));
        Files.writeString(directory.resolve("other.txt"), "not a manifest");
        try (Workspace workspace = SERVER.workspace()) {
            List<Object> kinds = workspace.apply(directory).stream().map(found -> found.get("kind")).toList();
            assertEquals(List.of("CustomResourceDefinition", "Boat", "Boat"), kinds);
            Files.writeString(directory.resolve("broken.yaml"), "a: [");
            String message = assertThrows(PintleException.class, () -> workspace.apply(directory.resolve("broken.yaml").toString())).getMessage();
            assertTrue(message.contains("broken.yaml"), message);
        }
    }

    /** JSON by another writer than that of the package. */
    private static String json(Object object) {
        return io.fabric8.kubernetes.client.utils.Serialization.asJson(object);
    }

    private static Map<?, ?> spec(Workspace workspace) {
        return (Map<?, ?>) SERVER.request("GET", "/apis/workspaces.pintle.dev/v1alpha1/workspaces/" + workspace.name()).get("spec");
    }

    @Test
    void twoClassesMayNameTheirTemplatesAlike() {
        try (Workspace own = SERVER.template("fleet", workspace -> Fleet.create(workspace, "own")).fork();
                Workspace other = Fleet.template(SERVER).fork()) {
            assertEquals(List.of("own"), Fleet.names(own));
            assertEquals(List.of("other"), Fleet.names(other));
            assertTrue(own.kubeconfigText().contains("\"namespace\":\"default\""), own.kubeconfigText());
        }
    }

    @Test
    void directoriesWithoutManifestsAreNamed(@TempDir Path empty) {
        try (Workspace workspace = SERVER.workspace()) {
            String message = assertThrows(PintleException.class, () -> workspace.apply(empty)).getMessage();
            assertEquals(empty + " has no object in a file that ends with .yaml, .yml or .json", message);
        }
    }

    @Test
    void theJarIsAModule() {
        Path jar = Path.of(java.net.URI.create(Server.class.getProtectionDomain().getCodeSource().getLocation().toString()));
        assertEquals("dev.pintle.server", java.lang.module.ModuleFinder.of(jar).findAll().iterator().next().descriptor().name());
    }

    @Test
    void templatesAreBuiltOnce() {
        AtomicInteger built = new AtomicInteger();
        Consumer<Workspace> build = workspace -> {
            built.incrementAndGet();
            // if this process died, the name of the template would be free again
            assertEquals("10s", spec(workspace).get("ttl"));
            workspace.applyObject(crd());
        };
        Stream.of(1, 2, 3, 4).parallel().forEach(number -> {
            try (Workspace workspace = SERVER.template("boats", build).fork()) {
                workspace.applyObject(BOAT);
            }
        });
        assertEquals(1, built.get());
        Map<?, ?> spec = spec(SERVER.template("boats", build));
        assertEquals(true, spec.get("template"));
        assertEquals(null, spec.get("ttl"));
        for (int i = 0; i < 2; i++) {
            Consumer<Workspace> fails = workspace -> {
                throw new IllegalStateException("no");
            };
            assertThrows(IllegalStateException.class, () -> SERVER.template("broken", fails));
        }
    }

    @Test
    void clientsAreMade() throws Exception {
        try (Workspace workspace = SERVER.workspace()) {
            KubernetesClient fabric8 = workspace.client(KubernetesClient.class);
            fabric8.configMaps().resource(new ConfigMapBuilder().withNewMetadata().withName("one").endMetadata().build()).create();
            CoreV1Api official = new CoreV1Api(workspace.client(ApiClient.class));
            List<String> names = official.listNamespacedConfigMap("default").execute().getItems().stream().map(found -> found.getMetadata().getName()).toList();
            assertEquals(List.of("one"), names);
            assertTrue(Files.readString(workspace.kubeconfig()).contains(workspace.url()));
            assertThrows(PintleException.class, () -> workspace.client(String.class));
        }
    }

    @Test
    void processesShareAServerThatEndsWithTheLast() throws Exception {
        List<Process> processes = new ArrayList<>();
        Set<String> pids = new HashSet<>();
        for (int i = 0; i < 4; i++) {
            processes.add(java(List.of("-Dpintle.run=shared"), "User"));
        }
        for (Process process : processes) {
            pids.add(firstLine(process));
        }
        assertEquals(1, pids.size(), pids::toString);
        long pid = Long.parseLong(pids.iterator().next());
        for (Process process : processes) {
            assertTrue(ProcessHandle.of(pid).isPresent());
            // not even the last one has to end in an orderly way
            process.destroyForcibly().waitFor();
        }
        gone(pid);
    }

    @Test
    void workersOfABuildToolShareAServer() throws Exception {
        String[] pids = new String[2];
        Process[] processes = new Process[2];
        for (int i = 0; i < 2; i++) {
            processes[i] = java(List.of("-Dorg.gradle.test.worker=" + i), "User");
            pids[i] = firstLine(processes[i]);
        }
        assertEquals(pids[0], pids[1]);
        Process alone = java(List.of(), "User");
        String other = firstLine(alone);
        assertNotEquals(pids[0], other);
        for (Process process : List.of(processes[0], processes[1], alone)) {
            process.destroyForcibly().waitFor();
        }
        gone(Long.parseLong(pids[0]));
        gone(Long.parseLong(other));
    }

    @Test
    void otherFlagsAreAnotherServer() throws Exception {
        long pid;
        try (Server other = Pintle.startIn("package-tests", "--emulated-version=1.36")) {
            pid = other.pid();
            assertNotEquals(SERVER.pid(), pid);
            assertEquals("36", other.request("GET", "/version").get("emulationMinor"));
        }
        gone(pid);
    }

    @Test
    void whatIsWrongIsOneLine() throws Exception {
        assertTrue(error(List.of(), "--no-such-flag").startsWith("the server does not start: "));
        assertEquals("pintle.binary names /no/such/pintle, which is no program: correct or unset it", error(List.of("-Dpintle.binary=/no/such/pintle")));
        String silent = error(List.of("-Dpintle.binary=/bin/true"));
        assertTrue(silent.startsWith("/bin/true ends without starting a server: run /bin/true serve"), silent);
        String missing = error(List.of("-Dpintle.binary=", "-Dos.arch=vax"));
        assertTrue(missing.startsWith("the class path has no binary of pintle-server for linux-vax: add dev.pintle:pintle-server:"), missing);
        String kernel = error(List.of("-Dpintle.binary=" + Files.writeString(directory.resolve("pintle"), "no program").toFile().getPath()));
        assertTrue(kernel.contains("which is no program"), kernel);
    }

    @Test
    void binariesOfAnotherVersionAreOneLine() throws Exception {
        Files.writeString(directory.resolve("pintle-server.version"), "0.0.1");
        String classPath = directory + File.pathSeparator + System.getProperty("java.class.path");
        String line = lastLine(java(List.of("-cp", classPath), "User"));
        assertTrue(line.contains(", and pintle-server is 0.0.1: set the version of dev.pintle:pintle-server to "), line);
    }

    @Test
    void binariesAreExtractedOnce() throws Exception {
        ProcessBuilder builder = builder(List.of("-Dpintle.binary="), "User", "once");
        builder.environment().remove("PINTLE_BINARY");
        builder.environment().put("XDG_CACHE_HOME", directory.toString());
        List<Path> programs = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            assertTrue(lastLine(builder.start()).matches("[0-9]+"));
            try (Stream<Path> found = Files.walk(directory)) {
                programs.addAll(found.filter(Files::isRegularFile).toList());
            }
        }
        assertEquals(2, programs.size(), programs::toString);
        assertEquals(programs.get(0), programs.get(1));
    }

    @Test
    void proxiesAndOtherAuthoritiesAreNotUsed() throws Exception {
        List<String> options = List.of("-Dhttps.proxyHost=192.0.2.1", "-Dhttps.proxyPort=9", "-Dhttp.nonProxyHosts=", "-Djavax.net.ssl.trustStore=/no/such/file");
        ProcessBuilder builder = builder(options, "User", "clients");
        for (String name : List.of("HTTPS_PROXY", "https_proxy", "ALL_PROXY")) {
            builder.environment().put(name, "http://192.0.2.1:9");
        }
        builder.environment().remove("NO_PROXY");
        builder.environment().remove("no_proxy");
        assertTrue(lastLine(builder.start()).matches("[0-9]+"));
    }

    @Test
    void failuresShowTheWorkspace() throws Exception {
        String output = suite("Suite", "--config=pintle.flags=--emulated-version=1.36");
        assertTrue(output.contains("23 tests successful") && output.contains("1 tests failed") && output.contains("1 tests aborted"), output);
        assertEquals(2, output.split("workspace of Suite failing\\(Workspace\\): KUBECONFIG=/\\S+\\.kubeconfig kubectl api-resources\n", -1).length, output);
        assertEquals(2, output.split("workspace of ", -1).length, output);
        assertTrue(output.contains("with -Dpintle.keep=true, the run waits here for Enter"), output);
        assertTrue(output.contains("what differs from the beginning of the workspace:\ncreated "), output);
        assertTrue(output.contains("log of the Pintle server:\n") && output.contains("failed calling webhook, failing open"), output);
    }

    @Test
    void twoHundredTestsInProcessesBesideEachOtherLeaveNothing() throws Exception {
        // paths of sockets are short
        Path place = Files.createTempDirectory(Path.of("/tmp"), "pin-");
        List<Process> processes = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            ProcessBuilder builder = launcher(List.of("-Dpintle.run=many"), "Many");
            builder.environment().put("XDG_RUNTIME_DIR", place.toString());
            processes.add(builder.start());
        }
        for (Process process : processes) {
            String output = output(process);
            assertTrue(output.contains("50 tests successful"), output);
        }
        assertEquals(List.of(), leftIn(place));
        Files.delete(place);
    }

    /** The files in a directory for sockets, once the servers of processes that have just ended have removed theirs. */
    private static List<Path> leftIn(Path sockets) throws Exception {
        List<Path> left = List.of();
        for (int looks = 0; looks < 2000; looks++) {
            try (Stream<Path> found = Files.list(sockets)) {
                left = found.toList();
            }
            if (left.isEmpty()) {
                break;
            }
            Thread.sleep(10);
        }
        return left;
    }

    @Test
    void librariesMayBeMissing() throws Exception {
        String object = "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"one\", \"annotations\": {\"time\": %s}}}";
        String json = Files.writeString(directory.resolve("one.json"), object.formatted("\"2020-01-01\"")).toString();
        String yaml = Files.writeString(directory.resolve("two.yaml"), object.formatted("'2020-01-01'")).toString();
        assertEquals("[one, 2020-01-01]", lastLine(java(List.of("-cp", classPath("pintle-server-")), "Alone", json)));
        String missing = lastLine(java(List.of("-cp", classPath("pintle-server-")), "Alone", yaml));
        assertEquals(yaml + " is YAML, and the class path has no SnakeYAML: add org.snakeyaml:snakeyaml-engine to it", missing);
        // what the official client brings; without quotes, it would make a date of the time
        Files.writeString(Path.of(yaml), object.formatted("2020-01-01"));
        String date = lastLine(java(List.of("-cp", classPath("pintle-server-|snakeyaml-2")), "Alone", yaml));
        assertEquals("[one, 2020-01-01]", date);
    }

    /** The classes of the tests, and those jars whose names begin in one of these ways. */
    private static String classPath(String names) {
        Stream<String> parts = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator));
        return parts.filter(part -> !part.endsWith(".jar") || Path.of(part).getFileName().toString().matches("(" + names + ").*")).collect(Collectors.joining(File.pathSeparator));
    }

    @Test
    void runsWaitAtFailuresIfWanted() throws Exception {
        List<String> command = builder(List.of("-Dpintle.keep=true"), "org.junit.platform.console.ConsoleLauncher", "execute", "--select-class=Failing", "--details=summary").command();
        // a program that gives a command a terminal
        Process process = new ProcessBuilder("script", "--quiet", "--command", String.join(" ", command), "/dev/null").redirectErrorStream(true).start();
        List<String> lines = new ArrayList<>();
        for (String line = ""; !line.contains("Press Enter to go on."); line = firstLine(process)) {
            lines.add(line);
        }
        String kubeconfig = lines.stream().filter(line -> line.startsWith("workspace of Failing")).findFirst().orElseThrow().replaceAll(".*KUBECONFIG=(\\S+) .*", "$1");
        try (var client = new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(new File(kubeconfig))).build()) {
            client.configMaps().inNamespace("default").withName("evidence").require();
        }
        process.getOutputStream().write('\n');
        process.getOutputStream().flush();
        assertTrue(output(process).contains("1 tests failed"));
    }

    @Test
    void annotationsHaveManifestsAndFlags() throws Exception {
        Files.createDirectory(directory.resolve("manifests"));
        Map<String, ?> configMap = Map.of("apiVersion", "v1", "kind", "ConfigMap", "metadata", Map.of("name", "one"), "data", Map.of("a", "b"));
        Files.writeString(directory.resolve("manifests/one.json"), json(configMap));
        String output = suite("Annotated");
        assertTrue(output.contains("2 tests successful"), output);
    }

    @Test
    void testsOfAClassMayShareAWorkspace() throws Exception {
        String output = suite("Shared");
        assertTrue(output.contains("2 tests successful"), output);
    }

    @Test
    void aCacheThatCannotBeWrittenToGivesWayToTemporaryFiles() throws Exception {
        ProcessBuilder builder = launcher(List.of("-Djava.io.tmpdir=" + directory), "Shared").directory(directory.toFile());
        builder.environment().put("XDG_CACHE_HOME", "/dev/null/cache");
        String output = output(builder.start());
        assertTrue(output.contains("2 tests successful"), output);
        try (var files = Files.list(directory)) {
            assertTrue(files.anyMatch(file -> file.getFileName().toString().startsWith("pintle-cache-")));
        }
    }

    /** What a run of a suite prints, whose tests run beside each other. */
    private String suite(String name, String... options) throws Exception {
        return output(launcher(List.of(), name, options).directory(directory.toFile()).start());
    }

    private static ProcessBuilder launcher(List<String> properties, String name, String... options) {
        List<String> main = new ArrayList<>(List.of("org.junit.platform.console.ConsoleLauncher", "execute", "--select-class=" + name));
        main.addAll(List.of("--details=summary", "--disable-banner", "--config=junit.jupiter.execution.parallel.enabled=true"));
        main.add("--config=junit.jupiter.execution.parallel.mode.default=concurrent");
        main.addAll(List.of(options));
        return builder(properties, main.toArray(String[]::new));
    }

    private static String error(List<String> options, String... flags) throws Exception {
        List<String> all = new ArrayList<>(List.of("User", "start"));
        all.addAll(List.of(flags));
        ProcessBuilder builder = builder(options, all.toArray(String[]::new));
        return lastLine(builder.start());
    }

    private static Process java(List<String> options, String... main) throws IOException {
        return builder(options, main).start();
    }

    private static ProcessBuilder builder(List<String> options, String... main) {
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "-XX:TieredStopAtLevel=1"));
        command.addAll(options);
        command.addAll(List.of(main));
        return new ProcessBuilder(command).redirectErrorStream(true);
    }

    private static String firstLine(Process process) throws IOException {
        return process.inputReader().readLine();
    }

    private static String output(Process process) throws Exception {
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(process.waitFor(1, TimeUnit.MINUTES));
        return output;
    }

    private static String lastLine(Process process) throws Exception {
        List<String> lines = output(process).lines().toList();
        assertFalse(lines.isEmpty());
        return lines.get(lines.size() - 1);
    }

    /** Waits until a server has ended, and its files are gone. */
    private static void gone(long pid) throws Exception {
        var server = ProcessHandle.of(pid);
        if (server.isPresent()) {
            server.get().onExit().get(20, TimeUnit.SECONDS);
        }
    }

    @Test
    void faultsHitAndWorkspacesSettle() throws Exception {
        try (Workspace workspace = SERVER.workspace()) {
            Map<String, Object> map = Map.of("metadata", Map.of("name", "a"));
            Map<String, ?> effect = Map.of("error", Map.of("code", 503));
            try (Fault fault = workspace.fault(Map.of("match", Map.of("verbs", List.of("create")), "effect", effect))) {
                ResponseException refused = assertThrows(ResponseException.class, () -> workspace.request("POST", MAPS, map));
                assertEquals(503, refused.code());
                for (int looks = 0; fault.hits() != 1; looks++) {
                    assertTrue(looks < 1000, "the status follows");
                    Thread.sleep(10);
                }
            }
            workspace.request("POST", MAPS, map);
            workspace.settle();
            Duration limit = Duration.ofMillis(100);
            PintleException behind = assertThrows(PintleException.class, () -> workspace.settle(limit.multipliedBy(3), limit));
            assertTrue(behind.getMessage().startsWith("not settled: "), behind.getMessage());
            assertFalse(((List<?>) workspace.report().get("agents")).isEmpty());
        }
    }

    @Test
    void clocksStopAndAdvance() {
        try (Workspace workspace = SERVER.workspace()) {
            Clock clock = workspace.clock();
            clock.stopAt(Instant.parse("2090-01-01T00:00:00Z"), 7);
            clock.advance(Duration.ofHours(1));
            clock.advance(Duration.ofMillis(1500));
            Map<?, ?> created = (Map<?, ?>) workspace.request("POST", MAPS, Map.of("metadata", Map.of("name", "a"))).get("metadata");
            assertEquals("2090-01-01T01:00:01Z", created.get("creationTimestamp"));
            ResponseException back =
                    assertThrows(ResponseException.class, () -> clock.set(Instant.parse("2089-01-01T00:00:00Z")));
            assertTrue(back.getMessage().contains("never goes back"), back.getMessage());
            clock.stop();
            clock.resume();
            clock.delete();
            Map<?, ?> later = (Map<?, ?>) workspace.request("POST", MAPS, Map.of("metadata", Map.of("name", "b"))).get("metadata");
            assertTrue(later.get("creationTimestamp").toString().compareTo("2090") < 0, later.toString());
        }
    }

    @Test
    void plansAndTrialsAreRecords() throws Exception {
        String file = Files.writeString(directory.resolve("map.yaml"),
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}").toString();
        Plan plan = Pintle.plan("--from", file, "--delete", "configmap/a");
        assertEquals(List.of(1L, "a"), List.of(plan.summary().get("delete"), plan.changes().get(0).name()));
        Trial trial = Pintle.trial("--start", "kubectl get configmaps -w", "--steps", file, "--quiet", "1s", "--cell", "1:down");
        assertEquals(List.of(new Trial.Cell("1:down", "same", List.of(), null)), trial.cells());
        PintleException error = assertThrows(PintleException.class, () -> Pintle.plan("--from", file, "--delete", "configmap/b"));
        assertEquals("there is no object \"configmap/b\" in the source", error.getMessage());
    }
}
