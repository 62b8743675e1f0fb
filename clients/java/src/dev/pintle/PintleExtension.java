package dev.pintle;

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/**
 * Workspaces for tests of JUnit. The workspace of a test is a fork of a template if there is one, and that of a test that fails is kept
 * until the server ends.
 *
 * <pre>{@code
 * @RegisterExtension
 * static final PintleExtension pintle = new PintleExtension().apply("config/crd");
 * }</pre>
 */
public final class PintleExtension implements ParameterResolver, AfterEachCallback {
    private final List<String> flags = new ArrayList<>();
    private final List<String> paths = new ArrayList<>();
    private String key;
    private String place = "";
    private Consumer<Workspace> build;

    /** The workspace of a test, and the length of the log before the test. */
    private record Begun(Workspace workspace, long logSize) {}

    /** Flags of {@code pintle serve}. */
    public PintleExtension flags(String... more) {
        flags.addAll(List.of(more));
        return this;
    }

    /** Manifests that each workspace has: files and directories. */
    public PintleExtension apply(String... more) {
        paths.addAll(List.of(more));
        return this;
    }

    /** What else each workspace has: {@code build} is called once in a test run for a key. */
    public PintleExtension template(String key, Consumer<Workspace> build) {
        this.key = key;
        place = Server.caller();
        this.build = build;
        return this;
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == Workspace.class || type == Server.class || Clients.isKnown(type);
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        if (type == Server.class) {
            return server(context);
        }
        if (context.getTestMethod().isEmpty()) {
            throw new ParameterResolutionException("a workspace is for one test: take it in a method of @Test, @BeforeEach or @AfterEach");
        }
        Begun begun = context.getStore(Namespace.create(this)).getOrComputeIfAbsent(Begun.class, unknown -> begin(context), Begun.class);
        return type == Workspace.class ? begun.workspace() : begun.workspace().client(type);
    }

    private Server server(ExtensionContext context) {
        List<String> all = new ArrayList<>(configured(context, "pintle.flags"));
        annotation(context).ifPresent(found -> all.addAll(List.of(found.flags())));
        all.addAll(flags);
        return Pintle.start(all.toArray(String[]::new));
    }

    private Begun begin(ExtensionContext context) {
        List<String> all = new ArrayList<>(configured(context, "pintle.apply"));
        annotation(context).ifPresent(found -> all.addAll(List.of(found.apply())));
        all.addAll(paths);
        Path[] manifests = all.stream().map(path -> Path.of(path).toAbsolutePath()).toArray(Path[]::new);
        Server server = server(context);
        long logSize = server.logSize();
        if (manifests.length == 0 && build == null) {
            return new Begun(server.workspace(), logSize);
        }
        Workspace template = server.template(place, key + " " + List.of(manifests), workspace -> {
            workspace.apply(manifests);
            if (build != null) {
                build.accept(workspace);
            }
        });
        return new Begun(template.fork(), logSize);
    }

    /** A parameter of the configuration of JUnit, in words. */
    private static List<String> configured(ExtensionContext context, String name) {
        return context.getConfigurationParameter(name).map(String::strip).filter(text -> !text.isEmpty()).map(text -> List.of(text.split("\\s+"))).orElse(List.of());
    }

    /** The annotation of the test class, or of the class around it. */
    private static Optional<PintleTest> annotation(ExtensionContext context) {
        Optional<PintleTest> found = Optional.empty();
        for (Class<?> type = context.getTestClass().orElse(null); found.isEmpty() && type != null; type = type.getEnclosingClass()) {
            found = AnnotationSupport.findAnnotation(type, PintleTest.class);
        }
        return found;
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Begun begun = context.getStore(Namespace.create(this)).get(Begun.class, Begun.class);
        if (begun == null) {
            return;
        }
        if (context.getExecutionException().filter(error -> !(error instanceof TestAbortedException)).isPresent()) {
            report(context, begun);
        } else {
            begun.workspace().delete();
        }
    }

    private static void report(ExtensionContext context, Begun begun) {
        String test = context.getRequiredTestClass().getSimpleName() + " " + context.getDisplayName();
        System.err.println("workspace of " + test + ": KUBECONFIG=" + begun.workspace().kubeconfig() + " kubectl api-resources");
        String log = begun.workspace().server().logSince(begun.logSize()).strip();
        if (!log.isEmpty()) {
            System.err.println("log of the Pintle server:\n" + log);
        }
        if (context.getConfigurationParameter("pintle.keep").filter(Boolean::parseBoolean).isPresent()) {
            awaitEnter(test);
        } else {
            System.err.println("The server ends with the run; with -Dpintle.keep=true, the run waits here for Enter.");
        }
    }

    /** Waits for a line of the terminal: a build tool has taken stdin. */
    private static void awaitEnter(String test) {
        try (InputStream terminal = new FileInputStream("/dev/tty"); OutputStream shown = new FileOutputStream("/dev/tty")) {
            shown.write((test + " has failed. Press Enter to go on.\n").getBytes(StandardCharsets.UTF_8));
            int read;
            do {
                read = terminal.read();
            } while (read >= 0 && read != '\n');
        } catch (IOException error) {
            System.err.println("pintle.keep has no effect without a terminal: " + error.getMessage());
        }
    }
}
