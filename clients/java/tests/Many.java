import dev.pintle.PintleExtension;
import dev.pintle.Workspace;
import java.util.Map;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Fifty tests, each of which wants to be the only writer; PackageTest runs it in processes beside each other. */
class Many {
    private static final String CONFIGMAPS = "/api/v1/namespaces/default/configmaps";

    @RegisterExtension
    static final PintleExtension PINTLE = new PintleExtension().template("built", workspace -> create(workspace, "built"));

    private static void create(Workspace workspace, String name) {
        workspace.request("POST", CONFIGMAPS, Map.of("metadata", Map.of("name", name)));
    }

    @RepeatedTest(50)
    void eachTestHasAWorkspaceOfItsOwn(Workspace workspace) {
        workspace.request("GET", CONFIGMAPS + "/built");
        create(workspace, "own");
    }
}
