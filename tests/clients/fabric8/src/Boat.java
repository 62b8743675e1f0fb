import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonInclude;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.List;

/** The custom resource of tests/clients/boats.yaml. */
@Group("harbor.example.com")
@Version("v1")
public class Boat extends CustomResource<Boat.Spec, Boat.Status> implements Namespaced {
  @JsonInclude(JsonInclude.Include.NON_NULL)
  public static class Spec {
    public Integer sails;
    public String port;
    public Integer replicas;
    public List<CrewMember> crew;
  }

  @JsonInclude(JsonInclude.Include.NON_NULL)
  public static class CrewMember {
    public String name;
    public String rank;

    public CrewMember() {}

    public CrewMember(String name, String rank) {
      this.name = name;
      this.rank = rank;
    }
  }

  @JsonInclude(JsonInclude.Include.NON_NULL)
  @JsonIgnoreProperties(ignoreUnknown = true)
  public static class Status {
    public String phase;
  }

  static Boat named(String name, int sails) {
    Boat boat = new Boat();
    boat.getMetadata().setName(name);
    boat.setSpec(new Spec());
    boat.getSpec().sails = sails;
    return boat;
  }

  Boat withCrew(String name, String rank) {
    getSpec().crew = List.of(new CrewMember(name, rank));
    return this;
  }
}
