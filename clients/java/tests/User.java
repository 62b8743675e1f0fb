import dev.pintle.Pintle;
import dev.pintle.PintleException;
import dev.pintle.Server;
import dev.pintle.Workspace;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import java.util.Arrays;

/** A process of a test run. It prints the number of the server's process, or what is wrong. */
final class User {
    private User() {}

    public static void main(String[] args) throws Exception {
        Server server;
        try {
            server = Pintle.start(args.length > 0 && args[0].equals("start") ? Arrays.copyOfRange(args, 1, args.length) : new String[0]);
        } catch (PintleException error) {
            System.out.println(error.getMessage());
            return;
        }
        if (args.length > 0 && args[0].equals("clients")) {
            try (Workspace workspace = server.workspace()) {
                workspace.client(KubernetesClient.class).namespaces().withName("default").require();
                new CoreV1Api(workspace.client(ApiClient.class)).readNamespace("default").execute();
            }
        }
        System.out.println(server.pid());
        // until it is killed, or its stdin ends
        System.in.read();
    }
}
