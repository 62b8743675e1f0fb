import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.pintle.PintleTest;
import dev.pintle.Scope;
import dev.pintle.Workspace;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

/** A suite of a user whose tests share a workspace; PackageTest runs it. */
@PintleTest(scope = Scope.CLASS)
class Shared {
    private static String name;

    @BeforeAll
    static void createsOnce(Workspace workspace) {
        name = workspace.name();
        workspace.request("POST", "/api/v1/namespaces/default/configmaps", Map.of("metadata", Map.of("name", "shared")));
    }

    @Test
    void hasWhatWasCreated(Workspace workspace) {
        assertEquals(name, workspace.name());
        assertEquals(1, ((List<?>) workspace.request("GET", "/api/v1/namespaces/default/configmaps").get("items")).size());
    }

    @Nested
    class Inner {
        @Test
        void hasTheSame(Workspace workspace) {
            assertEquals(name, workspace.name());
        }
    }
}
