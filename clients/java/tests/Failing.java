import static org.junit.jupiter.api.Assertions.fail;

import dev.pintle.PintleTest;
import dev.pintle.Workspace;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** A suite of a user that fails; PackageTest runs it. */
@PintleTest
class Failing {
    @Test
    void failing(Workspace workspace) {
        workspace.request("POST", "/api/v1/namespaces/default/configmaps", Map.of("metadata", Map.of("name", "evidence")));
        fail("as it is meant to");
    }
}
