import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.pintle.PintleTest;
import dev.pintle.Server;
import dev.pintle.Workspace;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** A suite of a user with the annotation; PackageTest runs it. */
@PintleTest(apply = "manifests/one.json", flags = "--emulated-version=1.36")
class Annotated {
    @Test
    void manifestsAreApplied(Workspace workspace) {
        assertEquals(Map.of("a", "b"), workspace.request("GET", "/api/v1/namespaces/default/configmaps/one").get("data"));
    }

    @Nested
    class Inner {
        @Test
        void flagsAreUsed(Workspace workspace, Server server) {
            assertEquals("36", server.request("GET", "/version").get("emulationMinor"));
            assertEquals(1, ((List<?>) workspace.request("GET", "/api/v1/namespaces/default/configmaps").get("items")).size());
        }
    }
}
