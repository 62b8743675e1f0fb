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
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.extension.AfterAllCallback;
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
public final class PintleExtension implements ParameterResolver, AfterEachCallback, AfterAllCallback {
    private final List<String> flags = new ArrayList<>();
    private final List<String> paths = new ArrayList<>();
    private String key;
    private String place = "";
    private Consumer<Workspace> build;
    private Scope scope;

    /** The workspace of the test or class with this identifier, the length of the log before it, and whether a test has failed. */
    private record Begun(String owner, Workspace workspace, long logSize, AtomicBoolean isKept) {}

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

    /** The tests that share a workspace. */
    public PintleExtension scope(Scope shared) {
        scope = shared;
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
        ExtensionContext owner = owner(context);
        if (owner.getTestMethod().isEmpty() && scope(context) == Scope.TEST) {
            throw new ParameterResolutionException("a workspace is for one test: take it in a method of @Test, @BeforeEach or @AfterEach");
        }
        Begun begun = owner.getStore(Namespace.create(this)).getOrComputeIfAbsent(Begun.class, unknown -> begin(owner), Begun.class);
        return type == Workspace.class ? begun.workspace() : begun.workspace().client(type);
    }

    private Scope scope(ExtensionContext context) {
        return scope != null ? scope : annotation(context).map(PintleTest::scope).orElse(Scope.TEST);
    }

    /** The context of the test, or of the outermost class around it. */
    private ExtensionContext owner(ExtensionContext context) {
        ExtensionContext owner = context;
        while (scope(context) == Scope.CLASS && owner.getParent().filter(parent -> parent.getTestClass().isPresent()).isPresent()) {
            owner = owner.getParent().get();
        }
        return owner;
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
            return new Begun(context.getUniqueId(), server.workspace(), logSize, new AtomicBoolean());
        }
        Workspace template = server.template(place, key + " " + List.of(manifests), workspace -> {
            workspace.apply(manifests);
            if (build != null) {
                build.accept(workspace);
            }
        });
        return new Begun(context.getUniqueId(), template.fork(), logSize, new AtomicBoolean());
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
            begun.isKept().set(true);
            report(context, begun);
        }
        end(context, begun);
    }

    @Override
    public void afterAll(ExtensionContext context) {
        Begun begun = context.getStore(Namespace.create(this)).get(Begun.class, Begun.class);
        if (begun != null) {
            end(context, begun);
        }
    }

    /** Deletes a workspace at the end of what it is for. Stores also have what those around them have. */
    private static void end(ExtensionContext context, Begun begun) {
        if (begun.owner().equals(context.getUniqueId()) && !begun.isKept().get()) {
            begun.workspace().delete();
        }
    }

    private static void report(ExtensionContext context, Begun begun) {
        String test = context.getRequiredTestClass().getSimpleName() + " " + context.getDisplayName();
        System.err.println("workspace of " + test + ": KUBECONFIG=" + begun.workspace().kubeconfig() + " kubectl api-resources");
        String changes = changes(begun.workspace());
        if (!changes.isEmpty()) {
            System.err.println("what differs from the beginning of the workspace:\n" + changes);
        }
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

    private static String changes(Workspace workspace) {
        try {
            return workspace.changes();
        } catch (PintleException error) {
            return "cannot be listed: " + error.getMessage();
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
