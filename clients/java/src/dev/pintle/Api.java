package dev.pintle;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** A small client of the API. */
final class Api {
    static final String JSON = "application/json";
    static final String MERGE_PATCH = "application/merge-patch+json";
    static final String APPLY_PATCH = "application/apply-patch+yaml";
    private static final String HEADERS = "Accept: " + JSON + "\r\nUser-Agent: pintle-server\r\n";

    private final Http http;

    Api(String url, Map<?, ?> credentials) {
        http = new Http(URI.create(url), Tls.context(credentials).getSocketFactory());
    }

    /** The decoded response. Errors of the API are exceptions with its message. */
    Map<String, Object> request(String method, String path, Object body, String contentType) {
        byte[] content = body == null ? null : (body instanceof String ? (String) body : Json.write(body)).getBytes(StandardCharsets.UTF_8);
        Http.Response response;
        try {
            // what may not be in a path is refused here, and never becomes another header
            String target = URI.create(path).toASCIIString();
            response = http.send(method, target, content == null ? HEADERS : HEADERS + "Content-Type: " + contentType + "\r\n", content);
        } catch (IOException error) {
            throw new PintleException(method + " " + path + " has failed: " + error, error);
        }
        String text = response.body().strip();
        Map<String, Object> value = text.startsWith("{") ? Json.parseObject(text) : Map.of("message", text);
        if (response.code() >= 400) {
            Object message = value.get("message");
            throw new ResponseException(response.code(), message == null ? "status " + response.code() : message.toString());
        }
        return value;
    }

    void close() {
        http.close();
    }
}
