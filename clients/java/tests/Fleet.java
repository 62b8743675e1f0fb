import dev.pintle.Server;
import dev.pintle.Workspace;
import java.util.List;
import java.util.Map;

/** A template with a key that PackageTest has given to another one. */
final class Fleet {
    private static final String NAMESPACES = "/api/v1/namespaces";

    private Fleet() {}

    static Workspace template(Server server) {
        return server.template("fleet", workspace -> create(workspace, "other"));
    }

    static void create(Workspace workspace, String name) {
        workspace.request("POST", NAMESPACES, Map.of("metadata", Map.of("name", name, "labels", Map.of("fleet", "true"))));
    }

    static List<Object> names(Workspace workspace) {
        List<?> items = (List<?>) workspace.request("GET", NAMESPACES + "?labelSelector=fleet").get("items");
        return items.stream().map(item -> ((Map<?, ?>) ((Map<?, ?>) item).get("metadata")).get("name")).map(Object.class::cast).toList();
    }
}
