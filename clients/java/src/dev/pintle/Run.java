package dev.pintle;

import java.util.Optional;
import java.util.UUID;

/** The name of the test run. Processes with the same one share servers and templates. */
final class Run {
    private static final String PROPERTY = "pintle.run";

    private Run() {}

    /** That of PINTLE_RUN or the property pintle.run; with a build tool, one for all of its workers; otherwise one for this process. */
    static synchronized String name() {
        String property = System.getProperty(PROPERTY);
        String named = property != null ? property : System.getenv("PINTLE_RUN");
        if (named != null && !named.isEmpty()) {
            return named;
        }
        String name = isWorker() ? buildTool().orElseGet(() -> UUID.randomUUID().toString()) : UUID.randomUUID().toString();
        // the class may be loaded more than once
        System.setProperty(PROPERTY, name);
        return name;
    }

    /** Whether Surefire, Failsafe or Gradle has started this process. */
    private static boolean isWorker() {
        String main = System.getProperty("sun.java.command", "");
        return System.getProperty("org.gradle.test.worker") != null || main.contains("surefire");
    }

    /** The process of the build tool: the nearest ancestor that is a JVM. There may be a shell between them. */
    private static Optional<String> buildTool() {
        Optional<ProcessHandle> ancestor = ProcessHandle.current().parent();
        while (ancestor.isPresent() && !isJvm(ancestor.get())) {
            ancestor = ancestor.get().parent();
        }
        return ancestor.map(found -> found.pid() + "-" + found.info().startInstant().map(Object::toString).orElse(""));
    }

    private static boolean isJvm(ProcessHandle process) {
        return process.info().command().filter(command -> command.matches(".*/(java|mvnd)")).isPresent();
    }
}
