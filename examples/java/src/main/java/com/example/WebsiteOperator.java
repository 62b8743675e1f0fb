package com.example;

import io.fabric8.kubernetes.api.model.OwnerReference;
import io.fabric8.kubernetes.api.model.OwnerReferenceBuilder;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.Map;
import java.util.Objects;

/** Gives each website a Deployment, and shows in its status how many replicas are ready. */
public class WebsiteOperator implements AutoCloseable {
    private final KubernetesClient client;
    private final SharedIndexInformer<Website> websites;
    private final SharedIndexInformer<Deployment> deployments;

    public WebsiteOperator(KubernetesClient client) {
        this.client = client;
        websites = client.resources(Website.class).inAnyNamespace().inform(handler(this::deploy));
        deployments = client.apps().deployments().inAnyNamespace().withLabel("website").inform(handler(this::report));
    }

    private void deploy(Website website) {
        String name = website.getMetadata().getName();
        Map<String, String> labels = Map.of("website", name);
        OwnerReference owner = new OwnerReferenceBuilder()
                .withApiVersion(website.getApiVersion()).withKind(website.getKind())
                .withName(name).withUid(website.getMetadata().getUid()).withController(true)
                .build();
        Deployment deployment = new DeploymentBuilder()
                .withNewMetadata().withName(name).withNamespace(website.getMetadata().getNamespace())
                .withLabels(labels).withOwnerReferences(owner).endMetadata()
                .withNewSpec().withReplicas(website.getSpec().replicas)
                .withNewSelector().withMatchLabels(labels).endSelector()
                .withNewTemplate().withNewMetadata().withLabels(labels).endMetadata()
                .withNewSpec().addNewContainer().withName("web").withImage(website.getSpec().image).endContainer().endSpec()
                .endTemplate().endSpec()
                .build();
        client.resource(deployment).createOr(existing -> existing.update());
    }

    private void report(Deployment deployment) {
        var metadata = deployment.getMetadata();
        var website = client.resources(Website.class).inNamespace(metadata.getNamespace()).withName(metadata.getLabels().get("website"));
        Integer ready = deployment.getStatus() == null ? null : deployment.getStatus().getReadyReplicas();
        Website current = website.get();
        if (current == null || ready == null || (current.getStatus() != null && Objects.equals(current.getStatus().ready, ready))) {
            return;
        }
        website.editStatus(edited -> {
            edited.setStatus(new Website.Status());
            edited.getStatus().ready = ready;
            return edited;
        });
    }

    private interface Change<T> {
        void to(T object);
    }

    private static <T> ResourceEventHandler<T> handler(Change<T> change) {
        return new ResourceEventHandler<>() {
            @Override
            public void onAdd(T object) {
                change.to(object);
            }

            @Override
            public void onUpdate(T before, T object) {
                change.to(object);
            }

            @Override
            public void onDelete(T object, boolean isStateUnknown) {}
        };
    }

    @Override
    public void close() {
        websites.close();
        deployments.close();
    }
}
