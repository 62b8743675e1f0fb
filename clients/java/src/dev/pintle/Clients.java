package dev.pintle;

import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import java.io.IOException;
import java.io.StringReader;
import java.net.Proxy;
import okhttp3.OkHttpClient;

/** Clients of libraries that may be missing: the classes that name their types are loaded when one is asked for. */
final class Clients {
    private static final String FABRIC8 = "io.fabric8.kubernetes.client.KubernetesClient";
    private static final String OFFICIAL = "io.kubernetes.client.openapi.ApiClient";

    private Clients() {}

    /** A client, and what closes it. */
    record Made(Object client, Runnable close) {}

    static boolean isKnown(Class<?> type) {
        return type.getName().equals(FABRIC8) || type.getName().equals(OFFICIAL);
    }

    static Made make(Class<?> type, Workspace workspace) {
        switch (type.getName()) {
            case FABRIC8:
                return Fabric8.make(workspace);
            case OFFICIAL:
                return Official.make(workspace);
            default:
                throw new PintleException("there is no client of type " + type.getName() + ": use " + FABRIC8 + ", " + OFFICIAL
                        + ", or the file kubeconfig() with another library");
        }
    }

    private static final class Fabric8 {
        static Made make(Workspace workspace) {
            // empty: the environment and the system properties have proxies and clusters that are none of the test's
            Config config = new ConfigBuilder(Config.empty())
                    .withMasterUrl(workspace.url())
                    .withNamespace("default")
                    .withCaCertData(workspace.encoded("certificateAuthority"))
                    .withClientCertData(workspace.encoded("certificate"))
                    .withClientKeyData(workspace.encoded("key"))
                    .withClientKeyAlgo("EC")
                    .build();
            KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build();
            return new Made(client, client::close);
        }
    }

    private static final class Official {
        static Made make(Workspace workspace) {
            try {
                ApiClient client = ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(new StringReader(workspace.kubeconfigText()))).build();
                OkHttpClient http = client.getHttpClient().newBuilder().proxy(Proxy.NO_PROXY).build();
                client.setHttpClient(http);
                return new Made(client, () -> {
                    http.dispatcher().executorService().shutdown();
                    http.connectionPool().evictAll();
                });
            } catch (IOException error) {
                throw new PintleException("no client can be made: " + error.getMessage(), error);
            }
        }
    }
}
