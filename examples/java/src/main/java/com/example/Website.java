package com.example;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

/** An image that is served by some replicas. */
@Group("example.com")
@Version("v1")
public class Website extends CustomResource<Website.Spec, Website.Status> implements Namespaced {
    private static final long serialVersionUID = 1;

    public static class Spec {
        public String image;
        public Integer replicas;
        public String host;
    }

    public static class Status {
        /** How many replicas are ready. */
        public Integer ready;
    }
}
