package dev.pintle;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.yaml.snakeyaml.DumperOptions;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;
import org.yaml.snakeyaml.nodes.Tag;
import org.yaml.snakeyaml.representer.Representer;
import org.yaml.snakeyaml.resolver.Resolver;

/** Manifests, as JSON, or as YAML by a library that a client of Kubernetes has brought. */
final class Manifests {
    private Manifests() {}

    /** The objects in a file, or in the files below a directory, by name. */
    static List<Map<String, Object>> read(Path path) {
        List<Map<String, Object>> objects = new ArrayList<>();
        try (Stream<Path> below = Files.walk(path)) {
            boolean isDirectory = Files.isDirectory(path);
            for (Path file : below.filter(Files::isRegularFile).sorted().toList()) {
                if (!isDirectory || file.toString().matches(".*\\.(yaml|yml|json)")) {
                    decoded(file).forEach(document -> add(document, objects));
                }
            }
        } catch (IOException error) {
            throw new PintleException(path + " cannot be read: " + error, error);
        } catch (UncheckedIOException error) {
            throw new PintleException(path + " cannot be read: " + error.getCause(), error);
        }
        if (objects.isEmpty() && Files.isDirectory(path)) {
            throw new PintleException(path + " has no object in a file that ends with .yaml, .yml or .json");
        }
        return objects;
    }

    @SuppressWarnings("unchecked")
    private static void add(Object document, List<Map<String, Object>> objects) {
        if (!(document instanceof Map)) {
            // an empty document
            return;
        }
        Map<String, Object> object = (Map<String, Object>) document;
        if ("List".equals(object.get("kind"))) {
            objects.addAll((List<Map<String, Object>>) object.get("items"));
        } else {
            objects.add(object);
        }
    }

    private static Iterable<?> decoded(Path file) throws IOException {
        String text = Files.readString(file);
        try {
            if (file.toString().endsWith(".json")) {
                return List.of(Json.parse(text));
            }
            if (has("org.snakeyaml.engine.v2.api.Load")) {
                return Engine.load(text);
            }
            if (has("org.yaml.snakeyaml.Yaml")) {
                return Classic.load(text);
            }
        } catch (RuntimeException error) {
            throw new PintleException(file + ": " + error.getMessage(), error);
        }
        throw new PintleException(file + " is YAML, and the class path has no SnakeYAML: add org.snakeyaml:snakeyaml-engine to it");
    }

    static boolean has(String type) {
        try {
            Class.forName(type, false, Manifests.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException missing) {
            return false;
        }
    }

    /** What fabric8's client brings. */
    private static final class Engine {
        static Iterable<?> load(String text) {
            List<Object> documents = new ArrayList<>();
            new Load(LoadSettings.builder().build()).loadAllFromString(text).forEach(documents::add);
            return documents;
        }
    }

    /** What the official client brings. */
    private static final class Classic {
        static Iterable<?> load(String text) {
            DumperOptions dumper = new DumperOptions();
            LoaderOptions loader = new LoaderOptions();
            Yaml yaml = new Yaml(new SafeConstructor(loader), new Representer(dumper), dumper, loader, new Texts());
            List<Object> documents = new ArrayList<>();
            yaml.loadAll(text).forEach(documents::add);
            return documents;
        }
    }

    /** Times are texts in Kubernetes. */
    private static final class Texts extends Resolver {
        @Override
        public void addImplicitResolver(Tag tag, java.util.regex.Pattern pattern, String first, int limit) {
            if (!Tag.TIMESTAMP.equals(tag)) {
                super.addImplicitResolver(tag, pattern, first, limit);
            }
        }
    }
}
