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

/** The fabric8 client against pintle: typed and generic resources, informers, watches by WebSocket, apply, leases. */
public final class Main {
  private static final String DEFINITION = "boats.harbor.example.com";
  private final KubernetesClient client = new KubernetesClientBuilder().build();

  public static void main(String[] words) {
    Main main = new Main();
    Cases.run("a definition is created and established", main::define);
    Cases.run("config maps live their life", main::configMaps);
    Cases.run("boats live their life", main::boats);
    Cases.run("generic resources are found by discovery", main::generic);
    Cases.run("two managers share a boat by apply", main::applied);
    Cases.run("refusals are the client's exception with the status", main::refused);
    Cases.run("an informer lives over a restart", () -> main.informed("restart"));
    Cases.run("an informer lives over a crash", () -> main.informed("kill"));
    Cases.run("a watch lives over a restart", () -> main.watched("restart"));
    Cases.run("a watch lives over a crash", () -> main.watched("kill"));
    Cases.run("a leader is elected by a lease", main::elected);
    Cases.run("a definition is deleted, and its objects with it", main::undefine);
    System.exit(Cases.status());
  }

  private String namespace() {
    return client.resource(new NamespaceBuilder().withNewMetadata().withGenerateName("case-").endMetadata().build())
        .create().getMetadata().getName();
  }

  private NonNamespaceOperation<Boat, KubernetesResourceList<Boat>, Resource<Boat>> boats(String namespace) {
    MixedOperation<Boat, KubernetesResourceList<Boat>, Resource<Boat>> all = client.resources(Boat.class);
    return all.inNamespace(namespace);
  }

  private void define() throws Exception {
    try (var text = Files.newInputStream(Path.of(System.getenv("DEFINITION")))) {
      client.load(text).create();
    }
    client.apiextensions().v1().customResourceDefinitions().withName(DEFINITION).waitUntilCondition(
        found -> found != null && found.getStatus() != null && found.getStatus().getConditions().stream()
            .anyMatch(each -> each.getType().equals("Established") && each.getStatus().equals("True")),
        30, TimeUnit.SECONDS);
    Cases.equal("minor", client.getKubernetesVersion().getMinor(), "37");
  }

  private void undefine() throws Exception {
    boats(namespace()).resource(Boat.named("last", 1)).create();
    client.apiextensions().v1().customResourceDefinitions().withName(DEFINITION).delete();
    Cases.eventually("the end of the definition",
        () -> client.apiextensions().v1().customResourceDefinitions().withName(DEFINITION).get() == null);
    Cases.equal("code", Cases.thrown(KubernetesClientException.class,
        () -> client.resources(Boat.class).inAnyNamespace().list()).getCode(), 404);
  }

  private void configMaps() {
    String space = namespace();
    var maps = client.configMaps().inNamespace(space);
    ConfigMap asked = new ConfigMapBuilder().withNewMetadata().withName("settings").addToLabels("tier", "front")
        .endMetadata().addToData("key", "value").build();
    maps.resource(asked).create();
    maps.withName("settings").edit(map -> new ConfigMapBuilder(map).addToData("more", "values").build());
    maps.withName("settings").patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"data\":{\"key\":null}}");
    Cases.equal("data", maps.withName("settings").get().getData(), Map.of("more", "values"));
    Cases.equal("selected", maps.withLabel("tier", "front").list().getItems().size(), 1);
    maps.withLabel("tier", "front").delete();
    Cases.equal("gone", maps.withName("settings").get(), null);
  }

  private void boats() throws Exception {
    var boats = boats(namespace());
    Boat made = boats.resource(Boat.named("anna", 2)).create();
    Cases.equal("default", made.getSpec().port, "Palos");
    made.getSpec().sails = 3;
    Cases.equal("generation", boats.resource(made).update().getMetadata().getGeneration(), 2L);
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
    Boat found = boats.withName("anna").get();
    Cases.equal("phase", found.getStatus().phase, "afloat");
    Cases.equal("replicas", found.getSpec().replicas, 4);
    Cases.equal("in Genoa", boats.withField("spec.port", "Genoa").list().getItems().size(), 1);
    for (int number = 0; number < 12; number++) {
      boats.resource(Boat.named("boat-" + number, 1)).create();
    }
    int seen = 0;
    String more = null;
    do {
      var page = boats.list(new ListOptionsBuilder().withLimit(5L).withContinue(more).build());
      seen += page.getItems().size();
      more = page.getMetadata().getContinue();
    } while (more != null && !more.isEmpty());
    Cases.equal("on all pages", seen, 13);
    boats.delete();
    Cases.eventually("the end of the boats", () -> boats.list().getItems().isEmpty());
  }

  private void generic() {
    var boats = client.genericKubernetesResources("harbor.example.com/v1", "Boat").inNamespace(namespace());
    GenericKubernetesResource asked = new GenericKubernetesResource();
    asked.setApiVersion("harbor.example.com/v1");
    asked.setKind("Boat");
    asked.setMetadata(Boat.named("anna", 1).getMetadata());
    asked.setAdditionalProperty("spec", Map.of("sails", 1));
    boats.resource(asked).create();
    boats.withName("anna").patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"replace\",\"path\":\"/spec/sails\",\"value\":2}]");
    Cases.equal("sails", boats.withName("anna").get().get("spec", "sails"), 2);
    boats.withName("anna").delete();
  }

  private void applied() throws Exception {
    var boats = boats(namespace());
    boats.resource(Boat.named("anna", 1).manned("pip", "boy")).fieldManager("first").serverSideApply();
    Boat both = boats.resource(Boat.named("anna", 1).manned("ahab", "captain")).fieldManager("second").serverSideApply();
    Cases.equal("crew", both.getSpec().crew.stream().map(each -> each.name).collect(Collectors.toList()), List.of("pip", "ahab"));
    Resource<Boat> third = boats.resource(Boat.named("anna", 1).manned("ahab", "mate"));
    var conflict = Cases.thrown(KubernetesClientException.class, () -> third.fieldManager("third").serverSideApply());
    Cases.equal("code", conflict.getCode(), 409);
    Cases.equal("field", conflict.getStatus().getDetails().getCauses().get(0).getField(), ".spec.crew[name=\"ahab\"].rank");
    third.fieldManager("third").forceConflicts().serverSideApply();
    Boat left = boats.resource(Boat.named("anna", 1)).fieldManager("first").serverSideApply();
    Cases.equal("rank", left.getSpec().crew.get(0).rank, "mate");
    Cases.equal("crew", left.getSpec().crew.size(), 1);
  }

  private void refused() throws Exception {
    var boats = boats(namespace());
    Cases.equal("missing", boats.withName("none").get(), null);
    Boat made = boats.resource(Boat.named("anna", 1)).create();
    refused("AlreadyExists", () -> boats.resource(Boat.named("anna", 1)).create());
    boats.withName("anna").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"sails\":2}}");
    refused("Conflict", () -> boats.resource(made).lockResourceVersion(made.getMetadata().getResourceVersion()).update());
    var invalid = refused("Invalid", () -> boats.resource(Boat.named("Anna", 21)).create());
    List<String> fields = invalid.getStatus().getDetails().getCauses().stream().map(StatusCause::getField).collect(Collectors.toList());
    Cases.that(fields.containsAll(List.of("metadata.name", "spec.sails")), "causes " + fields);
    refused("BadRequest", () -> client.genericKubernetesResources("harbor.example.com/v1", "Boat").inNamespace(made.getMetadata().getNamespace())
        .resource(unknownField()).fieldValidation(Validation.STRICT).create());
  }

  private static GenericKubernetesResource unknownField() {
    GenericKubernetesResource asked = new GenericKubernetesResource();
    asked.setApiVersion("harbor.example.com/v1");
    asked.setKind("Boat");
    asked.setMetadata(Boat.named("berta", 1).getMetadata());
    asked.setAdditionalProperty("spec", Map.of("sails", 1, "speck", 1));
    return asked;
  }

  private static KubernetesClientException refused(String reason, Cases.Body body) throws Exception {
    var error = Cases.thrown(KubernetesClientException.class, body);
    Cases.equal("reason of " + error.getMessage(), error.getStatus().getReason(), reason);
    return error;
  }

  private static void expect(BlockingQueue<String> seen, String... wanted) throws Exception {
    for (String want : wanted) {
      Cases.equal("event", seen.poll(30, TimeUnit.SECONDS), want);
    }
  }

  private void informed(String how) throws Exception {
    var boats = boats(namespace());
    var seen = new LinkedBlockingQueue<String>();
    boats.resource(Boat.named("early", 1)).create();
    try (SharedIndexInformer<Boat> informer = boats.inform(new ResourceEventHandler<>() {
      @Override
      public void onAdd(Boat boat) {
        seen.add("add " + boat.getMetadata().getName());
      }

      @Override
      public void onUpdate(Boat before, Boat boat) {
        seen.add("update " + boat.getMetadata().getName());
      }

      @Override
      public void onDelete(Boat boat, boolean unknown) {
        seen.add("delete " + boat.getMetadata().getName());
      }
    })) {
      boats.resource(Boat.named("between", 1)).create();
      expect(seen, "add early", "add between");
      Cases.end(how);
      boats.resource(Boat.named("late", 1)).create();
      boats.withName("early").delete();
      expect(seen, "add late", "delete early");
      Cases.equal("stored", informer.getStore().list().size(), 2);
    }
  }

  private void watched(String how) throws Exception {
    var boats = boats(namespace());
    var seen = new LinkedBlockingQueue<String>();
    try (var watch = boats.watch(new Watcher<Boat>() {
      @Override
      public void eventReceived(Action action, Boat boat) {
        seen.add(action + " " + boat.getMetadata().getName());
      }

      @Override
      public void onClose(WatcherException why) {
        seen.add("closed " + why.getMessage());
      }
    })) {
      boats.resource(Boat.named("before", 1)).create();
      expect(seen, "ADDED before");
      Cases.end(how);
      boats.resource(Boat.named("after", 1)).create();
      boats.withName("before").delete();
      expect(seen, "ADDED after", "DELETED before");
    }
  }

  private void elected() throws Exception {
    String space = namespace();
    var led = new CompletableFuture<Void>();
    CompletableFuture<?> running = client.leaderElector().withConfig(new LeaderElectionConfigBuilder().withName("harbor")
        .withLock(new LeaseLock(space, "helm", "first")).withLeaseDuration(Duration.ofSeconds(15))
        .withRenewDeadline(Duration.ofSeconds(10)).withRetryPeriod(Duration.ofSeconds(1)).withReleaseOnCancel(true)
        .withLeaderCallbacks(new LeaderCallbacks(() -> led.complete(null), () -> {}, leader -> {})).build()).build().start();
    led.get(30, TimeUnit.SECONDS);
    var leases = client.leases().inNamespace(space).withName("helm");
    Cases.equal("holder", leases.get().getSpec().getHolderIdentity(), "first");
    running.cancel(true);
    // this client gives a lease up by making it short
    Cases.eventually("the release", () -> leases.get().getSpec().getLeaseDurationSeconds() == 1);
  }
}
