package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.pintle.PintleTest;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.Resource;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The tests of the operator, each on an API of its own. */
@PintleTest(apply = "src/test/resources/websites.yaml")
class WebsiteTest {
    private WebsiteOperator operator;
    private Resource<Website> website;
    private Resource<Deployment> deployment;

    @BeforeEach
    void start(KubernetesClient client) {
        operator = new WebsiteOperator(client);
        website = client.resources(Website.class).inNamespace("default").withName("shop");
        deployment = client.apps().deployments().inNamespace("default").withName("shop");
    }

    @AfterEach
    void stop() {
        operator.close();
    }

    private static Website create(KubernetesClient client, Integer replicas) {
        Website shop = new Website();
        shop.setMetadata(new ObjectMetaBuilder().withName("shop").withNamespace("default").build());
        shop.setSpec(new Website.Spec());
        shop.getSpec().image = "shop:1";
        shop.getSpec().replicas = replicas;
        shop.getSpec().host = "shop.example.com";
        return client.resource(shop).create();
    }

    private void edit(Consumer<Website.Spec> change) {
        website.edit(edited -> {
            change.accept(edited.getSpec());
            return edited;
        });
    }

    private static <T> T until(Resource<T> resource, Predicate<T> condition) {
        return resource.waitUntilCondition(condition, 20, TimeUnit.SECONDS);
    }

    private static String image(Deployment deployment) {
        return deployment.getSpec().getTemplate().getSpec().getContainers().get(0).getImage();
    }

    @Test
    void websitesAreDeployed(KubernetesClient client) {
        create(client, 3);
        Deployment created = until(deployment, Objects::nonNull);
        assertEquals(3, created.getSpec().getReplicas());
        assertEquals("shop:1", image(created));
    }

    @Test
    void deploymentsFollow(KubernetesClient client) {
        create(client, 3);
        until(deployment, Objects::nonNull);
        edit(spec -> spec.image = "shop:2");
        until(deployment, found -> image(found).equals("shop:2"));
    }

    @Test
    void statusShowsWhatIsReady(KubernetesClient client) {
        create(client, 3);
        until(deployment, Objects::nonNull);
        deployment.editStatus(edited -> edited.edit().editOrNewStatus().withReplicas(3).withReadyReplicas(2).endStatus().build());
        until(website, found -> found.getStatus() != null && found.getStatus().ready == 2);
    }

    @Test
    void replicasHaveADefault(KubernetesClient client) {
        assertEquals(1, create(client, null).getSpec().replicas);
        assertEquals(1, until(deployment, Objects::nonNull).getSpec().getReplicas());
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 11})
    void replicasHaveBounds(int replicas, KubernetesClient client) {
        var refused = assertThrows(KubernetesClientException.class, () -> create(client, replicas));
        assertTrue(refused.getMessage().contains("spec.replicas in body should be"), refused.getMessage());
    }

    @Test
    void hostsStay(KubernetesClient client) {
        create(client, 1);
        var refused = assertThrows(KubernetesClientException.class, () -> edit(spec -> spec.host = "other.example.com"));
        assertTrue(refused.getMessage().contains("a website keeps its host"), refused.getMessage());
    }

    @Test
    void deploymentsEndWithTheirWebsite(KubernetesClient client) {
        create(client, 1);
        until(deployment, Objects::nonNull);
        website.delete();
        until(deployment, Objects::isNull);
    }
}
