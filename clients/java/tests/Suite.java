import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import dev.pintle.PintleExtension;
import dev.pintle.Server;
import dev.pintle.Workspace;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.kubernetes.client.openapi.ApiClient;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A suite of a user; PackageTest runs it. */
class Suite {
    private static final String CONFIGMAPS = "/api/v1/namespaces/default/configmaps";

    @RegisterExtension
    static final PintleExtension PINTLE = new PintleExtension().template("suite", workspace -> create(workspace, "built"));

    private static void create(Workspace workspace, String name) {
        workspace.request("POST", CONFIGMAPS, Map.of("metadata", Map.of("name", name)));
    }

    @BeforeEach
    void begin(Workspace workspace) {
        create(workspace, "begun");
    }

    @RepeatedTest(20)
    void eachTestHasAWorkspaceOfItsOwn(Workspace workspace) {
        create(workspace, "own");
        assertEquals(3, ((List<?>) workspace.request("GET", CONFIGMAPS).get("items")).size());
    }

    @Test
    void clientsAreInjected(Workspace workspace, KubernetesClient fabric8, ApiClient official) {
        assertEquals(2, fabric8.configMaps().list().getItems().size());
        assertEquals(workspace.url(), official.getBasePath());
    }

    @Test
    void flagsAreThoseOfTheConfiguration(Server server) {
        assertEquals("36", server.request("GET", "/version").get("emulationMinor"));
    }

    @Test
    void failing(Workspace workspace) {
        Map<String, ?> rule = Map.of("apiGroups", List.of(""), "apiVersions", List.of("v1"), "operations", List.of("CREATE"), "resources", List.of("configmaps"));
        Map<String, ?> webhook = Map.of(
                "name", "a.example.com", "sideEffects", "None", "admissionReviewVersions", List.of("v1"), "failurePolicy", "Ignore",
                // where nothing listens
                "clientConfig", Map.of("url", "https://127.0.0.1:1/"), "rules", List.of(rule));
        workspace.applyObject(Map.of(
                "apiVersion", "admissionregistration.k8s.io/v1", "kind", "ValidatingWebhookConfiguration",
                "metadata", Map.of("name", "a"), "webhooks", List.of(webhook)));
        create(workspace, "logged");
        fail("as it is meant to");
    }

    @Test
    void aborted(Workspace workspace) {
        Assumptions.abort("as it is meant to");
    }

    @Nested
    class Inner {
        @Test
        void itsOuterClassHasTheExtension(Workspace workspace) {
            assertEquals(2, ((List<?>) workspace.request("GET", CONFIGMAPS).get("items")).size());
        }
    }
}
