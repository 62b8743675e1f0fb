package dev.pintle;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** An object that a command has printed as JSON. */
record Result(Map<String, Object> fields) {
    /** Runs a command that needs no server, such as {@code pintle plan}. */
    static Result of(String command, String... words) {
        List<String> line = new ArrayList<>(List.of(Binary.find().toString(), command, "--output=json"));
        line.addAll(List.of(words));
        Process process = null;
        try {
            process = new ProcessBuilder(line).start();
            process.getOutputStream().close();
            Process running = process;
            CompletableFuture<String> error = CompletableFuture.supplyAsync(() -> read(running.getErrorStream()));
            String printed = read(process.getInputStream());
            int code = process.waitFor();
            if (code > 1) {
                // what was done until then comes first
                String[] lines = error.join().strip().split("\n");
                String why = lines[lines.length - 1].replaceFirst("^pintle: ", "");
                throw new PintleException(why.isEmpty() ? "pintle " + command + " ended with " + code : why);
            }
            return new Result(Json.parseObject(printed));
        } catch (IOException | UncheckedIOException error) {
            throw new PintleException("pintle " + command + " cannot run: " + error.getMessage(), error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new PintleException("pintle " + command + " was interrupted", error);
        } finally {
            if (process != null) {
                process.destroy();
            }
        }
    }

    private static String read(InputStream stream) {
        try {
            return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @SuppressWarnings("unchecked")
    <T> T get(String name) {
        return (T) fields.get(name);
    }

    String text(String name) {
        return get(name);
    }

    /** Texts; none if there are none. */
    List<String> list(String name) {
        return fields.containsKey(name) ? get(name) : List.of();
    }

    <T> List<T> each(String name, Function<Result, T> read) {
        List<Map<String, Object>> values = get(name);
        return values.stream().map(Result::new).map(read).toList();
    }
}
