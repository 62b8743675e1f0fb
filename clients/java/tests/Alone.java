import dev.pintle.Pintle;
import dev.pintle.PintleException;
import dev.pintle.Server;
import dev.pintle.Workspace;
import java.util.List;
import java.util.Map;

/** A process that applies manifests, and prints the name and an annotation of each, or what is wrong. */
final class Alone {
    private Alone() {}

    public static void main(String[] paths) {
        try (Server server = Pintle.start(); Workspace workspace = server.workspace()) {
            for (Map<String, Object> applied : workspace.apply(paths)) {
                Map<?, ?> metadata = (Map<?, ?>) applied.get("metadata");
                System.out.println(List.of(metadata.get("name"), ((Map<?, ?>) metadata.get("annotations")).get("time")));
            }
        } catch (PintleException error) {
            System.out.println(error.getMessage());
        }
    }
}
