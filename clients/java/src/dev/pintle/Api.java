package dev.pintle;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;

/** A small client of the API. It uses no proxy, whatever the environment and the system properties say. */
final class Api {
    static final String JSON = "application/json";
    static final String MERGE_PATCH = "application/merge-patch+json";
    static final String APPLY_PATCH = "application/apply-patch+yaml";
    private static final Duration TIME = Duration.ofSeconds(60);

    private final String url;
    private final HttpClient http;

    Api(String url, Map<?, ?> credentials) {
        this.url = url;
        this.http = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .sslContext(Tls.context(credentials))
                .proxy(HttpClient.Builder.NO_PROXY)
                .build();
    }

    /** The decoded response. Errors of the API are exceptions with its message. */
    Map<String, Object> request(String method, String path, Object body, String contentType) {
        HttpRequest.BodyPublisher content = body == null
                ? HttpRequest.BodyPublishers.noBody()
                : HttpRequest.BodyPublishers.ofString(body instanceof String ? (String) body : Json.write(body));
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path))
                .timeout(TIME)
                .header("Accept", JSON)
                .header("User-Agent", "pintle-server")
                .method(method, content);
        if (body != null) {
            request.header("Content-Type", contentType);
        }
        HttpResponse<String> response;
        try {
            response = http.send(request.build(), HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new PintleException(method + " " + path + " has failed: " + error, error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new PintleException(method + " " + path + " has been interrupted", error);
        }
        String text = response.body().strip();
        Map<String, Object> value = text.startsWith("{") ? Json.parseObject(text) : Map.of("message", text);
        if (response.statusCode() >= 400) {
            Object message = value.get("message");
            throw new ResponseException(response.statusCode(), message == null ? "status " + response.statusCode() : message.toString());
        }
        return value;
    }
}
