import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.KubernetesResourceList;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.StatusCause;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.FieldValidateable.Validation;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.NonNamespaceOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** Tests of the fabric8 client with Pintle: typed and generic resources, informers, watches by WebSocket, apply, leases. */
public final class Main {
  private static final String CRD_NAME = "boats.harbor.example.com";
  private final KubernetesClient client = new KubernetesClientBuilder().build();

  public static void main(String[] arguments) {
    Main main = new Main();
    Cases.run("a CRD is created and becomes established", main::createCrd);
    Cases.run("ConfigMaps are created, edited, patched, listed and deleted", main::configMaps);
    Cases.run("custom resources are created, updated, edited, scaled, listed and deleted", main::boats);
    Cases.run("generic resources are mapped by discovery", main::generic);
    Cases.run("two field managers apply parts of a custom resource", main::serverSideApply);
    Cases.run("rejected requests are exceptions with the Status", main::errors);
    Cases.run("an informer survives a restart of the server", () -> main.informer("restart"));
    Cases.run("an informer survives a crash of the server", () -> main.informer("kill"));
    Cases.run("a watch survives a restart of the server", () -> main.watch("restart"));
    Cases.run("a watch survives a crash of the server", () -> main.watch("kill"));
    Cases.run("a leader is elected by a Lease", main::leaderElection);
    Cases.run("deleting a CRD deletes its objects", main::deleteCrd);
    System.exit(Cases.exitStatus());
  }

  private String createNamespace() {
    return client.resource(new NamespaceBuilder().withNewMetadata().withGenerateName("case-").endMetadata().build())
        .create().getMetadata().getName();
  }

  private NonNamespaceOperation<Boat, KubernetesResourceList<Boat>, Resource<Boat>> boats(String namespace) {
    MixedOperation<Boat, KubernetesResourceList<Boat>, Resource<Boat>> all = client.resources(Boat.class);
    return all.inNamespace(namespace);
  }

  private void createCrd() throws Exception {
    try (var text = Files.newInputStream(Path.of(System.getenv("DEFINITION")))) {
      client.load(text).create();
    }
    client.apiextensions().v1().customResourceDefinitions().withName(CRD_NAME).waitUntilCondition(
        crd -> crd != null && crd.getStatus() != null && crd.getStatus().getConditions().stream()
            .anyMatch(each -> each.getType().equals("Established") && each.getStatus().equals("True")),
        30, TimeUnit.SECONDS);
    Cases.equal("minor", client.getKubernetesVersion().getMinor(), "37");
  }

  private void deleteCrd() throws Exception {
    boats(createNamespace()).resource(Boat.named("last", 1)).create();
    client.apiextensions().v1().customResourceDefinitions().withName(CRD_NAME).delete();
    Cases.eventually("the CRD still exists",
        () -> client.apiextensions().v1().customResourceDefinitions().withName(CRD_NAME).get() == null);
    Cases.equal("code", Cases.thrown(KubernetesClientException.class,
        () -> client.resources(Boat.class).inAnyNamespace().list()).getCode(), 404);
  }

  private void configMaps() {
    String namespace = createNamespace();
    var configMaps = client.configMaps().inNamespace(namespace);
    ConfigMap configMap = new ConfigMapBuilder().withNewMetadata().withName("settings").addToLabels("tier", "front")
        .endMetadata().addToData("key", "value").build();
    configMaps.resource(configMap).create();
    configMaps.withName("settings").edit(map -> new ConfigMapBuilder(map).addToData("more", "values").build());
    configMaps.withName("settings").patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"data\":{\"key\":null}}");
    Cases.equal("data", configMaps.withName("settings").get().getData(), Map.of("more", "values"));
    Cases.equal("selected", configMaps.withLabel("tier", "front").list().getItems().size(), 1);
    configMaps.withLabel("tier", "front").delete();
    Cases.equal("deleted", configMaps.withName("settings").get(), null);
  }

  private void boats() throws Exception {
    var boats = boats(createNamespace());
    Boat created = boats.resource(Boat.named("anna", 2)).create();
    Cases.equal("default", created.getSpec().port, "Palos");
    created.getSpec().sails = 3;
    Cases.equal("generation", boats.resource(created).update().getMetadata().getGeneration(), 2L);
    boats.withName("anna").edit(boat -> {
      boat.getSpec().port = "Genoa";
      return boat;
    });
    boats.withName("anna").editStatus(boat -> {
      boat.setStatus(new Boat.Status());
      boat.getStatus().phase = "afloat";
      return boat;
    });
    boats.withName("anna").scale(4);
    Boat current = boats.withName("anna").get();
    Cases.equal("phase", current.getStatus().phase, "afloat");
    Cases.equal("replicas", current.getSpec().replicas, 4);
    Cases.equal("selected by field", boats.withField("spec.port", "Genoa").list().getItems().size(), 1);
    for (int number = 0; number < 12; number++) {
      boats.resource(Boat.named("boat-" + number, 1)).create();
    }
    int count = 0;
    String token = null;
    do {
      var page = boats.list(new ListOptionsBuilder().withLimit(5L).withContinue(token).build());
      count += page.getItems().size();
      token = page.getMetadata().getContinue();
    } while (token != null && !token.isEmpty());
    Cases.equal("items of all pages", count, 13);
    boats.delete();
    Cases.eventually("boats still exist", () -> boats.list().getItems().isEmpty());
  }

  private void generic() {
    var boats = client.genericKubernetesResources("harbor.example.com/v1", "Boat").inNamespace(createNamespace());
    GenericKubernetesResource boat = new GenericKubernetesResource();
    boat.setApiVersion("harbor.example.com/v1");
    boat.setKind("Boat");
    boat.setMetadata(Boat.named("anna", 1).getMetadata());
    boat.setAdditionalProperty("spec", Map.of("sails", 1));
    boats.resource(boat).create();
    boats.withName("anna").patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"replace\",\"path\":\"/spec/sails\",\"value\":2}]");
    Cases.equal("sails", boats.withName("anna").get().get("spec", "sails"), 2);
    boats.withName("anna").delete();
  }

  private void serverSideApply() throws Exception {
    var boats = boats(createNamespace());
    boats.resource(Boat.named("anna", 1).withCrew("pip", "boy")).fieldManager("first").serverSideApply();
    Boat both = boats.resource(Boat.named("anna", 1).withCrew("ahab", "captain")).fieldManager("second").serverSideApply();
    Cases.equal("crew", both.getSpec().crew.stream().map(each -> each.name).collect(Collectors.toList()), List.of("pip", "ahab"));
    Resource<Boat> third = boats.resource(Boat.named("anna", 1).withCrew("ahab", "mate"));
    var conflict = Cases.thrown(KubernetesClientException.class, () -> third.fieldManager("third").serverSideApply());
    Cases.equal("code", conflict.getCode(), 409);
    Cases.equal("field", conflict.getStatus().getDetails().getCauses().get(0).getField(), ".spec.crew[name=\"ahab\"].rank");
    third.fieldManager("third").forceConflicts().serverSideApply();
    Boat remaining = boats.resource(Boat.named("anna", 1)).fieldManager("first").serverSideApply();
    Cases.equal("rank", remaining.getSpec().crew.get(0).rank, "mate");
    Cases.equal("crew", remaining.getSpec().crew.size(), 1);
  }

  private void errors() throws Exception {
    var boats = boats(createNamespace());
    Cases.equal("missing", boats.withName("none").get(), null);
    Boat stale = boats.resource(Boat.named("anna", 1)).create();
    rejected("AlreadyExists", () -> boats.resource(Boat.named("anna", 1)).create());
    boats.withName("anna").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"sails\":2}}");
    rejected("Conflict", () -> boats.resource(stale).lockResourceVersion(stale.getMetadata().getResourceVersion()).update());
    var invalid = rejected("Invalid", () -> boats.resource(Boat.named("Anna", 21)).create());
    List<String> fields = invalid.getStatus().getDetails().getCauses().stream().map(StatusCause::getField).collect(Collectors.toList());
    Cases.check(fields.containsAll(List.of("metadata.name", "spec.sails")), "causes " + fields);
    rejected("BadRequest", () -> client.genericKubernetesResources("harbor.example.com/v1", "Boat").inNamespace(stale.getMetadata().getNamespace())
        .resource(boatWithUnknownField()).fieldValidation(Validation.STRICT).create());
  }

  private static GenericKubernetesResource boatWithUnknownField() {
    GenericKubernetesResource boat = new GenericKubernetesResource();
    boat.setApiVersion("harbor.example.com/v1");
    boat.setKind("Boat");
    boat.setMetadata(Boat.named("berta", 1).getMetadata());
    boat.setAdditionalProperty("spec", Map.of("sails", 1, "speck", 1));
    return boat;
  }

  private static KubernetesClientException rejected(String reason, Cases.Body body) throws Exception {
    var error = Cases.thrown(KubernetesClientException.class, body);
    Cases.equal("reason of " + error.getMessage(), error.getStatus().getReason(), reason);
    return error;
  }

  private static void expect(BlockingQueue<String> events, String... wanted) throws Exception {
    for (String want : wanted) {
      Cases.equal("event", events.poll(30, TimeUnit.SECONDS), want);
    }
  }

  private void informer(String command) throws Exception {
    var boats = boats(createNamespace());
    var events = new LinkedBlockingQueue<String>();
    boats.resource(Boat.named("early", 1)).create();
    try (SharedIndexInformer<Boat> informer = boats.inform(new ResourceEventHandler<>() {
      @Override
      public void onAdd(Boat boat) {
        events.add("add " + boat.getMetadata().getName());
      }

      @Override
      public void onUpdate(Boat before, Boat boat) {
        events.add("update " + boat.getMetadata().getName());
      }

      @Override
      public void onDelete(Boat boat, boolean unknown) {
        events.add("delete " + boat.getMetadata().getName());
      }
    })) {
      boats.resource(Boat.named("between", 1)).create();
      expect(events, "add early", "add between");
      Cases.restartServer(command);
      boats.resource(Boat.named("late", 1)).create();
      boats.withName("early").delete();
      expect(events, "add late", "delete early");
      Cases.equal("stored", informer.getStore().list().size(), 2);
    }
  }

  private void watch(String command) throws Exception {
    var boats = boats(createNamespace());
    var events = new LinkedBlockingQueue<String>();
    try (var watch = boats.watch(new Watcher<Boat>() {
      @Override
      public void eventReceived(Action action, Boat boat) {
        events.add(action + " " + boat.getMetadata().getName());
      }

      @Override
      public void onClose(WatcherException error) {
        events.add("closed " + error.getMessage());
      }
    })) {
      boats.resource(Boat.named("before", 1)).create();
      expect(events, "ADDED before");
      Cases.restartServer(command);
      boats.resource(Boat.named("after", 1)).create();
      boats.withName("before").delete();
      expect(events, "ADDED after", "DELETED before");
    }
  }

  private void leaderElection() throws Exception {
    String namespace = createNamespace();
    var leading = new CompletableFuture<Void>();
    CompletableFuture<?> elector = client.leaderElector().withConfig(new LeaderElectionConfigBuilder().withName("harbor")
        .withLock(new LeaseLock(namespace, "helm", "first")).withLeaseDuration(Duration.ofSeconds(15))
        .withRenewDeadline(Duration.ofSeconds(10)).withRetryPeriod(Duration.ofSeconds(1)).withReleaseOnCancel(true)
        .withLeaderCallbacks(new LeaderCallbacks(() -> leading.complete(null), () -> {}, leader -> {})).build()).build().start();
    leading.get(30, TimeUnit.SECONDS);
    var leases = client.leases().inNamespace(namespace).withName("helm");
    Cases.equal("holder", leases.get().getSpec().getHolderIdentity(), "first");
    elector.cancel(true);
    // fabric8 releases a Lease by setting a short duration
    Cases.eventually("the Lease is not released", () -> leases.get().getSpec().getLeaseDurationSeconds() == 1);
  }
}
