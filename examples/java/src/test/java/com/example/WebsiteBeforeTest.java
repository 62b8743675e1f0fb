package com.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.server.mock.EnableKubernetesMockClient;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The tests as they were with the mock server of fabric8, which stores what it gets. It has no schema, so there is no test of defaults,
 * bounds and rules, and no controllers, so that an owner is all that can be seen of a deletion.
 */
@EnableKubernetesMockClient(crud = true)
class WebsiteBeforeTest {
    KubernetesClient client;
    private WebsiteOperator operator;
    private Resource<Website> website;
    private Resource<Deployment> deployment;

    @BeforeEach
    void start() {
        operator = new WebsiteOperator(client);
        website = client.resources(Website.class).inNamespace("default").withName("shop");
        deployment = client.apps().deployments().inNamespace("default").withName("shop");
    }

    @AfterEach
    void stop() {
        operator.close();
    }

    private Website create(Integer replicas) {
        Website shop = new Website();
        shop.setMetadata(new ObjectMetaBuilder().withName("shop").withNamespace("default").build());
        shop.setSpec(new Website.Spec());
        shop.getSpec().image = "shop:1";
        shop.getSpec().replicas = replicas;
        Website created = client.resource(shop).create();
        until(deployment, Objects::nonNull);
        return created;
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
    void websitesAreDeployed() {
        create(3);
        assertEquals(3, deployment.get().getSpec().getReplicas());
        assertEquals("shop:1", image(deployment.get()));
    }

    @Test
    void deploymentsFollow() {
        create(3);
        edit(spec -> spec.image = "shop:2");
        until(deployment, found -> image(found).equals("shop:2"));
    }

    @Test
    void statusShowsWhatIsReady() {
        create(3);
        deployment.editStatus(edited -> edited.edit().editOrNewStatus().withReplicas(3).withReadyReplicas(2).endStatus().build());
        until(website, found -> found.getStatus() != null && found.getStatus().ready == 2);
    }

    @Test
    void deploymentsHaveAnOwner() {
        Website shop = create(1);
        assertEquals(shop.getMetadata().getUid(), deployment.get().getMetadata().getOwnerReferences().get(0).getUid());
    }
}
